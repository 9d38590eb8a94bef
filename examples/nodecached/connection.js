/*
 * One connection: cuts what arrives into requests, and stops reading while the answers don't drain.
 *
 *     reading ──── answers don't drain ───▶ blocked ──── drained ───▶ reading
 *        ├──────── its turn is over ────────▶ waiting ─── next turn ──▶ reading
 *        └──────── quit, or a line without end ───▶ closing
 *
 * A request that hasn't arrived completely waits in `rest`, and is run when it is complete: so there is nothing to resume but long gets.
 */

/** A line is refused when it has no end within so many bytes, as in memcached; only get may be longer. */
const MOST_LINE = 2048;
const MOST_GET = 1 << 20;
const NEWLINE = 10;
const TOO_LONG = Buffer.from('CLIENT_ERROR line too long\r\n');

export class Connection {
  /** @param {import('node:net').Socket} socket @param {import('./requests.js').Requests} requests of its thread */
  constructor(socket, requests) {
    this.socket = socket;
    this.requests = requests;
    this.isBlocked = false;
    this.isWaiting = false; // others have their turn
    this.isClosing = false;
    this.swallow = 0; // bytes to skip: the value of a request that was refused
    this.getting = 0; // the kind of the get whose next key comes now
    this.expires = 0; // for gat
    /** Bytes that the unfinished request has in total; 0: not known yet. */
    this.need = 0;
    /** @type {Buffer | null} */
    this.rest = null;
    this.filled = 0;
  }

  /** @param {Buffer} bytes which are used again after this @param {number} length @returns {boolean} whether to go on reading */
  receive(bytes, length) {
    const { output } = this.requests;
    output.sink = this;
    let at = 0;
    while (this.rest && at < length && this.#isReading()) at = this.#complete(bytes, at, length);
    if (at < length && this.#isReading()) at = this.requests.run(this, bytes, at, length);
    if (at < length && !this.isClosing) this.#keep(bytes, at, length);
    return this.#finish();
  }

  /** The answers have drained. */
  drained() {
    if (!this.isBlocked) return;
    this.isBlocked = false;
    this.resume();
  }

  /** Goes on where it stopped. */
  resume() {
    if (this.isBlocked || this.isWaiting || this.socket.destroyed) return;
    this.requests.output.sink = this;
    if (this.rest) this.#runRest();
    if (this.#finish()) this.socket.resume();
  }

  #isReading() {
    return !this.isBlocked && !this.isWaiting && !this.isClosing;
  }

  /** @returns {boolean} whether to go on reading */
  #finish() {
    this.requests.output.flush();
    this.requests.output.sink = null;
    if (this.isClosing) this.socket.destroySoon();
    if (this.isWaiting) setImmediate(nextTurn, this);
    return !this.isBlocked && !this.isWaiting;
  }

  /** Adds to the unfinished request what it lacks, and runs it if nothing does. @param {Buffer} bytes @param {number} at @param {number} length @returns {number} */
  #complete(bytes, at, length) {
    const end = this.need > 0 ? Math.min(length, at + this.need - this.filled) : endOfLine(bytes, at, length);
    this.#append(bytes, at, end);
    const rest = /** @type {Buffer} */ (this.rest);
    const isComplete = this.need > 0 ? this.filled === this.need : rest[this.filled - 1] === NEWLINE;
    if (isComplete) this.#runRest();
    else if (this.need === 0) this.#checkLine();
    return end;
  }

  #runRest() {
    const { filled } = this;
    const rest = /** @type {Buffer} */ (this.rest);
    this.rest = null;
    this.filled = 0;
    this.need = 0;
    const at = this.requests.run(this, rest, 0, filled);
    if (at === filled || this.isClosing) return;
    this.rest = rest.subarray(at);
    this.filled = filled - at;
    this.#checkRest();
  }

  /** @param {Buffer} bytes @param {number} at @param {number} end */
  #keep(bytes, at, end) {
    this.#append(bytes, at, end);
    this.#checkRest();
  }

  /** The buffer grows with what has arrived, not with what was announced. @param {Buffer} bytes @param {number} at @param {number} end */
  #append(bytes, at, end) {
    const total = this.filled + end - at;
    if (!this.rest || this.rest.length < total) {
      const larger = Buffer.allocUnsafeSlow(Math.max(total, Math.min(this.need || total, 2 * total)));
      this.rest?.copy(larger, 0, 0, this.filled);
      this.rest = larger;
    }
    bytes.copy(this.rest, this.filled, at, end);
    this.filled = total;
  }

  /** What is left after a run is the beginning of a line, unless the run was interrupted. */
  #checkRest() {
    if (this.need === 0 && this.#isReading()) this.#checkLine();
  }

  /** Refuses a line that is too long. */
  #checkLine() {
    if (this.filled <= MOST_LINE || !this.rest) return;
    const isGet = /^ {0,100}gets? /.test(this.rest.toString('latin1', 0, 110));
    if (isGet && this.filled <= MOST_GET) return;
    if (isGet) this.requests.output.put(TOO_LONG);
    this.isClosing = true;
    this.rest = null;
  }
}

/** @param {Connection} connection */
function nextTurn(connection) {
  connection.isWaiting = false;
  connection.resume();
}

/** @param {Buffer} bytes @param {number} at @param {number} length @returns {number} after the newline, or all */
function endOfLine(bytes, at, length) {
  const found = bytes.indexOf(NEWLINE, at);
  return found < 0 || found >= length ? length : found + 1;
}
