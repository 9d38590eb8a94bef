/*
 * Draws a terminal screen as an SVG. Box characters and braille become lines and dots, so that the picture looks the same with any
 * font.
 */
import { BACKGROUND } from './screen.js';

/** @typedef {import('./screen.js').Cell} Cell */
/** @typedef {import('./screen.js').Style} Style */

const CELL = { width: 9, height: 18 };
const BASELINE = 13.5;
/** The sides of a cell that a box character reaches: up, right, down, left. @type {Record<string, string>} */
const BOXES = { '│': 'ud', '─': 'rl', '┌': 'rd', '┐': 'dl', '└': 'ur', '┘': 'ul', '┤': 'udl', '├': 'udr' };
/** Column and row of each dot of a braille character, by bit. */
const DOTS = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]]; // biome-ignore format: one line

/** @param {Cell[][]} rows @returns {string} an SVG document */
export function renderScreen(rows) {
  const width = (Math.max(...rows.map((row) => row.length)) + 2) * CELL.width;
  const height = (rows.length + 1) * CELL.height;
  const shapes = rows.flatMap((row, i) => rowShapes(row, (i + 0.5) * CELL.height));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14.5">
<title>The dashboard in a terminal</title>
<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>
${shapes.join('\n')}
</svg>
`;
}

/** @param {Cell[]} row @param {number} y @returns {string[]} its backgrounds, then a shape for each word or drawn character */
function rowShapes(row, y) {
  const xOf = (/** @type {number} */ index) => (index + 1) * CELL.width;
  const grounds = runsOf(row, (a, b) => groundOf(a.style) === groundOf(b.style))
    .filter(({ cells }) => groundOf(cells[0].style) !== '')
    .map(({ cells, start }) => {
      const width = cells.length * CELL.width;
      return `<rect x="${xOf(start)}" y="${y}" width="${width}" height="${CELL.height}" fill="${groundOf(cells[0].style)}"/>`;
    });
  const shapes = runsOf(row, (a, b) => isText(a) && isText(b) && a.style === b.style)
    .filter(({ cells }) => cells[0].char !== ' ')
    .map(({ cells, start }) => shapeOf(cells, xOf(start), y));
  return [...grounds, ...shapes];
}

/**
 * @param {Cell[]} row @param {(a: Cell, b: Cell) => boolean} belong
 * @returns {{ cells: Cell[], start: number }[]} neighbours that belong together
 */
function runsOf(row, belong) {
  /** @type {{ cells: Cell[], start: number }[]} */
  const runs = [];
  for (const [i, cell] of row.entries()) {
    const last = runs.at(-1);
    if (last && belong(last.cells[last.cells.length - 1], cell)) last.cells.push(cell);
    else runs.push({ cells: [cell], start: i });
  }
  return runs;
}

/** @param {Cell} cell @returns {boolean} whether it is drawn as a letter */
function isText({ char }) {
  return char !== ' ' && !(char in BOXES) && brailleBits(char) === null;
}

/** @param {string} char @returns {number | null} */
function brailleBits(char) {
  const bits = char.charCodeAt(0) - 0x2800;
  return bits >= 0 && bits < 256 ? bits : null;
}

/** @param {Style} style */
const groundOf = ({ ground, inverse, color }) => (inverse ? color : ground);

/** @param {Cell[]} cells a word, or one drawn character @param {number} x @param {number} y @returns {string} */
function shapeOf(cells, x, y) {
  const { color, inverse, bold } = cells[0].style;
  const ink = inverse ? BACKGROUND : color;
  const text = cells.map(({ char }) => char).join('');
  const bits = brailleBits(text);
  if (text in BOXES) return boxOf(BOXES[text], x, y, ink);
  if (bits !== null) return brailleOf(bits, x, y, ink);
  const escaped = text.replace(/[&<>]/g, (special) => `&#${special.charCodeAt(0)};`);
  const weight = bold ? ' font-weight="bold"' : '';
  return `<text x="${x}" y="${y + BASELINE}" textLength="${cells.length * CELL.width}" fill="${ink}"${weight}>${escaped}</text>`;
}

/** @param {string} sides @param {number} x @param {number} y @param {string} color */
function boxOf(sides, x, y, color) {
  const [middleX, middleY] = [x + CELL.width / 2, y + CELL.height / 2];
  /** @type {Record<string, string>} */
  const ends = { u: `V${y}`, d: `V${y + CELL.height}`, l: `H${x}`, r: `H${x + CELL.width}` };
  const path = [...sides].map((side) => `M${middleX} ${middleY}${ends[side]}`).join('');
  return `<path d="${path}" stroke="${color}"/>`;
}

/** @param {number} bits @param {number} x @param {number} y @param {string} color */
function brailleOf(bits, x, y, color) {
  const dots = DOTS.filter((_, bit) => bits & (1 << bit)).map(([column, row]) => {
    const [centerX, centerY] = [x + (column + 0.5) * (CELL.width / 2), y + (row + 0.5) * (CELL.height / 4)];
    return `<circle cx="${centerX}" cy="${centerY}" r="1.5"/>`;
  });
  return `<g fill="${color}">${dots.join('')}</g>`;
}
