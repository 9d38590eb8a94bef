/*
 * The charts as Vega-Lite specifications. Pure. The background is transparent, and the colours have enough contrast with
 * white and with black. Each line has its label at its end, on a strip between the plot and the axis of the streams.
 */
import { timeAxis } from './axes.js';
import { leftEncoding, rightEncoding, streamsAxis, timeEncoding, valueAxis } from './encodings.js';
import { areaMark, emptyMark, labelLayer, lineMark, WIDTH } from './marks.js';
import { runLabel, stacked, thin } from './series.js';
import { GRAY } from './wanted.js';

/** @typedef {import('./series.js').Chart} Chart */
/** @typedef {import('./series.js').Panel} Panel */
/** @typedef {import('./series.js').Line} Line */
/** @typedef {import('./read.js').Run} Run */
/** @typedef {import('./encodings.js').Spec} Spec */
/** @typedef {import('./encodings.js').ValueAxis} ValueAxis */
/** @typedef {import('./marks.js').Drawn} Drawn */

const HEIGHT = 260;
const SMALL_HEIGHT = 150;
/** Width of that strip, in px: for one run, for several. */
const STRIP = 112;
const WIDE_STRIP = 164;
const MOST_POINTS = 640;
const FONT = 'DejaVu Sans, Verdana, Helvetica, Arial, sans-serif';
/** Vega overestimates the width of text; a longer line would widen the picture. */
const LINE_CHARS = 90;

/** @param {Chart} chart @param {Run[]} runs @returns {Spec} */
export function specOf(chart, runs) {
  const axis = timeAxis(Math.max(...runs.map(({ times }) => times.at(-1) ?? 0)));
  const height = chart.panels.length > 1 ? SMALL_HEIGHT : HEIGHT;
  const strip = runs.length > 1 ? WIDE_STRIP : STRIP;
  const panels = chart.panels.map((panel, i) =>
    panelSpec(panel, { height, strip, axis, isLast: i === chart.panels.length - 1 }),
  );
  return {
    $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
    background: 'transparent',
    padding: 12,
    title: { text: chart.title, subtitle: subtitleOf(runs, chart) },
    config: CONFIG,
    spacing: 18,
    vconcat: panels,
  };
}

/** How all our charts draw their axes. @type {Spec} */
export const AXIS = {
  labelColor: GRAY,
  titleColor: GRAY,
  tickColor: GRAY,
  domainColor: GRAY,
  gridColor: GRAY,
  gridOpacity: 0.25,
  labelFontSize: 11,
  titleFontSize: 12,
  titleFontWeight: 'normal',
};

/** @type {Spec} */
const CONFIG = {
  font: FONT,
  view: { stroke: GRAY, strokeOpacity: 0.5 },
  axis: AXIS,
  title: {
    anchor: 'start',
    frame: 'group',
    color: GRAY,
    subtitleColor: GRAY,
    fontSize: 16,
    subtitleFontSize: 11,
    subtitlePadding: 4,
    offset: 10,
  },
};

/** @param {Run[]} runs @param {Chart} chart @returns {string[]} what was run, where, and what the lines mean */
function subtitleOf(runs, chart) {
  const names = runs.map((run, i) => (runs.length === 1 ? startOf(run) : runLabel(run, i)));
  const machines = [...new Set(runs.map(({ machine }) => machine || 'not recorded'))];
  const text = [names.join(' · '), `machine: ${machines.join(' · ')}`, lineHelp(chart, runs)];
  return text.filter((line) => line !== '').flatMap(wrap);
}

/** @param {Run} run @returns {string} */
function startOf({ name, startedAt }) {
  return startedAt ? `${name}, from ${startedAt.slice(0, 19).replace('T', ' ')} UTC` : name;
}

