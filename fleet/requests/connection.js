/*
 * One connection of a load: an undici Client that has at most one request in flight. It connects when it has a
 * request, and keeps the connection for as long as the server does.
 *
 *     waiting for its turn --take--> busy --answered or failed--> waiting … --leave--> closed
 */
import { buildConnector, Client, errors } from 'undici';
import { codeOf, messageOf } from '../../lib/errors.js';
import { causeOf } from '../drone/causes.js';
import { Exchange } from './exchange.js';

/** How long an idle connection is kept, unless the server's Keep-Alive header says less. */
const IDLE_MS = 86_400_000;

/** Each request has a deadline of its own, so undici needs none; certificates aren't checked. */
const openSocket = buildConnector({ timeout: 0, rejectUnauthorized: false });

/** @typedef {import('../drone/causes.js').Cause} Cause */

export class Connection {
  /** @param {import('./load.js').Load} load */
  constructor(load) {
    this.load = load;
    /** What is in flight. @type {Exchange | null} */
    this.exchange = null;
    /** @type {import('node:net').Socket | null} */
    this.socket = null;
    /** Bytes of the socket that the tally has already. */
    this.countedBytes = 0;
    this.client = this.createClient();
  }

  createClient() {
    return new Client(this.load.plan.origin, {
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      connect: (options, callback) => this.connect(options, callback),
    });
  }

  /** @type {import('undici').buildConnector.connector} */
  connect(options, callback) {
    this.exchange?.begin();
    this.countedBytes = 0;
    this.socket = /** @type {any} */ (openSocket(options, callback)); // undici's types don't say what it returns
  }

  /** Sends a request. @param {number} dueMs */
  take(dueMs) {
    this.exchange = new Exchange(this, dueMs);
    this.load.tally.addSent(this.exchange.takenMs);
    this.client.dispatch(this.load.request, this.exchange);
  }

  /** @param {Exchange} exchange */
  onAnswered(exchange) {
    this.countBytes();
    this.load.onAnswered(exchange);
    this.release();
  }

  /** @param {Exchange} exchange @param {Error} error */
  onFailed(exchange, error) {
    this.countBytes();
    const hasEnded = this.socket?.readableEnded ?? false;
    this.load.onFailed(failureOf(error, hasEnded), exchange, messageOf(error) || codeOf(error));
    this.release();
  }

  /** Fails the request in flight if it has taken too long. @param {number} nowMs */
  checkDeadline(nowMs) {
    const { exchange, load } = this;
    if (!exchange || nowMs - exchange.takenMs < load.plan.timeoutMs) return;
    this.close();
    this.client = this.createClient();
    load.onFailed('timeout', exchange, '');
    this.release();
  }

  /** Waits for its next request: not before undici is done with this one. */
  release() {
    this.exchange = null;
    queueMicrotask(() => this.load.pacer.wait(this));
  }

  /** The socket knows what it has read; heads and chunk sizes are among it. */
  countBytes() {
    const { bytesRead = 0 } = this.socket ?? {};
    this.load.tally.bytes += bytesRead - this.countedBytes;
    this.countedBytes = bytesRead;
  }

  /** There are no more requests for it. */
  leave() {
    this.close();
    this.load.onLeft();
  }

  /** Closes it at once. */
  close() {
    this.exchange?.abandon();
    this.countBytes();
    this.client.destroy();
    this.socket?.destroy(); // which may still be connecting
  }
}

/** @param {Error} error @param {boolean} hasEnded whether the server has closed the connection @returns {Cause} */
function failureOf(error, hasEnded) {
  const { HTTPParserError, HeadersOverflowError, ResponseContentLengthMismatchError, SocketError } = errors;
  const isOfAnswer =
    error instanceof HTTPParserError ||
    error instanceof HeadersOverflowError ||
    error instanceof ResponseContentLengthMismatchError ||
    error instanceof SocketError;
  // An answer that is incomplete when the connection ends, or one that isn't HTTP.
  if (isOfAnswer) return hasEnded ? 'closed' : 'unexpected';
  return causeOf(codeOf(error));
}
