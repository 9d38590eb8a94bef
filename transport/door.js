/*
 * The door for streams held in JS: it counts connections, asks the policy about their requests, and lets in those that
 * are held. A connection moves so:
 *
 *     new --a request--> asked --hold--> held
 *      |                   |----pass--> passed: the business of the application's server
 *      |                   \----refuse, answer, or no decision in time--> answered
 *      |--a bad request, or none in time--------------------------------> answered --the client closes, or
 *      \--over the limit--> cut                                               a second passes--> gone
 *
 * The native core passes on a connection of which nothing was read. Here node has parsed the request, so the
 * application's server gets it as an event, and all that follow on the same connection.
 */
import { Server } from 'node:net';
import { performance } from 'node:perf_hooks';
import { watchForMore } from './adopt.js';
import { listenOn, openServer, release } from './listener.js';
import { bareResponse, passOn } from './passing.js';
import { decisionOn, headOf } from './policy.js';
import { answerOf, refusal, streamLines, withDate } from './responses.js';
import { reasonOfError } from './streams.js';
import { Waiting } from './waiting.js';

/**
 * How long an answered client may take to read and close before it is cut. A connection closed at once, with bytes of
 * the client unread, would be reset, and the answer lost.
 */
const LINGER_MS = 1000;
const REPORT_EVERY_MS = 1000;
const NO_BODY = Buffer.alloc(0);

const NEW = 0;
const ASKED = 1;
const HELD = 2;
const PASSED = 3;
const ANSWERED = 4;

const kState = Symbol('state');
const kVisit = Symbol('visit');
const kStream = Symbol('stream');
const kMore = Symbol('more');
const kError = Symbol('error');

/** @typedef {import('./policy.js').Decision} Decision */
/** @typedef {import('./passing.js').Call} Call */
/** @typedef {import('../lib/reasons.js').RefusalStatus} RefusalStatus */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */

/**
 * A connection with our marks: its state, the request that waits for a decision, its stream, and what the client sent
 * while it waited: requests, and then perhaps what is none.
 * @typedef {import('node:net').Socket & { [kState]?: number, [kVisit]?: Visit, [kStream]?: import('./stream.js').Stream, [kMore]?: Call[], [kError]?: Error }} DoorSocket
 */

/**
 * A request that the policy is asked about.
 * @typedef {object} Visit
 * @property {number} id of the stream that it may become
 * @property {IncomingMessage} request
 * @property {DoorSocket} socket
 * @property {Call} call
 */

export class Door {
  /**
   * @param {import('./options.js').Settings} settings
   * @param {number} connectionLimit
   * @param {import('./streams.js').Streams} streams which takes what is held
   * @param {import('./tally.js').Tally} tally counted up here
   * @param {{ onClose: (id: number, reason: import('../lib/reasons.js').CloseReason) => void, onError: (error: unknown) => void }} listener
   */
  constructor(settings, connectionLimit, streams, tally, { onClose, onError }) {
    this.policy = settings.policy;
    this.names = new Set(settings.policy.headers);
    this.application = settings.server;
    this.connectionLimit = connectionLimit;
    this.streams = streams;
    this.tally = tally;
    this.onClose = onClose;
    this.onError = onError;
    /** @type {Set<DoorSocket>} connections that carry no stream and were not passed on */
    this.outside = new Set();
    /** @type {Waiting<Visit>} for a promised decision */
    this.waiting = new Waiting(settings.answerTimeoutMs, (visit) => this.act(visit, { refuse: 503 }));
    this.connections = 0;
    this.onEmpty = () => {};
    this.reportedMs = Number.NEGATIVE_INFINITY;
    this.server = openServer(this, settings);
  }

  /** @param {string} address '' for all @param {number} port @returns {Promise<number>} the port */
  listen(address, port) {
    return listenOn(this.server, address, port, (error) => this.reportAcceptError(error));
  }

  /** The system is short of something: said once a second. The streams stay. @param {Error} error */
  reportAcceptError(error) {
    const nowMs = performance.now();
    if (nowMs < this.reportedMs + REPORT_EVERY_MS) return;
    this.reportedMs = nowMs;
    this.onError(error);
  }

  /**
   * Accepts no more, and cuts after a moment what carries no stream.
   * @returns {Promise<void>} when the last connection that was not passed on is gone
   */
  async close() {
    // Not as node:http does it, which would cut connections whose request has not come, and those that were passed on.
    Server.prototype.close.call(this.server);
    const empty = new Promise((resolve) => {
      this.onEmpty = () => resolve(undefined);
      if (this.connections === 0) this.onEmpty();
    });
    const cut = setTimeout(() => this.outside.forEach(destroySocket), LINGER_MS);
    await empty;
    clearTimeout(cut);
    this.server.close();
  }

  /** @param {DoorSocket} socket */
  accept(socket) {
    this.connections++;
    this.tally.counts.connections++;
    this.outside.add(socket);
    socket[kState] = NEW;
    if (this.connections <= this.connectionLimit) return;
    this.tally.counts.cut++;
    socket.destroy();
  }

  /** @param {DoorSocket} socket that is closed, or was passed on */
  leave(socket) {
    if (socket[kVisit]) this.waiting.delete(socket[kVisit]);
    this.outside.delete(socket);
    this.connections--;
    this.tally.counts.connections--;
    if (this.connections === 0) this.onEmpty();
  }

  /**
   * A request came on a connection.
   * @param {IncomingMessage} request @param {Call} call
   */
  enter(request, call) {
    const socket = /** @type {DoorSocket} */ (request.socket);
    if (socket[kState] === PASSED && this.application) passOn(this.application, call);
    else if (socket[kState] === HELD) this.destroyAsBad(socket);
    else if (socket[kState] === ASKED) this.postpone(socket, call);
    else if (socket[kState] === ANSWERED) request.resume();
    else this.ask(request, socket, call);
  }

