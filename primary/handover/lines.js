/*
 * A connection between the primaries of two servers, on the control socket: one line of JSON per message.
 */
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { LineSplitter, lineOf, messageIn } from '../../lib/jsonlines.js';

/** @typedef {import('../../lib/jsonlines.js').Message} Message */

export class Lines {
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket;
    this.isClosed = false;
    /** When a message came last, on performance's clock. */
    this.heardMs = performance.now();
    this.splitter = new LineSplitter();
    /** Most characters of a line. Strangers get few. */
    this.mostSize = Number.POSITIVE_INFINITY;
    /** Why this side has closed the connection; '' if it has not. */
    this.problem = '';
    this.onMessage = (/** @type {Message} */ _message) => {};
    this.onClose = () => {};
    socket.setEncoding('utf8');
    socket.on('data', (text) => this.take(String(text)));
    socket.on('error', () => {});
    socket.on('close', () => this.closed());
  }

  /** @param {Message} message */
  send(message) {
    if (!this.isClosed) this.socket.write(lineOf(message));
  }

  /** What was sent before still arrives. */
  end() {
    this.socket.end();
  }

  destroy() {
    this.socket.destroy();
  }

  /** @param {string} text */
  take(text) {
    this.heardMs = performance.now();
    if (this.problem) return;
    for (const line of this.splitter.take(text)) {
      this.read(line);
      if (this.problem) return;
    }
    this.checkSize(this.splitter.size);
  }

  /** Whatever the other side says, this one goes on. @param {string} line */
  read(line) {
    try {
      if (!this.checkSize(line.length)) return;
      const message = messageIn(line);
      if (!message) throw new HoldfastError('HANDOVER', 'not a message');
      this.onMessage(message);
    } catch (error) {
      this.refuse(error);
    }
  }

  /** @param {number} size of a line, in characters @returns {boolean} false if it is too long: then it is refused */
  checkSize(size) {
    if (size <= this.mostSize) return true;
    this.refuse(new HoldfastError('HANDOVER', `a line of more than ${this.mostSize} characters`));
    return false;
  }

  /** The other side does not speak the protocol. @param {unknown} error */
  refuse(error) {
    this.problem ||= messageOf(error);
    this.splitter = new LineSplitter();
    this.destroy();
  }

  closed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
  }
}
