/*
 * Makes WebSockets of requests of the application's own server: natively if the connection can leave JS, otherwise through ws.
 */
import { Duplex } from 'node:stream';
import { codeOf, HoldfastError } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { FORMATS, isWebSocket } from '../native/protocol.js';
import { isPlain } from './adopt.js';
import { Adopter } from './adopter.js';
import {
  badArgument,
  checkAdoptionBytes,
  checkedChannels,
  checkedHeaders,
  checkedLabels,
  checkFormatHeaders,
  checkKeys,
  checkPayload,
  checkTag,
} from './checks.js';
import { closed } from './failures.js';
import { acceptOf, problemOf } from './handshake.js';
import { answerOf, refusal, streamLines, withDate } from './responses.js';

const KEYS = ['channels', 'headers', 'labels', 'welcome', 'encoding', 'tag'];
/** How long a client may take to read a refusal. */
const LINGER_MS = 1000;
const NOTHING = Buffer.alloc(0);
/** Connections that are WebSockets. @type {WeakSet<object>} */
const taken = new WeakSet();

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('./adopt.js').HandledSocket} HandledSocket */

/**
 * `welcome`: the first message, or messages. `encoding`: what messages look like (see `decide`).
 * @typedef {{ channels?: readonly string[], headers?: Record<string, string>, labels?: import('./labels.js').Labels, welcome?: import('./policy.js').Bytes, encoding?: 'websocket' | 'websocketUpdates', tag?: string }} UpgradeOptions
 */
/** @typedef {Required<Pick<UpgradeOptions, 'channels' | 'headers' | 'encoding'>> & Pick<UpgradeOptions, 'labels' | 'welcome' | 'tag'>} Wish */

export class Upgrader extends Adopter {
  /**
   * Makes a WebSocket of a request, with what the 'upgrade' event of node:http or node:https has. If that is not possible, the
   * request is refused here: nobody else has to answer it. If the client has left, the stream opens and closes at once.
   * @param {IncomingMessage} request @param {Duplex} socket
   * @param {Uint8Array} head empty: a client has nothing to say before it has the response
   * @param {UpgradeOptions} [options]
   * @returns {Promise<number>} the id of the stream
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, CLOSED; BAD_ARGUMENT: then nothing was answered
   */
  async upgrade(request, socket, head, options = {}) {
    const wish = wishOf(options);
    checkEvent(request, socket, head);
    const connection = /** @type {HandledSocket} */ (socket);
    const opening = this.shards && isPlain(connection) ? openingOf(request, wish) : '';
    checkAdoptionBytes(wish.channels, opening);
    if (taken.has(socket)) throw notUpgradable('its connection is a WebSocket already');
    if (socket.destroyed) return this.streams.miss('client-gone');
    const { status, why } = problemWith(request, socket, head);
    if (status) {
      this.turnDown(connection, status);
      throw notUpgradable(why);
    }
    return this.begin(request, connection, opening, wish);
  }

  /** @param {IncomingMessage} request @param {HandledSocket} connection @param {string} opening '' to hold it in JS @param {Wish} wish */
  async begin(request, connection, opening, wish) {
    connection.on('error', destroySocket); // node has removed its own listener
    taken.add(connection);
    this.adopting++;
    try {
      if (this.isDraining) throw closed();
      return opening === ''
        ? this.upgradeInJs(request, connection, wish)
        : await this.giveAway(connection, opening, wish);
    } catch (error) {
      if (codeOf(error) === 'CLIENT_GONE') return this.streams.miss('client-gone');
      this.turnDown(connection, 503);
      throw error;
    } finally {
      this.adopting--;
    }
  }

  /** The native core writes the response, so nothing that the client says after it can get lost here. @param {HandledSocket} connection @param {string} opening @param {Wish} wish */
  async giveAway(connection, opening, { channels, labels, welcome, encoding, tag }) {
    const shards = /** @type {import('./shards.js').Shards} */ (this.shards);
    // Nothing comes before the welcome.
    const first = welcome === undefined ? channels : [];
    const id = await shards.adoptions.adopt(connection, encoding, false, first, opening);
    if (labels) shards.label(id, labels);
    if (tag) shards.tag(id, tag);
    if (welcome === undefined) return id;
    shards.writeTo(id, welcome);
    for (const channel of channels) shards.subscribe(id, channel);
    return id;
  }

  /** @param {IncomingMessage} request @param {HandledSocket} connection @param {Wish} wish */
  upgradeInJs(request, connection, { channels, headers, labels, welcome, encoding }) {
    this.checkRoomInJs(channels);
    const decision = { hold: encoding, channels, headers, labels, welcome };
    const upgrade = { request, socket: connection, rest: NOTHING };
    const stream = this.streams.openings.openWebSocket(this.streams.nextId(), upgrade, decision);
    if (!stream) return this.streams.miss('client-gone');
    this.streams.markAdopted(stream);
    return stream.id;
  }

  /** Answers in place of the application. @param {HandledSocket} connection @param {number} status */
  turnDown(connection, status) {
    if (connection.destroyed) return;
    this.streams.tally.refuse(status);
    const { head, body } = answerOf(refusal({ refuse: status }), false);
    connection.end(withDate(`${head}Connection: close\r\n`, body));
    connection.resume();
    setTimeout(() => connection.destroy(), LINGER_MS).unref();
  }
}

/** @param {UpgradeOptions} options @returns {Wish} checked @throws {HoldfastError} BAD_ARGUMENT */
function wishOf(options) {
  checkKeys('upgrade', options, KEYS);
  const { encoding = 'websocket', welcome, labels, tag } = options;
  if (!Object.hasOwn(FORMATS, encoding) || !isWebSocket(encoding))
    throw badArgument(
      `the encoding of a WebSocket is 'websocket' or 'websocketUpdates', not ${shown(encoding)}`,
    );
  const channels = checkedChannels(options.channels ?? []);
  const headers = checkedHeaders(options.headers) ?? {};
  checkFormatHeaders(encoding, headers);
  if (welcome !== undefined) checkPayload(welcome);
  checkTag(tag);
  return { channels, headers, encoding, welcome, tag, labels: labels && checkedLabels(labels) };
}

/** @param {IncomingMessage} request @param {Duplex} socket @param {Uint8Array} head @throws {HoldfastError} BAD_ARGUMENT */
function checkEvent(request, socket, head) {
  if (typeof request?.headers === 'object' && socket instanceof Duplex && head instanceof Uint8Array) return;
  throw badArgument(
    "upgrade takes what the 'upgrade' event of a server has: the request, its socket and the head",
  );
}

/** @param {IncomingMessage} request @param {Duplex} socket @param {Uint8Array} head @returns {ReturnType<typeof problemOf>} */
function problemWith(request, socket, head) {
  const problem = problemOf(request);
  if (problem.status || (head.length === 0 && socket.readableLength === 0)) return problem;
  return { status: 400, why: 'its client has said something before it got the response' };
}

/** @param {IncomingMessage} request @param {Wish} wish @returns {string} Latin-1: the complete head of the response */
function openingOf({ headers }, { encoding, headers: own }) {
  const lines = `${streamLines(encoding, false, own)}Sec-WebSocket-Accept: ${acceptOf(headers['sec-websocket-key'] ?? '')}\r\n`;
  return withDate(lines, NOTHING).toString('latin1');
}

/** @this {HandledSocket} */
function destroySocket() {
  this.destroy();
}

/** @param {string} why */
function notUpgradable(why) {
  return new HoldfastError('NOT_ADOPTABLE', `the request can't become a WebSocket: ${why}`);
}
