/*
 * What is drawn on the axes: areas, lines, and labels at their ends. Pure.
 */
import { spread } from './axes.js';
import { GRAY } from './wanted.js';

/** @typedef {import('./series.js').Line} Line */
/** @typedef {import('./series.js').Panel} Panel */
/** @typedef {import('./encodings.js').Spec} Spec */
/** @typedef {import('./encodings.js').ValueAxis} ValueAxis */
/** @typedef {{ line: Line, top: Spec[], bottom: Spec[] | null }} Drawn points of `t` and `v` */

export const WIDTH = 640;
const LEADER = 14;
const MOST_LABEL_CHARS = 22;
const LABEL_GAP = 13;
const AREA_OPACITIES = [0.75, 0.45, 0.2];

/** @param {Drawn} drawn @param {number} index from the bottom @param {Spec} x @param {Spec} y @returns {Spec} */
export function areaMark({ line, top, bottom }, index, x, y) {
  const values = top.map(({ t, v }, i) => ({ t, v, low: v === null ? null : (bottom?.[i].v ?? 0) }));
  return {
    data: { values },
    mark: { type: 'area', color: line.color, opacity: AREA_OPACITIES[index % AREA_OPACITIES.length] },
    encoding: { x, y, y2: { field: 'low' } },
  };
}

/** @param {Drawn} drawn @param {Spec} x @param {Spec} y @returns {Spec} */
export function lineMark({ line, top }, x, y) {
  return {
    data: { values: top },
    mark: {
      type: 'line',
      color: line.color,
      strokeWidth: line.width,
      strokeDash: line.dash,
      strokeJoin: 'round',
      clip: true,
    },
    encoding: { x, y },
  };
}

/** @param {Spec} x @param {Spec} y @param {number} height @param {Panel} panel @returns {Spec} a text instead of a chart without values */
export function emptyMark(x, y, height, { title }) {
  return {
    data: { values: [{ t: 0, v: 1 }] },
    encoding: { x, y },
    layer: [
      { mark: { type: 'point', opacity: 0 } },
      {
        mark: { type: 'text', text: `no values for ${title} in this CSV`, color: GRAY, fontSize: 13 },
        encoding: { x: { value: WIDTH / 2 }, y: { value: height / 2 } },
      },
    ],
  };
}

/**
 * @param {(Drawn & { axis: ValueAxis })[]} drawn @param {number} height @param {number} endS of the time axis
 * @returns {Spec} labels beside the ends of the lines, moved apart, each connected to its line
 */
export function labelLayer(drawn, height, endS) {
  const ends = drawn.flatMap(({ line, top, bottom, axis }) => {
    const end = endOf(top, bottom);
    if (end === null || line.isFaint) return [];
    return [{ line, x: (end.t / endS) * WIDTH, y: pixelOf(end.v, axis, height) }];
  });
  const places = spread(
    ends.map(({ y }) => y),
    LABEL_GAP,
    4,
    height - 2,
  );
  return {
    layer: ends.flatMap(({ line, x, y }, i) => [leader(line, x, y, places[i]), labelMark(line, places[i])]),
  };
}

/** @param {Spec[]} top @param {Spec[] | null} bottom @returns {{ t: number, v: number } | null} the last point of a line, or of the middle of an area */
function endOf(top, bottom) {
  const at = top.findLastIndex(({ v }) => v !== null);
  if (at < 0) return null;
  return { t: top[at].t, v: bottom ? (top[at].v + (bottom[at].v ?? 0)) / 2 : top[at].v };
}

/** @param {number} value @param {ValueAxis} axis @param {number} height @returns {number} */
function pixelOf(value, { domain: [low, high], isLog }, height) {
  const share = isLog ? Math.log(value / low) / Math.log(high / low) : (value - low) / (high - low);
  return height * (1 - Math.min(1, Math.max(0, share)));
}

/** @param {Line} line @param {number} x of its last point @param {number} from @param {number} to @returns {Spec} */
function leader({ color }, x, from, to) {
  const values = [
    { x, y: from },
    { x: WIDTH + 1, y: from },
    { x: WIDTH + LEADER, y: to },
  ];
  return {
    data: { values },
    mark: { type: 'line', color, strokeWidth: 0.75, strokeDash: [1, 1.5] },
    encoding: { x: pixels('x'), y: pixels('y') },
  };
}

/** @param {Line} line @param {number} y @returns {Spec} */
function labelMark({ color, label }, y) {
  return {
    data: { values: [{ x: WIDTH + LEADER + 3, y }] },
    mark: {
      type: 'text',
      text: shortened(label),
      color,
      align: 'left',
      baseline: 'middle',
      fontSize: 11,
      limit: 0,
    },
    encoding: { x: pixels('x'), y: pixels('y') },
  };
}

/** @param {string} label @returns {string} */
function shortened(label) {
  return label.length > MOST_LABEL_CHARS ? `${label.slice(0, MOST_LABEL_CHARS - 1)}…` : label;
}

/** @param {string} field @returns {Spec} */
const pixels = (field) => ({ field, type: 'quantitative', scale: null, axis: null });
