/*
 * What a door (door.js) answers by itself: refusals and complete responses. A connection ends with its answer, or its client may
 * send another request.
 */
import { REFUSAL_STATUSES } from '../lib/reasons.js';
import { ANSWERED, destroySoon, kState } from './doorsocket.js';
import { goOnAfter } from './listener.js';
import { keepConnection } from './poll.js';
import { headLines, nameOf, refusal, responseOf, withDate } from './responses.js';

/** Refusals of the native core after which the connection goes on. */
const HARMLESS = [404, 405];

/** @typedef {import('./doorsocket.js').DoorSocket} DoorSocket */
/** @typedef {import('./doorsocket.js').Visit} Visit */
/** @typedef {import('./responses.js').Response} Response */

export class Answers {
  /**
   * @param {import('./room.js').Room} room
   * @param {import('./tally.js').Tally} tally updated here
   */
  constructor(room, tally) {
    this.room = room;
    this.tally = tally;
  }

  /** Refuses a request as the policy wants. @param {Visit} visit @param {import('./policy.js').Refusal} decision */
  decline(visit, decision) {
    const { refuse: status, headers, body } = decision;
    const isHead = visit.request.method === 'HEAD';
    const isOurs = REFUSAL_STATUSES.some((own) => own === status) && !headers && body === undefined;
    if (isOurs && !HARMLESS.includes(status)) return this.refuse(visit.socket, status, isHead);
    this.tally.refuse(status);
    this.respond(visit, responseOf(refusal(decision), isHead));
  }

  /** Refuses what came last on a connection, and ends it. @param {DoorSocket} socket @param {number} status @param {boolean} isHead */
  refuse(socket, status, isHead) {
    this.tally.refuse(status);
    this.respondLast(socket, responseOf(refusal({ refuse: status }), isHead));
  }

  /** Answers, and goes on with the connection if that is possible. @param {Visit} visit @param {Response} response */
  respond(visit, response) {
    const { socket, call } = visit;
    if (!call.response || !this.mayGoOn(visit)) return this.respondLast(socket, response);
    goOnAfter(call.response);
    writeResponse(call.response, response);
  }

  /** @param {Visit} visit @returns {boolean} whether the client may send another request, once this one is answered */
  mayGoOn({ request, call }) {
    const { 'transfer-encoding': coding, 'content-length': length = '0', expect } = request.headers;
    const hasBody = coding !== undefined || Number(length) !== 0;
    const isDone = !hasBody && expect === undefined; // node:http ends the connection if it has not sent 100
    return call.response?.shouldKeepAlive === true && isDone && !this.room.isClosing;
  }

  /** Answers, and ends the connection once its client has read that. @param {DoorSocket} socket @param {Response} response */
  respondLast(socket, response) {
    socket[kState] = ANSWERED;
    this.room.noteAnswer(socket);
    endWith(socket, response);
  }
}

/** Answers, and ends the connection once its client has had time to read that. @param {DoorSocket} socket @param {Response} response */
export function endWith(socket, { status, headers, body }) {
  socket.end(withDate(`${headLines(status, headers)}Connection: close\r\n`, body));
  socket.resume();
  destroySoon(socket);
}

/** @param {import('node:http').ServerResponse} response after which the connection goes on @param {Response} what */
function writeResponse(response, { status, headers, body }) {
  response.statusCode = status;
  response.statusMessage = nameOf(status);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  keepConnection(response);
  response.end(body);
}
