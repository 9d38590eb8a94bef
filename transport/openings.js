/*
 * Opens streams that are held in JS: it makes one of a response or a connection, and writes what comes first.
 */
import { Poll } from './poll.js';
import { streamHeaders, WAIT_MS, welcomesOf } from './responses.js';
import { CompressedStream, Stream } from './stream.js';
import { Upgrades, WebSocketStream } from './websocket.js';

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('./heldstream.js').HeldStream} HeldStream */
/** @typedef {import('./policy.js').HoldDecision} HoldDecision */
/** @typedef {import('node:http').ServerResponse} ServerResponse */

export class Openings {
  /**
   * @param {import('./streams.js').Streams} streams which they are added to
   * @param {number} maxMessageBytes of clients of WebSockets
   */
  constructor(streams, maxMessageBytes) {
    this.streams = streams;
    this.counts = streams.tally.counts;
    this.upgrades = new Upgrades(maxMessageBytes);
    this.welcomes = 0;
  }

  /**
   * Opens a stream on a response that has not sent anything yet.
   * @param {number} id @param {ServerResponse} response @param {HoldDecision} decision
   * @returns {Stream}
   */
  open(id, response, { hold: format, headers, welcome, channels, labels }) {
    const stream = new Stream(id, response, format);
    response.writeHead(200, streamHeaders(format, headers));
    const bytes = this.welcomeIn(welcomesOf(welcome));
    if (bytes.length > 0) response.write(bytes);
    else response.flushHeaders();
    this.counts.bytesWritten += response.socket?.bytesWritten ?? 0;
    this.begin(stream, channels, labels);
    return stream;
  }

  /**
   * Opens a poll on a response that has not sent anything yet.
   * @param {number} id @param {ServerResponse} response @param {HoldDecision} decision
   * @param {import('./poll.js').Afterwards} afterwards
   * @returns {Poll}
   */
  openPoll(id, response, { hold: format, headers, channels = [], labels, waitMs = WAIT_MS }, afterwards) {
    const poll = new Poll(id, response, format, { waitMs, headers, afterwards });
    this.streams.add(poll, channels, labels);
    return poll;
  }

  /**
   * Opens a WebSocket.
   * @param {number} id @param {import('./websocket.js').Upgrade} upgrade @param {HoldDecision} decision
   * @returns {WebSocketStream | undefined} undefined if the client has left
   */
  openWebSocket(id, upgrade, { hold: format, headers = {}, welcome, channels, labels }) {
    const bytesBefore = upgrade.socket.bytesWritten;
    const socket = this.upgrades.open(upgrade, headers);
    if (!socket) return undefined;
    const stream = new WebSocketStream(id, socket, format, upgrade.socket);
    this.counts.bytesWritten += upgrade.socket.bytesWritten - bytesBefore;
    this.counts.bytesWritten += stream.write(this.welcomeIn(welcomesOf(welcome)));
    this.begin(stream, channels, labels);
    return stream;
  }

  /**
   * Takes over a response whose head was sent.
   * @param {ServerResponse} response
   * @param {{ encoding: Format, channels: readonly string[], isCompressed: boolean }} how
   * @returns {Stream}
   */
  adopt(response, { encoding, channels, isCompressed }) {
    const Kind = isCompressed ? CompressedStream : Stream;
    const stream = new Kind(this.streams.nextId(), response, encoding);
    this.streams.markAdopted(stream);
    this.streams.add(stream, channels);
    return stream;
  }

  /** A welcome never makes a stream slow. @param {HeldStream} stream @param {readonly string[]} [channels] @param {import('./labels.js').Labels} [labels] */
  begin(stream, channels = [], labels) {
    this.streams.add(stream, channels, labels);
    this.streams.backlogs.noteExemptWrite(stream, stream.backlogBytes);
  }

  /** @param {readonly import('./policy.js').Bytes[]} variants used in turn */
  welcomeIn(variants) {
    const variant = variants[this.welcomes++ % variants.length] ?? '';
    return Buffer.from(/** @type {Uint8Array} */ (variant)); // a copy, because the application may change its own
  }
}
