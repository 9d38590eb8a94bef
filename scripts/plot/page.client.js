/*
 * Runs in the browser, in the page of page.js: a uPlot chart for each panel, with a shared crosshair and zoom.
 */

/** @typedef {import('./page.js').PageData} PageData */
/** @typedef {import('./page.js').PagePanel} PagePanel */
/** @typedef {import('./page.js').PageLine} PageLine */
/** @typedef {import('uplot')} Plot */

const GRAY = '#767676';
const GRID = { stroke: '#76767633', width: 1 };
const TICKS = { stroke: GRAY, width: 1, size: 5 };
const FONT = '12px system-ui, "DejaVu Sans", sans-serif';
const FILL_ALPHAS = ['bf', '73', '33'];
const HEIGHT = 280;
const SMALL_HEIGHT = 190;
/** Beyond this distance from the crosshair a run, which has ended, has no value. */
const HOVER_PIXELS = 20;
const TIME_STEPS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400,
];

const { uPlot } = /** @type {{ uPlot: typeof import('uplot') }} */ (/** @type {unknown} */ (globalThis));
/** @type {PageData} */
const data = JSON.parse(document.getElementById('data')?.textContent ?? '');
/** @type {Plot[]} */
const plots = [];
let isZooming = false;

/** @param {number} s @returns {string} 3661 → '1:01:01' */
function clock(s) {
  const [hours, minutes, seconds] = [Math.floor(s / 3600), Math.floor(s / 60) % 60, s % 60];
  const tail = `${String(minutes).padStart(hours > 0 ? 2 : 1, '0')}:${String(Math.floor(seconds)).padStart(2, '0')}`;
  return hours > 0 ? `${hours}:${tail}` : tail;
}

/** @param {number | null | undefined} value @param {number} factor @param {string} unit @returns {string} */
function valueText(value, factor, unit) {
  if (value === null || value === undefined) return '–';
  const number = Number((value / factor).toPrecision(4)).toLocaleString('en-US');
  return unit === '1/s' ? `${number}/s` : `${number} ${unit}`;
}

/** @param {number} n 12000 → '12k' */
function short(n) {
  if (n >= 1e6) return `${n / 1e6}M`;
  return n >= 1e3 ? `${n / 1e3}k` : String(n);
}

/** @param {PagePanel} panel @returns {{ tables: any[], own: any[] }} what is drawn, and what the legend shows */
function tablesOf({ lines, streams }) {
  const all = [...lines, ...streams];
  const table = (/** @type {PageLine} */ { times }, /** @type {(number | null)[]} */ values) => [
    data.times[times],
    values,
  ];
  // A missing point is not a gap; a null is.
  return {
    tables: uPlot.join(/** @type {any} */ (all.map((line) => table(line, line.tops)))),
    own: uPlot.join(/** @type {any} */ (all.map((line) => table(line, line.values ?? line.tops)))),
  };
}

/** @param {PageLine} line @param {string} scale @param {(at: number) => string} textAt */
function seriesOf({ label, color, dash, width }, scale, textAt) {
  return {
    label,
    scale,
    stroke: color,
    width,
    dash,
    points: { show: false },
    value: (
      /** @type {Plot} */ _,
      /** @type {unknown} */ __,
      /** @type {unknown} */ ___,
      /** @type {number | null} */ at,
    ) => (at === null ? '–' : textAt(at)),
  };
}

/** @param {PageLine[]} lines @returns {{ series: [number, number], fill: string }[]} from each area to the one below it */
function bandsOf(lines) {
  const areas = lines.flatMap(({ isArea }, i) => (isArea ? [i] : []));
  return areas.slice(1).map((line, i) => ({
    series: /** @type {[number, number]} */ ([line + 1, areas[i] + 1]),
    fill: lines[line].color + FILL_ALPHAS[(i + 1) % FILL_ALPHAS.length],
  }));
}

/** @param {PagePanel} panel @param {any[]} own */
function allSeries({ lines, streams, factor, unit }, own) {
  const left = lines.map((line, i) => ({
    ...seriesOf(line, 'y', (at) => valueText(own[i + 1][at], factor, unit)),
    ...(line.isArea && i === 0 ? { fill: line.color + FILL_ALPHAS[0] } : {}),
  }));
  const right = streams.map((line, i) =>
    seriesOf(line, 'streams', (at) => valueText(own[lines.length + i + 1][at], 1, '')),
  );
  const time = {
    label: 'time',
    value: (/** @type {unknown} */ _, /** @type {number | null} */ s) => (s === null ? '–' : clock(s)),
  };
  return [time, ...left, ...right];
}

