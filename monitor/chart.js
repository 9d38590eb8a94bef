/*
 * A line chart of braille dots, drawn on a canvas of blessed-contrib, whose own line chart has neither a log scale nor
 * units on its axis. Scales and ticks are pure; `drawChart` draws.
 */

/** Characters of the axis on the left: a label of up to five, and the line. */
export const AXIS_COLUMNS = 6;
const DOTS_PER_COLUMN = 2;
const DOTS_PER_ROW = 4;
/** Rows per power of ten from which 2 and 5 get a label as well. */
const ROWS_PER_DECADE = 6;
/** Labels on an axis: with fewer it is hard to read a value, more are a crowd. */
const FEWEST_LABELS = 3;
/** From so many rows on, one more. */
const TALL_ROWS = 9;
const MOST_LABELS = 6;
/** Between two labels of the time axis, s, and the fewest characters. */
const TIME_STEPS = [1, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400];
const TIME_LABEL_COLUMNS = 9;

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} fraction where a value is, from 0 at the bottom to 1 at the top
 * @property {number[]} ticks values that get a label, smallest first
 */

/** @typedef {{ values: (number | null)[], color: string }} Series one value per frame, newest last */

/**
 * From 0 to at least the largest value. Each label is in a row of its own, with the same number of rows and the same round step
 * between two; of the possible steps, the one that leaves the least empty.
 * @param {number} max the largest value
 * @param {number} rows of the chart
 * @returns {Scale}
 */
export function linearScale(max, rows) {
  const gaps = Math.max(1, rows - 1);
  const most = Math.min(MOST_LABELS - 1, gaps);
  const least = Math.min(rows < TALL_ROWS ? FEWEST_LABELS - 1 : FEWEST_LABELS, most);
  const choices = Array.from({ length: gaps }, (_, i) => i + 1)
    .filter((each) => Math.floor(gaps / each) <= most && Math.floor(gaps / each) >= least)
    .map((each) => ({ each, step: roundStep((Math.max(max, 1) * each) / gaps) }));
  const topOf = (/** @type {{ each: number, step: number }} */ { each, step }) => (step * gaps) / each;
  const best = choices.sort((a, b) => topOf(a) - topOf(b) || b.each - a.each)[0];
  const top = topOf(best);
  return {
    fraction: (value) => clamp(value / top),
    ticks: Array.from({ length: Math.floor(gaps / best.each) + 1 }, (_, i) => i * best.step),
  };
}

/**
 * Powers of ten from below the smallest value to above the largest, each the same number of rows from the last, with 2 and 5
 * in between if there is room.
 * @param {number} min the smallest value, above 0
 * @param {number} max the largest value
 * @param {number} rows of the chart
 * @returns {Scale}
 */
export function logScale(min, max, rows) {
  const gaps = Math.max(1, rows - 1);
  const low = Math.floor(Math.log10(min));
  const decades = Math.max(1, Math.log10(max) - low);
  const each = Math.max(1, Math.floor(gaps / decades));
  const decadesEach = Math.max(1, Math.ceil(decades / gaps));
  const height = (gaps / each) * decadesEach;
  const digits = each >= ROWS_PER_DECADE ? [1, 2, 5] : [1];
  const powers = Array.from({ length: Math.floor(gaps / each) + 1 }, (_, i) => low + i * decadesEach);
  const ticks = powers.flatMap((power) => digits.map((digit) => digit * 10 ** power));
  return {
    fraction: (value) => (value <= 0 ? 0 : clamp((Math.log10(value) - low) / height)),
    ticks: ticks.filter((tick) => Math.log10(tick) <= low + height + 1e-9),
  };
}

/** @param {number} step 0.3 → 0.5, 7 → 10, 23 → 50 @returns {number} 1, 2 or 5 times a power of ten, at least as large */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  const digit = [1, 2, 5, 10].find((round) => round * power >= step - 1e-9) ?? 10;
  return digit * power;
}

/** @param {number} fraction */
function clamp(fraction) {
  return Math.min(1, Math.max(0, fraction));
}

/**
 * @param {Scale} scale
 * @param {number} rows of the chart
 * @returns {Map<number, number>} row of each label, from the top → its value
 */
export function labelRows({ ticks, fraction }, rows) {
  return new Map(ticks.map((tick) => [Math.round((1 - fraction(tick)) * (rows - 1)), tick]));
}

/**
 * The time axis, which replaces the lower border of a chart: how long ago each part of it was. The newest value is at the right.
 * @param {number} columns
 * @param {number} seconds between two values, of which a column shows two
 * @returns {string}
 */
