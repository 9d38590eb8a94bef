/*
 * Accepts connections for streams held in JS: counts them, asks the policy about their requests, and carries out its
 * decisions. listener.js is the node:http server in front. The states of a connection:
 *
 *     new --a request--> asked --hold--> held --a poll was answered--> idle
 *      |                   |----pass--> passed: the application's server takes over
 *      |                   |----answer, or refuse with 404 or 405--> idle --another request--> asked
 *      |                   |                                          \--none in time, or a drain--> gone
 *      |                   \----refuse, or no decision in time--------> answered
 *      |--a bad request, or none in time----------------------------> answered --the client closes, or
 *      |                                                                |     a second passes--> gone
 *      \--no room, and it is the oldest (idle ones too)-----------------\--> cut
 *
 * Requests that come while another one is asked about, or while a poll is held, wait for their turn.
 *
 * The native core passes on connections before reading from them. Here Node has already parsed the request, so the
 * application's server gets it as an event, as it does all later requests on the same connection.
 */
import { Server } from 'node:net';
import { performance } from 'node:perf_hooks';
import { plainAddress } from '../lib/addresses.js';
import { isPoll, isWebSocket } from '../native/protocol.js';
import { watchForMore } from './adopt.js';
import { Answers } from './answers.js';
import {
  ANSWERED,
  ASKED,
  destroySoon,
  HELD,
  IDLE,
  kError,
  kMore,
  kState,
  kStream,
  kVisit,
  NEW,
  PASSED,
} from './doorsocket.js';
import { reasonOfError, statusOfError } from './failures.js';
import { problemOf } from './handshake.js';
import { LateDecisions } from './late.js';
import { goOnAfter, listenOn, openServer, release } from './listener.js';
import { bareResponse, passOn } from './passing.js';
import { decisionOn, hasValidHost, headersNamed, headOf } from './policy.js';
import { Poll } from './poll.js';
import { headOfStream, responseOf } from './responses.js';
import { Room } from './room.js';
import { Waiting } from './waiting.js';

/** Requests of one client that may wait for those before them. Those that have come with them wait, too. */
const MOST_POSTPONED = 100;
/** How often errors of accepting are reported at most. */
const REPORT_EVERY_MS = 1000;

/** @typedef {import('./policy.js').Decision} Decision */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./passing.js').Call} Call */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */

/** @typedef {import('./doorsocket.js').DoorSocket} DoorSocket */
/** @typedef {import('./doorsocket.js').Visit} Visit */

export class Door {
  /**
   * @param {import('./options.js').Settings} settings
   * @param {number} connectionLimit
   * @param {import('./streams.js').Streams} streams
   * @param {import('./tally.js').Tally} tally updated here
   * @param {{ onClose: (id: number, reason: CloseReason) => void, onError: (error: unknown) => void }} listener
   */
  constructor(settings, connectionLimit, streams, tally, { onClose, onError }) {
    this.policy = settings.policy;
    this.names = new Set(settings.policy.headers);
    this.application = settings.server;
    this.keepAliveTimeoutMs = settings.keepAliveTimeoutMs;
    this.streams = streams;
    this.onClose = onClose;
    this.onError = onError;
    this.room = new Room(settings, connectionLimit, tally);
    this.answers = new Answers(this.room, tally);
    /** @type {Waiting<Visit>} requests whose decision is a promise */
    this.waiting = new Waiting(settings.answerTimeoutMs, (visit) => this.giveUp(visit));
    this.late = new LateDecisions(settings.answerTimeoutMs, onError);
    this.reportedMs = Number.NEGATIVE_INFINITY;
    this.server = openServer(this, settings);
  }

  /** @param {string} address '' for all @param {number} port @param {boolean} [_isTls] is never true here @returns {Promise<number>} the port */
  listen(address, port, _isTls) {
    return listenOn(this.server, address, port, (error) => this.reportAcceptError(error));
  }

  /** The system lacks a resource, such as descriptors. The streams stay open. @param {Error} error */
  reportAcceptError(error) {
    const nowMs = performance.now();
    if (nowMs < this.reportedMs + REPORT_EVERY_MS) return;
    this.reportedMs = nowMs;
    this.onError(error);
  }

  /**
   * Stops accepting, and soon cuts connections that carry no stream.
   * @returns {Promise<void>} resolves when the last connection is gone, not counting those that were passed on
   */
  async close() {
    // Unlike the close of node:http, this leaves connections open that wait for a request or were passed on.
    Server.prototype.close.call(this.server);
    await this.room.close();
    this.server.close();
  }

  /** @param {DoorSocket} socket */
  accept(socket) {
    socket[kState] = NEW;
    this.room.enter(socket);
  }

  /** @param {DoorSocket} socket that has closed or was passed on */
  leave(socket) {
    if (socket[kVisit]) this.waiting.delete(socket[kVisit]);
    this.room.leave(socket);
  }

