/*
 * A line chart of braille dots, drawn on a canvas of blessed-contrib, whose own line chart has neither a log scale nor
 * units on its axis. Scales and ticks are pure; `drawChart` draws.
 */

/** Characters of the axis on the left: a label of up to five, and the line. */
export const AXIS_COLUMNS = 6;
const DOTS_PER_COLUMN = 2;
const DOTS_PER_ROW = 4;
/** How far from a row, in rows, a value may be to get its label there. */
const NEAR_ROW = 0.35;
/** Rows per power of ten from which 2 and 5 get a label as well. */
const ROWS_PER_DECADE = 6;

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} fraction where a value is, from 0 at the bottom to 1 at the top
 * @property {number[]} ticks values that get a label, smallest first
 */

/** @typedef {{ values: (number | null)[], color: string }} Series one value per frame, newest last */

/**
 * From 0 to a round number above all values.
 * @param {number} max the largest value
 * @param {number} count approximate number of steps
 * @returns {Scale}
 */
export function linearScale(max, count) {
  const step = roundStep(Math.max(max, 1) / Math.max(1, count));
  const steps = Math.max(1, Math.ceil(Math.max(max, 1) / step));
  const top = step * steps;
  return {
    fraction: (value) => clamp(value / top),
    ticks: Array.from({ length: steps + 1 }, (_, i) => i * step),
  };
}

/**
 * Whole powers of ten around all values, with 2 and 5 in between if there is room.
 * @param {number} min the smallest value, above 0
 * @param {number} max the largest value
 * @param {number} rows of the chart
 * @returns {Scale}
 */
export function logScale(min, max, rows) {
  const low = Math.floor(Math.log10(min));
  const high = Math.max(low + 1, Math.ceil(Math.log10(max)));
  const digits = rows >= ROWS_PER_DECADE * (high - low) ? [1, 2, 5] : [1];
  return {
    fraction: (value) => (value <= 0 ? 0 : clamp((Math.log10(value) - low) / (high - low))),
    ticks: Array.from({ length: high - low }, (_, i) => digits.map((digit) => digit * 10 ** (low + i)))
      .flat()
      .concat(10 ** high),
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
 * The row of each tick's label. A tick between two rows has none; of two in one row the later wins, so that the top
 * always has a label.
 * @param {Scale} scale
 * @param {number} rows of the chart
 * @returns {Map<number, number>} row from the top → value
 */
export function labelRows(scale, rows) {
  /** @type {Map<number, number>} */
  const found = new Map();
  for (const tick of scale.ticks) {
    const exact = (1 - scale.fraction(tick)) * (rows - 1);
    if (Math.abs(exact - Math.round(exact)) <= NEAR_ROW) found.set(Math.round(exact), tick);
  }
  return found;
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
