/*
 * A page in the terminal that is redrawn until the reader quits. Written by hand, since it needs only five escape
 * sequences.
 */
const ENTER = '\x1b[?1049h\x1b[?25l';
const LEAVE = '\x1b[?25h\x1b[?1049l';
const HOME = '\x1b[H';
const REST_OF_LINE = '\x1b[K';
const REST_OF_PAGE = '\x1b[J';
const CTRL_C = '\x03';

/** @typedef {{ width: number, height: number, hasColours: boolean }} Size */

export class Screen {
  /**
   * @param {(size: Size) => string[]} draw lines of at most that width
   * @param {() => void} quit
   */
  constructor(draw, quit) {
    this.draw = draw;
    this.onKey = (/** @type {Buffer} */ data) => {
      if (/[qQ]/.test(String(data)) || String(data).includes(CTRL_C)) quit();
    };
    this.onResize = () => this.show();
    this.onExit = () => this.close();
    process.stdout.write(ENTER);
    process.stdout.on('resize', this.onResize);
    process.on('exit', this.onExit);
    if (!process.stdin.isTTY) return;
    process.stdin.setRawMode(true);
    process.stdin.on('data', this.onKey);
  }

  show() {
    const size = sizeOf(process.stdout);
    const lines = this.draw(size).slice(0, size.height);
    // Each line is cleared before it is written: clearing after it would also remove the last column of a full line.
    const rest = lines.length < size.height ? `\r\n${REST_OF_PAGE}` : '';
    process.stdout.write(`${HOME}${lines.map((line) => REST_OF_LINE + line).join('\r\n')}${rest}`);
  }

  close() {
    process.off('exit', this.onExit);
    process.stdout.off('resize', this.onResize);
    process.stdin.off('data', this.onKey);
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
    process.stdin.pause();
    process.stdout.write(LEAVE);
  }
}

/** @param {import('node:stream').Writable & { isTTY?: boolean, columns?: number, rows?: number }} out @returns {boolean} */
export function isScreen({ isTTY, columns, rows }) {
  return isTTY === true && process.env.TERM !== 'dumb' && Number(columns) > 0 && Number(rows) > 0;
}

/** @param {{ columns: number, rows: number }} terminal @returns {Size} */
export function sizeOf({ columns, rows }) {
  return { width: columns, height: rows, hasColours: !process.env.NO_COLOR };
}