/** @param {PagePanel} panel @param {boolean} isSmall with its title above it */
function axesOf({ title, factor, log }, isSmall) {
  const look = { stroke: GRAY, font: FONT, labelFont: FONT, ticks: TICKS };
  const numbers = (/** @type {Plot} */ _, /** @type {(number | null)[]} */ splits) =>
    splits.map((n) => (n === null ? '' : (n / factor).toLocaleString('en-US')));
  return [
    {
      ...look,
      grid: GRID,
      size: 34,
      incrs: TIME_STEPS,
      values: (/** @type {Plot} */ _, /** @type {number[]} */ splits) => splits.map(clock),
    },
    {
      ...look,
      grid: GRID,
      scale: 'y',
      ...(isSmall ? { size: 94 } : { size: 64, label: title }),
      values: numbers,
      ...(log
        ? {
            splits: () => log.marks,
            filter: (/** @type {Plot} */ _, /** @type {number[]} */ splits) => splits,
          }
        : {}),
    },
    {
      ...look,
      grid: { show: false },
      scale: 'streams',
      side: 1,
      label: isSmall ? 'streams (count)' : 'open streams (count)',
      size: 56,
      values: (/** @type {Plot} */ _, /** @type {number[]} */ splits) => splits.map(short),
    },
  ];
}

/** @param {PagePanel['log']} log */
function scalesOf(log) {
  const upFrom0 = (/** @type {Plot} */ _, /** @type {number} */ __, /** @type {number | null} */ most) =>
    /** @type {[number, number]} */ ([0, (most || 1) * 1.06]);
  return {
    x: { time: false },
    y: log ? { distr: /** @type {const} */ (3), range: log.domain } : { range: upFrom0 },
    streams: { range: upFrom0 },
  };
}

/** All charts show the same time range. @param {Plot} from @param {string} scale */
function zoomAll(from, scale) {
  if (scale !== 'x' || isZooming) return;
  const { min, max } = from.scales.x;
  if (min === undefined || max === undefined || min === null || max === null) return;
  isZooming = true;
  for (const plot of plots) if (plot !== from) plot.setScale('x', { min, max });
  isZooming = false;
}

/** Emphasizes whole minutes when the axis shows seconds. @param {Plot} plot */
function markMinutes({ ctx, bbox: { left, top, width, height }, scales, valToPos }) {
  const { min = 0, max = 0 } = scales.x;
  if (max - min > 600) return;
  ctx.fillStyle = '#76767680';
  for (let at = Math.ceil(min / 60) * 60; at <= max; at += 60) {
    const x = Math.round(valToPos(at, 'x', true));
    if (x > left && x < left + width) ctx.fillRect(x, top, 1, height);
  }
}

/** @param {PagePanel} panel @param {HTMLElement} section */
function show(panel, section) {
  const { tables, own } = tablesOf(panel);
  const hasValues = panel.lines.some(({ tops }) => tops.some((value) => value !== null));
  if (!hasValues) return void section.append(paragraph(`${panel.title}: no values in this CSV`));
  const isSmall = data.panels.filter(({ chart }) => chart === panel.chart).length > 1;
  if (isSmall) section.append(paragraph(panel.title));
  const options = {
    width: section.clientWidth,
    height: isSmall ? SMALL_HEIGHT : HEIGHT,
    scales: scalesOf(panel.log),
    series: allSeries(panel, own),
    bands: bandsOf(panel.lines),
    axes: axesOf(panel, isSmall),
    cursor: { sync: { key: 'time' }, hover: { prox: HOVER_PIXELS }, drag: { x: true, y: false } },
    legend: {
      markers: { width: 2, dash: (/** @type {Plot} */ _, /** @type {number} */ i) => markerOf(panel, i) },
    },
    hooks: { setScale: [zoomAll], drawAxes: [markMinutes] },
  };
  plots.push(new uPlot(/** @type {any} */ (options), tables, section));
}

/** @param {PagePanel} panel @param {number} index of a series @returns {string} the line in the legend */
function markerOf({ lines, streams }, index) {
  const line = [...lines, ...streams][index - 1];
  return !line || line.dash.length === 0 ? 'solid' : line.dash[0] > 5 ? 'dashed' : 'dotted';
}

/** @param {string} text */
function paragraph(text) {
  const element = document.createElement('p');
  element.className = 'panel-title';
  element.textContent = text;
  return element;
}

for (const panel of data.panels) {
  const section = document.getElementById(panel.chart);
  if (section) show(panel, section);
}
document.getElementById('whole')?.addEventListener('click', () => {
  plots[0]?.setScale('x', { min: 0, max: data.endS });
});
addEventListener('resize', () => {
  for (const plot of plots)
    plot.setSize({ width: plot.root.parentElement?.clientWidth ?? plot.width, height: plot.height });
});
Object.assign(globalThis, { plots });