  /**
   * A request arrived.
   * @param {IncomingMessage} request @param {Call} call
   */
  enter(request, call) {
    const socket = /** @type {DoorSocket} */ (request.socket);
    if (socket[kState] === PASSED && this.application) passOn(this.application, call);
    else if (socket[kState] === ASKED || socket[kStream] instanceof Poll) this.postpone(socket, call);
    else if (socket[kState] === HELD) this.endAsBad(socket);
    else if (socket[kState] === ANSWERED) request.resume();
    else this.ask(request, socket, call);
  }

  /** @param {DoorSocket} socket whose request waits for a decision or an answer @param {Call} call that came after it */
  postpone(socket, call) {
    socket[kMore] ??= [];
    if (socket[kMore].push(call) > MOST_POSTPONED) setImmediate(pauseCrowded, socket); // node resumes it in this turn
  }

  /** @param {DoorSocket} socket @returns {Call | undefined} what waits; the client may send more once few are left */
  nextOf(socket) {
    const { [kMore]: waiting } = socket;
    if (!waiting) return undefined;
    const next = waiting.shift();
    if (waiting.length > MOST_POSTPONED) setImmediate(pauseCrowded, socket);
    else socket.resume();
    return next;
  }

  /** @param {IncomingMessage} request @param {DoorSocket} socket @param {Call} call */
  ask(request, socket, call) {
    socket[kState] = ASKED;
    this.room.noteRequest(socket);
    const visit = { id: this.streams.nextId(), request, socket, call };
    if (!hasValidHost(request.rawHeaders)) return this.act(visit, { refuse: 400 });
    const head = this.headOf(request);
    const decision = decisionOn(this.policy, head, visit.id, this.onError);
    if (decision instanceof Promise) void this.wait(visit, decision);
    else this.act(visit, decision);
  }

  /** @param {IncomingMessage} request */
  headOf({ method = '', url = '', httpVersion, rawHeaders, socket }) {
    const headers = headersNamed(this.names, rawHeaders);
    const address = this.policy.address ? plainAddress(socket.remoteAddress) : undefined;
    return headOf(method, url, httpVersion, headers, address);
  }

  /** @param {Visit} visit @param {Promise<import('./policy.js').LateDecision>} promise may resolve too late */
  async wait(visit, promise) {
    visit.socket[kVisit] = visit;
    this.waiting.add(visit);
    const given = await promise;
    visit.socket[kVisit] = undefined;
    // In one step: nothing can be published between what the function sees and the stream.
    if (this.waiting.delete(visit)) this.act(visit, typeof given === 'function' ? given() : given);
    else if ('hold' in given) this.miss(visit);
  }

  /** Reports a request that was to be held, but was answered already, or whose client has left. @param {Visit} visit */
  miss({ id, socket }) {
    this.reportLater(id, socket[kState] === ANSWERED ? 'over-capacity' : 'client-gone');
  }

  /** The policy gets to know its decision before it is called with the outcome. @param {number} id @param {CloseReason} reason */
  reportLater(id, reason) {
    setImmediate(this.onClose, id, reason);
  }

  /** @param {Visit} visit whose decision did not come in time */
  giveUp(visit) {
    this.act(visit, { refuse: 503 });
    this.late.add();
  }

  /** @param {Visit} visit @param {Decision} decision */
  act(visit, decision) {
    const { request } = visit;
    const isHead = request.method === 'HEAD';
    if ('pass' in decision && this.application) return this.pass(visit, this.application);
    request.resume();
    if ('pass' in decision) this.answers.decline(visit, { refuse: 404 });
    else if ('refuse' in decision) this.answers.decline(visit, decision);
    else if ('answer' in decision) this.answers.respond(visit, responseOf(decision.answer, isHead));
    else if (isWebSocket(decision.hold)) this.upgrade(visit, decision);
    else if (isHead) {
      this.answers.respond(visit, headOfStream(decision.hold, decision.headers));
      this.reportLater(visit.id, 'drain');
    } else if (this.hasRoomFor(visit, decision)) this.hold(visit, decision);
  }

  /** @param {Visit} visit @param {import('./policy.js').HoldDecision} decision @returns {boolean} false if it was refused */
  hasRoomFor({ id, socket }, { channels = [] }) {
    if (!this.streams.isFull && this.streams.channels.hasRoomFor(channels)) return true;
    this.answers.refuse(socket, 503, false);
    this.onClose(id, 'over-capacity');
    return false;
  }

