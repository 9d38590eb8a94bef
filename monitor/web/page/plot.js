/*
 * How a panel looks, as options of uPlot. Colours are read when something is drawn, so they follow the theme.
 */

/** @typedef {(number | null)[]} Values */

/**
 * @typedef {object} Line
 * @property {string} label
 * @property {string} column
 * @property {'c1' | 'c2' | 'c3'} color
 * @property {'' | 'dashed' | 'dotted'} dash
 *
 * @typedef {object} Panel
 * @property {string} id
 * @property {string} title
 * @property {'linear' | 'log' | 'stack'} kind a stack begins at the top
 * @property {number} least of the top of the axis; of a log scale, its bottom: smaller values are drawn there
 * @property {Line[]} lines
 * @property {(value: number) => string} format with the unit
 * @property {(value: number) => string} axis as short as possible
 */

export const HEIGHT = 150;
const DASHES = { '': [], dashed: [7, 4], dotted: [2, 3] };
const AXIS_WIDTH = 54;
const FONT = '11px system-ui, sans-serif';
/** Room above the highest value. */
const HEADROOM = 1.08;

/** @param {string} name @param {string} [alpha] two digits @returns {string} a colour of the style */
function colorOf(name, alpha = '') {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim() + alpha;
}

/** @param {number} ms since 1970 @param {boolean} [hasSeconds] @returns {string} '16:05:09' */
export function clock(ms, hasSeconds = true) {
  const second = hasSeconds ? /** @type {const} */ ({ second: '2-digit' }) : {};
  return new Date(ms).toLocaleTimeString([], {
    hour: '2-digit',
    minute: '2-digit',
    hourCycle: 'h23',
    ...second,
  });
}

/** @param {Panel} panel @param {number} width @param {() => void} onCursor @returns {import('uplot').Options} */
export function optionsOf(panel, width, onCursor) {
  const { kind, lines } = panel;
  return {
    width,
    height: HEIGHT,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    // One crosshair for all charts.
    cursor: { y: false, drag: { x: false, y: false }, sync: { key: 'holdfast' }, points: { size: 6 } },
    scales: {
      x: { time: true, range: (_plot, min, max) => [min, max] },
      y: { distr: kind === 'log' ? 3 : 1, range: (_plot, min, max) => rangeOf(panel, min, max) },
    },
    axes: [timeAxis(), valueAxis(panel)],
    series: [{}, ...lines.map((_, i) => seriesOf(panel, i))],
    ...(kind === 'stack' ? { bands: bandsOf(panel) } : {}),
    hooks: { setCursor: [onCursor] },
  };
}

/** @returns {import('uplot').Axis} */
function axis() {
  const grid = { stroke: () => colorOf('grid'), width: 1 };
  return { stroke: () => colorOf('soft'), grid, ticks: { show: false }, font: FONT, gap: 4 };
}

/** @returns {import('uplot').Axis} */
function timeAxis() {
  const values = (/** @type {unknown} */ _, /** @type {number[]} */ splits) =>
    splits.map((s) => clock(s * 1000, s % 60 !== 0));
  return { ...axis(), size: 20, space: 60, values };
}

/** @param {Panel} panel @returns {import('uplot').Axis} */
function valueAxis({ kind, axis: format }) {
  const values = (/** @type {unknown} */ _, /** @type {(number | null)[]} */ splits) =>
    splits.map((value) => (value === null ? '' : format(value)));
  const common = { ...axis(), size: AXIS_WIDTH, space: 22, values };
  if (kind !== 'log') return common;
  const powers = (/** @type {unknown} */ _, /** @type {number[]} */ splits) =>
    splits.map((value) => (Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6) ? value : null));
  return { ...common, filter: powers, grid: { ...common.grid, filter: powers } };
}

/** @param {Panel} panel @param {number} i @returns {import('uplot').Series} */
function seriesOf({ kind, lines }, i) {
  const { label, color, dash } = lines[i];
  const isFilled = kind === 'stack' ? i === lines.length - 1 : kind === 'linear' && lines.length === 1;
  return {
    label,
    stroke: () => colorOf(color),
    width: 1.5,
    dash: DASHES[dash],
    points: { show: false },
    spanGaps: false,
    ...(isFilled ? { fill: () => colorOf(color, kind === 'stack' ? '66' : '26') } : {}),
  };
}

/** What is between two lines of a stack has the colour of the upper one. @param {Panel} panel @returns {import('uplot').Band[]} */
function bandsOf({ lines }) {
  return lines
    .slice(0, -1)
    .map(({ color }, i) => ({ series: [i + 1, i + 2], fill: () => colorOf(color, '66') }));
}

/** @param {Panel} panel @param {number | null} min @param {number | null} max @returns {[number, number]} */
function rangeOf({ kind, least }, min, max) {
  if (kind !== 'log') return [0, Math.max(least, HEADROOM * (max ?? 0))];
  const from = 10 ** Math.floor(Math.log10(Math.max(least, min ?? least)));
  return [from, 10 ** Math.ceil(Math.log10(Math.max(from * 10, HEADROOM * (max ?? 0))))];
}

/** @param {Panel} panel @param {Values[]} values of its lines @returns {Values[]} where they are drawn */
export function heightsOf({ kind, least }, values) {
  if (kind === 'log')
    return values.map((list) => list.map((value) => (value === null ? null : Math.max(value, least))));
  if (kind !== 'stack') return values;
  return values.map((list, line) =>
    list.map((value, i) =>
      value === null ? null : values.slice(line).reduce((sum, one) => sum + (one[i] ?? 0), 0),
    ),
  );
}
