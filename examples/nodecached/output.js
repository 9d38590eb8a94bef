/*
 * The answers of one thread. They are collected in one buffer, and each chunk of requests ends with one write. When a write
 * didn't finish at once, the kernel's buffer is full: the socket keeps our buffer, we take a new one, and the connection is
 * blocked until everything is sent.
 */
import { writeNumber } from './numbers.js';

const BYTES = 65_536;
/** Longer answers are not collected. */
const LONG = 16_384;

/**
 * @typedef {object} Sink where answers go
 * @property {import('node:net').Socket} socket
 * @property {boolean} isBlocked its answers don't drain
 */

export class Output {
  /** @param {(bytes: number) => void} count is told how much is written */
  constructor(count) {
    this.bytes = Buffer.allocUnsafeSlow(BYTES);
    this.length = 0;
    this.count = count;
    /** @type {Sink | null} whom we answer now */
    this.sink = null;
  }

  /** Makes room. @param {number} bytes at most LONG */
  reserve(bytes) {
    if (this.length + bytes > BYTES) this.flush();
  }

  /** @param {Uint8Array} answer which ends with \r\n */
  put(answer) {
    this.reserve(answer.length);
    const { bytes } = this;
    let at = this.length;
    for (let i = 0; i < answer.length; i++) bytes[at++] = answer[i];
    this.length = at;
  }

  /** @param {string} answer of any length */
  text(answer) {
    const bytes = Buffer.from(answer, 'latin1');
    if (bytes.length <= LONG) return this.put(bytes);
    this.flush();
    return this.#send(bytes);
  }

  /** There is room for it. @param {number} value */
  number(value) {
    this.length = writeNumber(this.bytes, this.length, value);
  }

  /**
   * Part of an item.
   * @param {import('./store.js').Store} store
   * @param {number} start @param {number} end
   */
  copy(store, start, end) {
    const length = end - start;
    if (length > LONG) return this.#copyLong(store, start, end);
    this.reserve(length);
    store.read(start, end, this.bytes, this.length);
    this.length += length;
  }

  /** @param {import('./store.js').Store} store @param {number} start @param {number} end */
  #copyLong(store, start, end) {
    this.flush();
    const bytes = Buffer.allocUnsafeSlow(end - start);
    store.read(start, end, bytes, 0);
    this.#send(bytes);
  }

  /** Sends what was collected. */
  flush() {
    const { length, sink } = this;
    if (length === 0) return;
    this.length = 0;
    // Behind others a small answer would keep the whole buffer in memory: then it is copied.
    const isFirst = sink?.socket.writableLength === 0;
    const part = this.bytes.subarray(0, length);
    this.#send(isFirst ? part : Buffer.from(part));
    if (isFirst && sink?.socket.writableLength !== 0) this.bytes = Buffer.allocUnsafeSlow(BYTES);
  }

  /** @param {Buffer} bytes */
  #send(bytes) {
    const { sink } = this;
    if (!sink) return;
    this.count(bytes.length);
    const isFine = sink.socket.write(bytes);
    if (!isFine && sink.socket.writableLength > 0) sink.isBlocked = true;
  }
}