/** @param {Chart} chart @param {Run[]} runs @returns {string} */
function lineHelp({ panels }, runs) {
  const smoothS = Math.max(...panels.map((panel) => panel.smoothS));
  const widthS = Math.max(...runs.map(({ widthMs }) => widthMs)) / 1000;
  const parts = [
    smoothS > 0 ? `moving average over ${Math.max(smoothS, widthS)} s` : '',
    panels.some(({ lines }) => lines.some(({ isFaint }) => isFaint)) ? 'thin: the raw maximum' : '',
    widthS > 0 ? `each point covers ${widthS} s` : '',
    runs.length > 1 ? 'short dashes: open streams (right axis)' : 'dashed gray: open streams (right axis)',
  ];
  return parts.filter((part) => part !== '').join('; ');
}

/** @param {string} text @returns {string[]} lines that fit in the picture */
export function wrap(text) {
  /** @type {string[]} */
  const lines = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last === undefined || last.length + word.length >= LINE_CHARS) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}

/**
 * @param {Panel} panel
 * @param {{ height: number, strip: number, axis: import('./axes.js').TimeAxis, isLast: boolean }} place
 * @returns {Spec}
 */
function panelSpec(panel, { height, strip, axis, isLast }) {
  const lines = drawnOf(panel.lines, panel.isLog);
  const streams = drawnOf(panel.streams, false);
  const left = valueAxis(panel, valuesOf(lines));
  const right = streamsAxis(valuesOf(streams));
  const x = timeEncoding(axis, isLast);
  const labels = [
    ...lines.map((one) => ({ ...one, axis: left })),
    ...labelledStreams(streams).map((one) => ({ ...one, axis: right })),
  ];
  const isSmall = height === SMALL_HEIGHT;
  return {
    width: WIDTH,
    height,
    ...(isSmall ? { title: { text: left.title, fontSize: 12, fontWeight: 'normal', offset: 5 } } : {}),
    layer: [
      leftLayer(lines, x, isSmall ? { ...left, title: '' } : left, height, panel),
      { layer: streams.map((one) => lineMark(one, x, rightEncoding(right, strip))) },
      labelLayer(labels, height, axis.end),
    ].filter(({ layer }) => layer.length > 0),
    resolve: { scale: { y: 'independent' } },
  };
}

/** When runs are compared, their streams have the colours of the runs and need no labels. @param {Drawn[]} streams */
function labelledStreams(streams) {
  return streams.length === 1 ? streams : [];
}
/** @param {Line[]} lines @param {boolean} isLog @returns {Drawn[]} */
function drawnOf(lines, isLog) {
  return stacked(lines).map(({ line, bottom, top }) => {
    const points = (/** @type {import('./series.js').Values} */ values) => pointsOf(line, values, isLog);
    return { line, top: points(top), bottom: bottom && points(bottom) };
  });
}

/** @param {Line} line @param {import('./series.js').Values} values @param {boolean} isLog @returns {{ t: number, v: number | null }[]} */
function pointsOf({ times, keep }, values, isLog) {
  return thin(times, values, keep, MOST_POINTS).map(({ t, v }) => ({
    t: rounded(t),
    v: v === null || (isLog && v <= 0) ? null : rounded(v),
  }));
}

/** Nobody can see more than five digits in a picture. @param {number} n */
const rounded = (n) => Number(n.toPrecision(5));

/** @param {Drawn[]} drawn @returns {number[]} */
const valuesOf = (drawn) => drawn.flatMap(({ top }) => top.flatMap(({ v }) => (v === null ? [] : [v])));

/** @param {Drawn[]} lines @param {Spec} x @param {ValueAxis} axis @param {number} height @param {Panel} panel @returns {Spec} */
function leftLayer(lines, x, axis, height, panel) {
  const y = leftEncoding(axis);
  const areas = lines.filter(({ bottom }) => bottom).map((one, i) => areaMark(one, i, x, y));
  const strokes = lines.map((one) => lineMark(one, x, y));
  const isEmpty = valuesOf(lines).length === 0;
  return { layer: isEmpty ? [emptyMark(x, y, height, panel)] : [...areas, ...strokes] };
}