  /** @param {DoorSocket} socket whose request waits for a decision @param {Call} call that came after it */
  postpone(socket, call) {
    socket[kMore] ??= [];
    socket[kMore].push(call);
  }

  /** @param {IncomingMessage} request @param {DoorSocket} socket @param {Call} call */
  ask(request, socket, call) {
    socket[kState] = ASKED;
    const { method = '', url = '', httpVersion, rawHeaders } = request;
    const visit = { id: this.streams.nextId(), request, socket, call };
    const head = headOf(method, url, httpVersion, this.headersOf(rawHeaders));
    const decision = decisionOn(this.policy, head, visit.id, this.onError);
    if (decision instanceof Promise) void this.wait(visit, decision);
    else this.act(visit, decision);
  }

  /** @param {Visit} visit @param {Promise<Decision>} promise of a decision that may come too late */
  async wait(visit, promise) {
    visit.socket[kVisit] = visit;
    this.waiting.add(visit);
    const decision = await promise;
    visit.socket[kVisit] = undefined;
    if (this.waiting.delete(visit)) this.act(visit, decision);
  }

  /**
   * The headers that the policy reads, the values of one joined as the native core does.
   * @param {string[]} rawHeaders name, value, name…
   */
  headersOf(rawHeaders) {
    /** @type {Record<string, string>} */
    const headers = {};
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i].toLowerCase();
      if (!this.names.has(name)) continue;
      headers[name] = Object.hasOwn(headers, name)
        ? `${headers[name]}, ${rawHeaders[i + 1]}`
        : rawHeaders[i + 1];
    }
    return headers;
  }

  /** @param {Visit} visit @param {Decision} decision */
  act(visit, decision) {
    const { request, socket } = visit;
    const isHead = request.method === 'HEAD';
    if ('pass' in decision && this.application) return this.pass(visit, this.application);
    request.resume();
    if ('pass' in decision) this.refuse(socket, 404, isHead);
    else if ('refuse' in decision) this.refuse(socket, decision.refuse, isHead);
    else if ('answer' in decision) this.answer(socket, decision.answer, isHead);
    else if (isHead) {
      const head = streamLines(decision.hold, false, decision.headers);
      this.write(socket, withDate(head, NO_BODY));
    } else this.hold(visit, decision);
  }

  /** @param {Visit} visit @param {import('./policy.js').HoldDecision} decision */
  hold({ id, request, socket, call }, decision) {
    if (this.streams.isFull) {
      this.refuse(socket, 503, false);
      return this.onClose(id, 'over-capacity');
    }
    const response = call.response ?? bareResponse(request, socket);
    const stream = this.streams.open(id, response, decision);
    socket[kState] = HELD;
    socket[kStream] = stream;
    this.outside.delete(socket);
    if (!call.response) {
      watchForMore(socket, () => this.destroyAsBad(socket));
      socket.once('end', () => this.streams.destroy(stream, 'client-gone')); // node does not look at it any more
    }
    if (socket[kMore] || socket[kError]) this.destroyAsBad(socket);
  }

  /** @param {DoorSocket} socket whose client sent more on a stream */
  destroyAsBad(socket) {
    if (socket[kStream]) this.streams.destroy(socket[kStream], 'bad-request');
  }

  /** @param {Visit} visit @param {import('node:http').Server} application */
  pass({ socket, call }, application) {
    socket[kState] = PASSED;
    release(socket);
    this.leave(socket);
    passOn(application, call);
    for (const later of socket[kMore] ?? []) passOn(application, later);
    if (socket[kError]) this.fail(socket, socket[kError]);
  }

  /** @param {DoorSocket} socket @param {RefusalStatus} status @param {boolean} isHead */
  refuse(socket, status, isHead) {
    this.tally.refused[status]++;
    this.answer(socket, refusal(status), isHead);
  }

  /** @param {DoorSocket} socket @param {import('./policy.js').Answer} answer @param {boolean} isHead */
  answer(socket, answer, isHead) {
    const { head, body } = answerOf(answer, isHead);
    this.write(socket, withDate(head, body));
  }

  /** @param {DoorSocket} socket @param {Buffer} response a whole one, after which the connection ends */
  write(socket, response) {
    socket[kState] = ANSWERED;
    socket.end(response);
    socket.resume();
    setTimeout(destroySocket, LINGER_MS, socket).unref();
  }

  /** @param {DoorSocket} socket @param {Error & { code?: string }} error of the parser or of the connection */
  fail(socket, error) {
    const code = error.code ?? '';
    const status = statusOf(code);
    if (socket[kState] === PASSED && this.application?.listenerCount('clientError'))
      this.application.emit('clientError', error, socket);
    else if (socket[kStream]) this.streams.destroy(socket[kStream], reasonOfError(code));
    else if (!status || !socket.writable) socket.destroy();
    else if (socket[kState] === ASKED) socket[kError] = error;
    else if (socket[kState] !== ANSWERED) this.refuse(socket, status, false);
  }
}

/** @param {string} code @returns {RefusalStatus | 0} 0 where nobody is there to answer */
function statusOf(code) {
  if (code === 'HPE_HEADER_OVERFLOW') return 431;
  if (code === 'HPE_INVALID_VERSION') return 505;
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 408;
  return code.startsWith('HPE_') ? 400 : 0;
}

/** @param {import('node:net').Socket} socket */
function destroySocket(socket) {
  socket.destroy();
}
