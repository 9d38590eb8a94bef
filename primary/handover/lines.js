/*
 * Messages between the primaries of two servers: one line of JSON each, over the control socket.
 */
import { HoldfastError, messageOf } from '../../lib/errors.js';

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
    /** Their characters. */
    this.size = 0;
    /** Most characters of a line: of somebody unknown it is short. */
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
    this.keep(first);
    for (const other of others) {
      const parts = this.parts.splice(0);
      this.size = 0;
      this.keep(other);
      this.read(parts);
    }
  }

  /** @param {string} part of a line */
  keep(part) {
    this.size += part.length;
    this.parts.push(part);
    if (this.size > this.mostSize) this.refuse(new HoldfastError('HANDOVER', 'its line is too long'));
  }

  /** Whatever the other side says, this one goes on. @param {string[]} parts of a line */
  read(parts) {
    if (this.problem) return;
    try {
      const message = JSON.parse(parts.join(''));
      if (typeof message?.type !== 'string') throw new SyntaxError('not a message');
      this.onMessage(message);
    } catch (error) {
      this.refuse(error);
    }
  }

  /** Whoever this is does not speak the protocol. @param {unknown} error */
  refuse(error) {
    this.problem ||= messageOf(error);
    this.parts = [];
    this.destroy();
  }

  closed() {
    if (this.isClosed) return;
    this.isClosed = true;
    this.onClose();
  }
}