export function timeAxis(columns, seconds) {
  const columnSeconds = seconds * DOTS_PER_COLUMN;
  const step =
    TIME_STEPS.find((one) => one / columnSeconds >= TIME_LABEL_COLUMNS) ?? Number.POSITIVE_INFINITY;
  const line = Array(columns).fill('─');
  for (let ago = 0; ago / columnSeconds < columns - AXIS_COLUMNS; ago += step) {
    const label = ago === 0 ? ' now' : ` -${agoText(ago)} `;
    const end = Math.min(columns, columns - Math.round(ago / columnSeconds) + Math.floor(label.length / 2));
    if (end - label.length < AXIS_COLUMNS) break;
    line.splice(end - label.length, label.length, ...label);
  }
  return line.join('');
}

/** @param {number} seconds 30 → '30s', 90 → '1:30', 7200 → '2h' */
function agoText(seconds) {
  if (seconds < 60) return `${seconds}s`;
  if (seconds >= 3600) return `${seconds / 3600}h`;
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}

/** @param {import('blessed-contrib').Widgets.CanvasElement} canvas @returns {number} values that it can show, one per dot */
export function dotsOf(canvas) {
  return Math.max(0, contextOf(canvas).canvas.width - AXIS_COLUMNS * DOTS_PER_COLUMN);
}

/**
 * @param {import('blessed-contrib').Widgets.CanvasElement} canvas whose context is the area inside its border
 * @param {Series[]} series none longer than `dotsOf(canvas)`
 * @param {Scale} scale
 * @param {(value: number) => string} format of labels
 */
export function drawChart(canvas, series, scale, format) {
  const context = contextOf(canvas);
  const columns = context.canvas.width / DOTS_PER_COLUMN;
  const rows = context.canvas.height / DOTS_PER_ROW;
  if (columns <= AXIS_COLUMNS || rows < 1) return;
  context.canvas.clear();
  const bottom = context.canvas.height - 1;
  for (const { values, color } of series) {
    const left = context.canvas.width - values.length;
    context.strokeStyle = color;
    context.beginPath();
    values.forEach((value, i) => {
      if (value === null) return;
      const y = Math.round((1 - scale.fraction(value)) * bottom);
      const isFirst = i === 0 || values[i - 1] === null;
      if (isFirst) context.moveTo(left + i, y);
      context.lineTo(left + i, y);
    });
    context.stroke();
  }
  drawAxis(context, rows, labelRows(scale, rows), format);
}

/**
 * @param {Context} context @param {number} rows @param {Map<number, number>} labels
 * @param {(value: number) => string} format
 */
function drawAxis(context, rows, labels, format) {
  context.fillStyle = 'normal';
  for (let row = 0; row < rows; row++) {
    const value = labels.get(row);
    const label = value === undefined ? '' : format(value);
    const line = value === undefined ? '│' : '┤';
    context.fillText(
      `${label.slice(0, AXIS_COLUMNS - 1).padStart(AXIS_COLUMNS - 1)}${line}`,
      0,
      row * DOTS_PER_ROW,
    );
  }
}

/**
 * What we use of the canvas's context, which resembles that of a web page.
 * @typedef {object} Context
 * @property {{ width: number, height: number, clear: () => void }} canvas in dots
 * @property {string} strokeStyle
 * @property {string} fillStyle
 * @property {() => void} beginPath
 * @property {(x: number, y: number) => void} moveTo
 * @property {(x: number, y: number) => void} lineTo
 * @property {() => void} stroke
 * @property {(text: string, x: number, y: number) => void} fillText
 */

/** @param {unknown} canvas @returns {Context} */
function contextOf(canvas) {
  return /** @type {{ ctx: Context }} */ (canvas).ctx;
}

/**
 * Makes a canvas take the size of the area inside its border. Call it before the canvas is added to the screen: in a
 * narrow terminal its own calculation gives a negative size, and throws.
 * @param {import('blessed-contrib').Widgets.CanvasElement} canvas
 */
export function prepareCanvas(canvas) {
  const sized =
    /** @type {{ width: number, height: number, canvasSize: { width: number, height: number }, calcSize: () => void }} */ (
      /** @type {unknown} */ (canvas)
    );
  sized.calcSize = () => {
    sized.canvasSize = {
      width: Math.max(0, sized.width - 2) * DOTS_PER_COLUMN,
      height: Math.max(0, sized.height - 2) * DOTS_PER_ROW,
    };
  };
}

/** Recreates the context of a canvas for its current size. @param {import('blessed-contrib').Widgets.CanvasElement} canvas */
export function fitCanvas(canvas) {
  canvas.emit('attach');
}