  /** @param {Visit} visit @param {import('./policy.js').HoldDecision} decision */
  hold(visit, decision) {
    const { id, request, socket, call } = visit;
    const response = call.response ?? bareResponse(request, socket);
    const stream = isPoll(decision.hold)
      ? this.openPoll(visit, response, decision)
      : this.streams.openings.open(id, response, decision);
    this.begin(socket, stream);
    if (!call.response) this.watchBare(socket, stream);
    else if (stream instanceof Poll) return; // what comes next waits
    if (socket[kMore]?.length || socket[kError]) this.endAsBad(socket);
  }

  /** @param {Visit} visit @param {import('node:http').ServerResponse} response @param {import('./policy.js').HoldDecision} decision */
  openPoll(visit, response, decision) {
    const goesOn = this.answers.mayGoOn(visit);
    if (goesOn) goOnAfter(response);
    return this.streams.openings.openPoll(visit.id, response, decision, goesOn ? 'kept' : 'closed');
  }

  /** Node no longer watches a connection that it has given to us. @param {DoorSocket} socket @param {import('./heldstream.js').HeldStream} stream */
  watchBare(socket, stream) {
    watchForMore(socket, () => this.endAsBad(socket));
    socket.once('end', () => this.streams.destroy(stream, 'client-gone'));
  }

  /** @param {DoorSocket} socket @param {import('./heldstream.js').HeldStream} stream */
  begin(socket, stream) {
    socket[kState] = HELD;
    socket[kStream] = stream;
    this.room.outside.delete(socket);
  }

  /** A request that asks for a WebSocket is an 'upgrade' event. @param {Visit} visit @param {import('./policy.js').HoldDecision} decision */
  upgrade(visit, decision) {
    const { request, call } = visit;
    const { status } = problemOf(request);
    if (status || call.response) this.refuseUpgrade(visit, status || 400);
    else this.holdWebSocket(visit, call.args[2], decision);
  }

  /** @param {Visit} visit @param {400 | 405 | 426} status */
  refuseUpgrade({ id, socket, request }, status) {
    this.answers.refuse(socket, status, request.method === 'HEAD');
    this.reportLater(id, 'bad-request');
  }

  /** @param {Visit} visit @param {Buffer} rest what the client has sent after its request @param {import('./policy.js').HoldDecision} decision */
  holdWebSocket(visit, rest, decision) {
    const { id, request, socket } = visit;
    if (!this.hasRoomFor(visit, decision)) return;
    const stream = this.streams.openings.openWebSocket(id, { request, socket, rest }, decision);
    if (stream) this.begin(socket, stream);
    else this.reportLater(id, 'client-gone');
  }

  /** What was written to the stream is still sent. @param {DoorSocket} socket whose client sent more although it carries a stream */
  endAsBad(socket) {
    if (!socket[kStream]) return;
    this.streams.close(socket[kStream], 'bad-request');
    destroySoon(socket);
  }

  /** @param {Visit} visit @param {import('node:http').Server} application */
  pass({ socket, call }, application) {
    socket[kState] = PASSED;
    release(socket);
    this.leave(socket);
    passOn(application, call);
    for (const later of socket[kMore] ?? []) passOn(application, later);
    socket[kMore] = undefined;
    socket.resume();
    if (socket[kError]) this.fail(socket, socket[kError]);
  }

  /** An answer was written. @param {DoorSocket} socket which node:http keeps, unless it has said otherwise */
  goOn(socket) {
    if (socket.destroyed) return;
    const isEnding = this.room.isClosing || (socket[kStream]?.reason ?? 'answered') !== 'answered';
    socket[kStream] = undefined;
    socket[kState] = isEnding ? ANSWERED : IDLE;
    this.room.outside.add(socket);
    if (isEnding) return socket.destroySoon();
    const next = this.nextOf(socket);
    if (next) return this.ask(next.args[0], socket, next);
    if (socket[kError]) return this.fail(socket, socket[kError]);
    socket.setTimeout(this.keepAliveTimeoutMs); // some versions of Node have added a second
    this.room.noteAnswer(socket);
  }

  /** @param {DoorSocket} socket @param {Error & { code?: string }} error of the parser or of the connection */
  fail(socket, error) {
    const code = error.code ?? '';
    const status = statusOfError(code);
    if (socket[kState] === PASSED && this.application?.listenerCount('clientError'))
      this.application.emit('clientError', error, socket);
    else if (socket[kStream] instanceof Poll && status && socket.writable) socket[kError] = error;
    else if (socket[kStream] && status) this.endAsBad(socket);
    else if (socket[kStream]) this.streams.destroy(socket[kStream], reasonOfError(code));
    else if (!status || !socket.writable) socket.destroy();
    else if (socket[kState] === ASKED) socket[kError] = error;
    else if (socket[kState] !== ANSWERED) this.answers.refuse(socket, status, false);
  }
}

/** @param {DoorSocket} socket that is read again once fewer of its requests wait */
function pauseCrowded(socket) {
  if ((socket[kMore]?.length ?? 0) > MOST_POSTPONED) socket.pause();
}
