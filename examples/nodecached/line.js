/*
 * One line of a request, cut into tokens in place.
 */
const SPACE = 32;
const NEWLINE = 10;
const RETURN = 13;
/** Bytes of a key. */
export const MOST_KEY = 250;
/** memcached looks at so many; only get may have more. */
export const MOST_TOKENS = 23;

export class Line {
  constructor() {
    /** @type {Buffer} */
    this.bytes = Buffer.alloc(0);
    this.start = 0;
    this.end = 0; // without \r\n
    this.next = 0; // after \n
    this.count = 0;
    this.starts = new Int32Array(MOST_TOKENS);
    this.ends = new Int32Array(MOST_TOKENS);
  }

  /**
   * Finds the end of the line.
   * @param {Buffer} bytes @param {number} start @param {number} end of what has arrived
   * @returns {boolean} whether it is there
   */
  read(bytes, start, end) {
    let at = start;
    while (at < end && bytes[at] !== NEWLINE) at++;
    if (at === end) return false;
    this.bytes = bytes;
    this.start = start;
    this.next = at + 1;
    this.end = at - start > 1 && bytes[at - 1] === RETURN ? at - 1 : at;
    return true;
  }

  /** Finds the tokens. */
  split() {
    const { bytes, end } = this;
    let count = 0;
    for (let at = this.start; at < end && count < MOST_TOKENS; at++) {
      if (bytes[at] === SPACE) continue;
      this.starts[count] = at;
      while (at < end && bytes[at] !== SPACE) at++;
      this.ends[count++] = at;
    }
    this.count = count;
  }

  /** @param {number} token @returns {number} */
  lengthOf(token) {
    return this.ends[token] - this.starts[token];
  }

  /** @param {number} token @returns {string} */
  text(token) {
    return token >= 0 && token < this.count
      ? this.bytes.toString('latin1', this.starts[token], this.ends[token])
      : '';
  }

  /** @returns {boolean} whether the last token asks for no answer */
  isQuiet() {
    const last = this.count - 1;
    return last > 0 && this.lengthOf(last) === 7 && this.text(last) === 'noreply';
  }
}
