/*
 * Makes an SVG of a terminal from what tmux captured of it:
 *
 *     tmux capture-pane -ep | node scripts/picture.js > docs/dashboard.svg
 *
 * Box characters and braille are drawn as lines and dots, so that the picture looks the same in any font.
 */
import { readFileSync } from 'node:fs';

const CELL = { width: 9, height: 18 };
const BASELINE = 13.5;
const BACKGROUND = '#16181d';
const FOREGROUND = '#d7dae0';
/** The eight colours of a terminal, and their bright ones. */
const COLORS = '#16181d #e06c75 #98c379 #e5c07b #61afef #c678dd #56b6c2 #d7dae0'.split(' ');

/** Which sides of a cell a box character reaches: up, right, down, left. @type {Record<string, string>} */
const BOXES = { '│': 'ud', '─': 'rl', '┌': 'rd', '┐': 'dl', '└': 'ur', '┘': 'ul', '┤': 'udl', '├': 'udr' };
/** The dots of a braille character by bit: column, row. */
const DOTS = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2], [0, 3], [1, 3]]; // biome-ignore format: one line

/** @typedef {{ color: string, ground: string, inverse: boolean, bold: boolean }} Style ground is '' where there is none */
/** @typedef {{ char: string, style: Style }} Cell */

/** @returns {Style} */
const plainStyle = () => ({ color: FOREGROUND, ground: '', inverse: false, bold: false });

/**
 * Reads text with SGR sequences (ECMA-48), as `tmux capture-pane -e` writes it.
 * @param {string} text
 * @returns {Cell[][]} a row a line
 */
export function parseScreen(text) {
  let style = plainStyle();
  return text
    .replace(/\n+$/, '')
    .split('\n')
    .map((line) => {
      /** @type {Cell[]} */
      const cells = [];
      // biome-ignore lint/suspicious/noControlCharactersInRegex: ESC begins a sequence
      for (const [, codes, char] of line.matchAll(/\x1b\[([\d;]*)m|([^\x1b])/gu)) {
        if (char === undefined) style = restyle(style, codes);
        else cells.push({ char, style });
      }
      return cells;
    });
}

/** @param {Style} style @param {string} codes '1;32' @returns {Style} */
function restyle(style, codes) {
  const numbers = codes.split(';').map(Number);
  let next = style;
  for (let i = 0; i < numbers.length; i++) {
    const code = numbers[i];
    if (code === 0) next = plainStyle();
    else if (code === 1) next = { ...next, bold: true };
    else if (code === 7 || code === 27) next = { ...next, inverse: code === 7 };
    else if (code === 49) next = { ...next, ground: '' };
    else if (code >= 40 && code <= 47) next = { ...next, ground: COLORS[code - 40] };
    else if (code === 39) next = { ...next, color: FOREGROUND };
    else if (code >= 30 && code <= 37) next = { ...next, color: COLORS[code - 30] };
    else if (code >= 90 && code <= 97) next = { ...next, color: COLORS[code - 90] };
    else if (code === 38 && numbers[i + 1] === 5) {
      next = { ...next, color: COLORS[numbers[i + 2] % 8] ?? FOREGROUND };
      i += 2;
    }
  }
  return next;
}

/** @param {Cell[][]} rows @returns {string} an SVG document */
export function renderScreen(rows) {
  const width = (Math.max(...rows.map((row) => row.length)) + 2) * CELL.width;
  const height = (rows.length + 1) * CELL.height;
  const shapes = rows.flatMap((row, i) => rowShapes(row, (i + 0.5) * CELL.height));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace" font-size="14.5">
<title>What the terminal shows</title>
<rect width="100%" height="100%" rx="8" fill="${BACKGROUND}"/>
${shapes.join('\n')}
</svg>
`;
}

/** @param {Cell[]} row @param {number} y @returns {string[]} its grounds, then a shape for each word or drawn character */
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

/** @param {Cell} cell whether it is drawn as a letter */
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

if (process.argv[1]?.endsWith('picture.js'))
  process.stdout.write(renderScreen(parseScreen(readFileSync(0, 'utf8'))));
