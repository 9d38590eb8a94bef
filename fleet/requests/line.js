/*
 * One connection of autocannon's, mended: what it does when it would connect, send, or read. Why stands in cannon.js.
 */
import { Socket } from 'node:net';
import { codeOf, messageOf } from '../../lib/errors.js';
import { causeOf } from '../drone/causes.js';

/** A connection that waits for its turn has no deadline. */
const NEVER_MS = 86_400_000;

/**
 * What is used of autocannon's client, and of its parser (http-parser-js).
 * @typedef {import('node:events').EventEmitter & {
 *   conn?: Socket, destroyed: boolean, timeoutTicker: { reschedule: (ms: number) => void }, parser: any,
 *   _connect: () => void, _doRequest: () => void, _destroyConnection: () => void, destroy: () => void }} Client
 */

/**
 * One connection, with at most one request on its way.
 *
 *      waits for its turn --take--> busy --answered, failed--> waits ... --leave--> gone
 */
export class Line {
  /** @param {Client} client @param {import('./cannon.js').Load} load */
  constructor(client, load) {
    this.client = client;
    this.load = load;
    /** autocannon's own. */
    this.connect = client._connect;
    this.send = client._doRequest;
    this.isBusy = false;
    /** It was given a request, which leaves at the next `onFree`. */
    this.hasTurn = false;
    this.mustConnect = true;
    this.hasBegun = false;
    this.bodyBytes = 0;
    this.dueMs = 0;
    this.sentMs = 0;
    /** @type {Error | null} */
    this.error = null;
    client._connect = () => this.onParted();
    client._doRequest = () => this.onFree();
    client.on('request', () => this.onRequest());
    client.on('headers', (head) => this.onHead(head));
    client.on('body', (/** @type {Buffer} */ part) => {
      this.bodyBytes += part.length;
    });
    client.on('response', (/** @type {number} */ status) => this.onAnswer(status));
    client.on('connError', (/** @type {Error} */ error) => {
      this.error = error;
    });
    client.on('done', () => load.pacer.remove(this));
  }

  /** The client would send. */
  onFree() {
    if (this.client.destroyed) return;
    if (!this.hasTurn) {
      this.client.timeoutTicker.reschedule(NEVER_MS);
      this.load.pacer.wait(this);
      return;
    }
    this.hasTurn = false;
    this.send.call(this.client);
  }

  /** @param {number} dueMs */
  take(dueMs) {
    this.dueMs = dueMs;
    this.hasTurn = true;
    if (!this.mustConnect) return this.onFree();
    const { client } = this;
    this.mustConnect = false;
    client._destroyConnection();
    client.parser.reinitialize(client.parser.constructor.RESPONSE);
    this.connect.call(client); // and sends
  }

  leave() {
    this.client.destroy();
  }

  /** The client would connect: at its beginning, and when its connection has ended, failed, or timed out. */
  onParted() {
    const { client } = this;
    if (client.destroyed) return;
    if (!client.conn) this.prepare();
    this.mustConnect = true;
    const hasEnded = client.conn?.readableEnded ?? false;
    // The end of the connection is the end of an answer without a length.
    if (this.isBusy && hasEnded && client.parser.state === 'BODY_RAW') return void client.parser.finish();
    const cause = this.error ? causeOf(codeOf(this.error)) : hasEnded ? 'closed' : 'timeout';
    if (this.error) this.load.tally.lastError = messageOf(this.error).trim();
    this.error = null;
    this.fail(cause);
    this.onFree();
  }

  /** Before the first connection, which is made for the first request. */
  prepare() {
    const { client, load } = this;
    client.conn = new Socket(); // for the client to destroy
    const { parser } = client;
    const { execute } = parser;
    parser.execute = (/** @type {Buffer} */ bytes) => this.onBytes(bytes, execute);
    const { kOnHeadersComplete, kOnMessageComplete } = parser.constructor;
    const [onHead, onComplete] = [parser[kOnHeadersComplete], parser[kOnMessageComplete]];
    parser[kOnHeadersComplete] = (/** @type {object} */ head) => {
      onHead(head);
      return load.plan.method === 'HEAD'; // true: there is no body
    };
    // What nobody asked for is no answer.
    parser[kOnMessageComplete] = () => this.isBusy && onComplete();
  }

  /** @param {Buffer} bytes @param {(bytes: Buffer) => number | Error} execute */
  onBytes(bytes, execute) {
    const { client, load } = this;
    if (!this.isBusy) {
      this.mustConnect = true;
      return;
    }
    load.tally.bytes += bytes.length;
    if (!(execute.call(client.parser, bytes) instanceof Error)) return;
    client._destroyConnection();
    this.mustConnect = true;
    this.fail('unexpected');
    this.onFree();
  }

  onRequest() {
    this.isBusy = true;
    this.hasBegun = false;
    this.bodyBytes = 0;
    this.sentMs = performance.now();
    this.load.tally.addSent(this.sentMs);
  }

  /** @param {{ headers: string[], shouldKeepAlive: boolean }} head */
  onHead({ headers, shouldKeepAlive }) {
    this.hasBegun = true;
    if (!shouldKeepAlive) this.mustConnect = true;
    if (this.load.tally.server) return;
    const at = headers.findIndex((name, i) => i % 2 === 0 && name.toLowerCase() === 'server');
    if (at >= 0) this.load.tally.server = headers[at + 1];
  }

  /** @param {number} status */
  onAnswer(status) {
    if (!this.isBusy) return;
    this.isBusy = false;
    const { bodyBytes, sentMs, dueMs, load } = this;
    const nowMs = performance.now();
    load.tally.addAnswer({ status, bodyBytes, sentMs, dueMs: load.plan.rps > 0 ? dueMs : sentMs, nowMs });
  }

  /** Where a request is on its way. @param {import('../drone/causes.js').Cause} cause */
  fail(cause) {
    if (!this.isBusy) return;
    this.isBusy = false;
    this.load.fail(cause, this.hasBegun);
  }
}
