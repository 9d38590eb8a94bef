/*
 * A table at the bottom of a terminal that is drawn again and again, with lines above it. Without a terminal there are only lines.
 */

const UP = '\x1b[A';
const CLEAR_BELOW = '\x1b[J';
/** A line that wraps would take more than one line of the screen. */
const NO_WRAP = '\x1b[?7l';
const WRAP = '\x1b[?7h';
/** Lines of the screen that stay free for what is above the table. */
const FREE = 2;

export class Screen {
  /** @param {NodeJS.WritableStream & { isTTY?: boolean, rows?: number, columns?: number }} stream */
  constructor(stream) {
    this.stream = stream;
    this.isLive = stream.isTTY === true;
    /** Of the table on the screen. */
    this.lines = 0;
    this.table = '';
  }

  /** How tables should look here. */
  get style() {
    return this.isLive ? { colour: true, width: this.stream.columns || 80 } : {};
  }

  /** Draws the table, in place of the one before. @param {string} table lines, each with its newline */
  draw(table) {
    const most = Math.max(1, (this.stream.rows || 24) - FREE);
    const lines = table.split('\n').slice(0, -1).slice(0, most);
    this.table = lines.map((line) => `${line}\n`).join('');
    this.stream.write(this.erased() + NO_WRAP + this.table + WRAP);
    this.lines = lines.length;
  }

  /** Writes a line above the table. @param {string} line */
  line(line) {
    this.stream.write(
      this.lines > 0 ? `${this.erased()}${line}\n${NO_WRAP}${this.table}${WRAP}` : `${line}\n`,
    );
  }

  /** Writes a table that stays. @param {string} table */
  end(table) {
    this.stream.write(this.erased() + table);
    this.lines = 0;
  }

  /** @returns {string} what removes the table from the screen */
  erased() {
    return this.lines > 0 ? `\r${UP.repeat(this.lines)}${CLEAR_BELOW}` : '';
  }
}
