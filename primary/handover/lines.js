/*
 * Messages between the primaries of two servers: one line of JSON each, over the control socket.
 */
import { HoldfastError } from '../../lib/errors.js';

/** @typedef {{ type: string, [field: string]: any }} Message */

export class Lines {
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket;
    this.isClosed = false;
    /** When a message came last, on performance's clock. */
    this.heardMs = performance.now();
    /** Of a line that has not come whole. @type {string[]} */
    this.parts = [];
    this.onMessage = (/** @type {Message} */ _message) => {};
    this.onClose = () => {};
    socket.setEncoding('utf8');
    socket.on('data', (text) => this.take(String(text)));
    socket.on('error', () => {});
    socket.on('close', () => this.closed());
  }

  /** @param {Message} message */
  send(message) {
    if (!this.isClosed) this.socket.write(`${JSON.stringify(message)}\n`);
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
    const [first, ...others] = text.split('\n');
    this.parts.push(first);
    for (const other of others) {
      const line = this.parts.join('');
      this.parts = [other];
      this.read(line);
    }
  }

  /** @param {string} line */
  read(line) {
    try {
      const message = JSON.parse(line);
      if (typeof message?.type !== 'string') throw new SyntaxError('not a message');
      this.onMessage(message);
    } catch (error) {
      if (!(error instanceof SyntaxError) && !(error instanceof HoldfastError)) throw error;
      this.destroy(); // whoever this is does not speak the protocol
    }
  }

  closed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
  }
}
