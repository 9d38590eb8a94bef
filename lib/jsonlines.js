/*
 * Messages between two processes: one line of JSON each, with a type.
 */

/** @typedef {{ type: string, [field: string]: any }} Message */

/** Makes lines of a text that comes in pieces. */
export class LineSplitter {
  /** Of a line that is not complete. Joined once, however many pieces it has. @type {string[]} */
  parts = [];
  /** Characters of it so far. */
  size = 0;

  /** @param {string} text @returns {Generator<string>} the lines that are complete now */
  *take(text) {
    const [first, ...others] = text.split('\n');
    this.keep(first);
    for (const next of others) {
      const line = this.parts.join('');
      this.parts = [];
      this.size = 0;
      this.keep(next);
      yield line;
    }
  }

  /** @param {string} part of a line */
  keep(part) {
    this.parts.push(part);
    this.size += part.length;
  }
}

/** @param {string} line @returns {Message | null} null if it is none */
export function messageIn(line) {
  try {
    const message = JSON.parse(line);
    return typeof message?.type === 'string' ? message : null;
  } catch {
    return null;
  }
}

/** @param {Message} message @returns {string} */
export function lineOf(message) {
  return `${JSON.stringify(message)}\n`;
}
