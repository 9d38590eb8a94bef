/*
 * One poll held in JS: a request that waits for its answer. What it says is the same as from the native core
 * (native/core/src/shard/poll.rs).
 */
import { validateHeaderValue } from 'node:http';
import { HeldStream } from './heldstream.js';
import { POLL_TYPE, streamHeaders } from './responses.js';
import { closeAfter, watchResponse } from './stream.js';

/** How often all of them are looked at. */
const SWEEP_MS = 250;

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('./adopt.js').HandledResponse} HandledResponse */

/**
 * What becomes of the connection after its answer: another request may follow, or it ends, or that is up to the application's server.
 * @typedef {'kept' | 'closed' | 'theirs'} Afterwards
 */

export class Poll extends HeldStream {
  /**
   * @param {number} id
   * @param {import('node:http').ServerResponse} response that has not sent anything yet
   * @param {Format} format
   * @param {{ waitMs: number, headers?: Record<string, string>, afterwards: Afterwards }} how
   */
  constructor(id, response, format, { waitMs, headers, afterwards }) {
    super(id, format);
    this.response = /** @type {HandledResponse} */ (response);
    this.headers = headers;
    this.afterwards = afterwards;
    this.untilMs = performance.now() + waitMs;
    /** What its answer contains, once there is something: JSON. @type {string[]} */
    this.messages = [];
    /** The id of the last message. @type {string | undefined} */
    this.lastId = undefined;
  }

  get isEnded() {
    return this.response.writableEnded;
  }

  watch() {
    watchResponse(this, this.response);
  }

  /** Everything that is published in the same turn is in the same answer. @param {import('./encodings.js').Encoded} message */
  deliver(message) {
    const line = message.in(this.encoding).toString();
    this.lastId = message.message.id;
    if (this.messages.push(line.trimEnd()) === 1) queueMicrotask(() => this.owner?.close(this, 'answered'));
    return 0;
  }

  /**
   * @param {string | undefined} cursor for an answer without messages
   * @param {boolean} mayGoOn whether its client may send another request
   * @returns {number} bytes on the wire
   */
  answer(cursor, mayGoOn) {
    const { response, messages } = this;
    if (response.writableEnded || response.headersSent) return 0;
    const position = messages.length > 0 ? this.lastId : cursor;
    const body = messages.length > 0 ? bodyOf(messages, position) : '';
    response.statusCode = messages.length > 0 ? 200 : 204;
    for (const [name, value] of this.fields(body, position))
      if (this.afterwards !== 'theirs' || !response.hasHeader(name)) response.setHeader(name, value);
    this.setConnection(mayGoOn);
    response.end(Buffer.from(body)); // node would write the head together with a string, as UTF-8
    return (response._header ?? '').length + Buffer.byteLength(body);
  }

  /** @param {string} body @param {string | undefined} position @returns {[name: string, value: string][]} */
  fields(body, position) {
    /** @type {[string, string][]} */
    const fields = [];
    if (body !== '')
      fields.push(['Content-Type', POLL_TYPE], ['Content-Length', `${Buffer.byteLength(body)}`]);
    if (position !== undefined) fields.push(...positionField(position));
    return [...fields, ...Object.entries(streamHeaders('poll', this.headers))];
  }

  /** @param {boolean} mayGoOn */
  setConnection(mayGoOn) {
    const { response, afterwards } = this;
    if (response.stream) return; // HTTP/2
    if (!mayGoOn || afterwards === 'closed') {
      response.setHeader('Connection', 'close');
      closeAfter(response);
    } else if (afterwards === 'kept') keepConnection(response);
  }

  destroy() {
    this.response.destroy();
  }
}

/** Says only to a client of HTTP/1.0 that its connection is kept. @param {import('node:http').ServerResponse} response */
export function keepConnection(response) {
  if (response.req.httpVersion === '1.0') response.setHeader('Connection', 'keep-alive');
  else response.removeHeader('Connection');
}

/** @param {readonly string[]} messages JSON @param {string | undefined} cursor */
function bodyOf(messages, cursor) {
  const member = cursor === undefined ? '' : `,"cursor":${JSON.stringify(cursor)}`;
  return `{"messages":[${messages.join(',')}]${member}}\n`;
}

/** @param {string} id @returns {[string, string][]} none if the id can't be in a header; its bytes are those of UTF-8 */
function positionField(id) {
  const value = Buffer.from(id).toString('latin1');
  try {
    validateHeaderValue('Last-Event-ID', value);
    return [['Last-Event-ID', value]];
  } catch {
    return [];
  }
}

/** All polls that are held in JS, with one timer. */
export class Polls {
  /** @param {(poll: Poll) => void} onOver called for each whose time is over */
  constructor(onOver) {
    this.onOver = onOver;
    /** @type {Set<Poll>} */
    this.waiting = new Set();
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.sweep = this.sweep.bind(this);
  }

  /** @param {Poll} poll */
  add(poll) {
    this.waiting.add(poll);
    this.timer ??= setInterval(this.sweep, SWEEP_MS).unref();
  }

  /** @param {Poll} poll */
  delete(poll) {
    this.waiting.delete(poll);
    if (this.waiting.size > 0) return;
    clearInterval(this.timer);
    this.timer = undefined;
  }

  sweep() {
    const nowMs = performance.now();
    for (const poll of this.waiting) if (poll.untilMs <= nowMs) this.onOver(poll);
  }
}
