/*
 * A connection between the primaries of two servers, on the control socket: one line of JSON per message.
 */
import { HoldfastError } from '../../lib/errors.js';
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
    for (const line of this.splitter.take(text)) this.read(line);
  }

  /** @param {string} line */
  read(line) {
    const message = messageIn(line);
    if (!message) return this.destroy(); // whoever this is does not speak the protocol
    try {
      this.onMessage(message);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.destroy();
    }
  }

  closed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
  }
}
