/*
 * Streams held in JS: all of them without the native core, and with it those that it can't adopt. The states of a stream:
 *
 *     held --close(reason)--> ending --everything written was sent--> gone
 *        \---destroy(reason)-------------------------------------------^
 */
import { Backlogs } from './backlogs.js';
import { Channels, NONE } from './channels.js';
import { Encoded } from './encodings.js';
import { closeEvenly } from './evenly.js';
import { reasonOfEnd } from './failures.js';
import { Pinger } from './pinger.js';
import { streamHeaders, welcomesOf } from './responses.js';
import { CompressedStream, Stream } from './stream.js';

/** Ids of streams held in JS have a shard number (the top 8 of 53 bits) that no native shard has. */
const FIRST_ID = 255 * 2 ** 45;

const kStream = Symbol('stream');
const kStreams = Symbol('streams');

/** @typedef {import('../native/protocol.js').Encoding} Encoding */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/**
 * Our marks on a response, instead of a closure for each.
 * @typedef {import('node:http').ServerResponse & { [kStream]?: Stream, [kStreams]?: Streams }} MarkedResponse
 */

/** @param {number} id of a stream @returns {boolean} whether that stream is held in JS */
export function isInJs(id) {
  return id >= FIRST_ID;
}

export class Streams {
  /**
   * @param {Pick<import('./options.js').Settings, 'ping' | 'pingIntervalMs' | 'maxBacklogBytes'>} settings
   * @param {{ capacity: number, maxChannelBytes: number }} limits
   * @param {import('./tally.js').Tally} tally updated here
   * @param {(id: number, reason: CloseReason) => void} onClose
   */
  constructor({ ping, pingIntervalMs, maxBacklogBytes }, { capacity, maxChannelBytes }, tally, onClose) {
    this.capacity = capacity;
    this.tally = tally;
    this.onClose = onClose;
    this.pings = { text: Buffer.from(ping.text), events: Buffer.from(ping.events) };
    /** @type {Map<number, Stream>} held and ending streams */
    this.byId = new Map();
    /** @type {Channels<Stream>} */
    this.channels = new Channels(maxChannelBytes);
    /** @type {Pinger<Stream>} */
    this.pinger = new Pinger(pingIntervalMs, (stream, lateMs) => this.ping(stream, lateMs));
    /** @type {Backlogs<Stream>} */
    this.backlogs = new Backlogs(maxBacklogBytes);
    this.lastId = FIRST_ID - 1;
    this.welcomes = 0;
    this.isDraining = false;
    this.onEmpty = () => {};
  }

  /** @returns {number} an id for a request that may become a stream */
  nextId() {
    return ++this.lastId;
  }

  get isFull() {
    return this.isDraining || this.byId.size >= this.capacity;
  }

  /**
   * Opens a stream on a response that has not sent anything yet.
   * @param {number} id @param {import('node:http').ServerResponse} response
   * @param {import('./policy.js').HoldDecision} decision
   * @returns {Stream}
   */
  open(id, response, { hold: encoding, headers, welcome, channels = [] }) {
    const stream = new Stream(id, response, encoding, NONE);
    response.writeHead(200, streamHeaders(encoding, headers));
    const bytes = this.welcomeIn(welcomesOf(welcome));
    if (bytes.length > 0) response.write(bytes);
    else response.flushHeaders();
    this.tally.counts.bytesWritten += response.socket?.bytesWritten ?? 0;
    this.add(stream, channels);
    this.backlogs.noteWrite(stream);
    return stream;
  }

  /** @param {readonly import('./policy.js').Bytes[]} variants used in turn */
  welcomeIn(variants) {
    const variant = variants[this.welcomes++ % variants.length] ?? '';
    return Buffer.from(/** @type {Uint8Array} */ (variant)); // a copy, because the application may change its own
  }

  /**
   * Takes over a response whose head was sent.
   * @param {import('node:http').ServerResponse} response
   * @param {{ encoding: Encoding, channels: readonly string[], isCompressed: boolean }} how
   * @returns {Stream}
   */
  adopt(response, { encoding, channels, isCompressed }) {
    const Kind = isCompressed ? CompressedStream : Stream;
    const stream = new Kind(this.nextId(), response, encoding, NONE);
    stream.isAdopted = true;
    this.tally.counts.connections++;
    this.add(stream, channels);
    return stream;
  }

  /**
   * Counts and reports a stream that has ended before it could be held.
   * @param {CloseReason} reason
   * @returns {number} its id; the application gets it before `onClose` is called
   */
  miss(reason) {
    const id = this.nextId();
    this.tally.counts.opened++;
    this.tally.closed[reason]++;
    setImmediate(this.onClose, id, reason);
    return id;
  }

  /** @param {Stream} stream @param {readonly string[]} channels */
  add(stream, channels) {
    const response = /** @type {MarkedResponse} */ (stream.response);
    response[kStream] = stream;
    response[kStreams] = this;
    response.on('close', onResponseClose);
    this.byId.set(stream.id, stream);
    for (const channel of channels) this.channels.subscribe(stream, channel);
    this.pinger.add(stream);
    this.tally.counts.streams++;
    this.tally.counts.inJs++;
    this.tally.counts.opened++;
  }

  /** @param {Stream} stream @param {number} lateMs */
  ping(stream, lateMs) {
    if (!this.write(stream, this.pings[stream.encoding])) return;
    this.tally.counts.pings++;
    this.tally.histograms.lateness.record(lateMs * 1000);
  }

  /**
   * @param {string} channel @param {import('./encodings.js').Message} message
   * @returns {number} the streams it was for
   */
  publish(channel, message) {
    const encoded = new Encoded(message);
    let listeners = 0;
    for (const stream of this.channels.of(channel)) {
      this.deliver(stream, encoded);
      listeners++;
    }
    return listeners;
  }

  /** @param {number} id @param {import('./encodings.js').Message} message */
  send(id, message) {
    const stream = this.find(id);
    if (stream) this.deliver(stream, new Encoded(message));
  }

  /** @param {Stream} stream @param {Encoded} message */
  deliver(stream, message) {
    if (this.write(stream, message.in(stream.encoding))) this.tally.counts.deliveries++;
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    const stream = this.find(id);
    if (!stream || stream.channels.has(channel)) return;
    if (this.channels.hasRoomFor([channel])) this.channels.subscribe(stream, channel);
    else this.close(stream, 'over-capacity');
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    const stream = this.find(id);
    if (stream) this.channels.unsubscribe(stream, channel);
  }

  /** Ends one stream gently. @param {number} id */
  end(id) {
    const stream = this.find(id);
    if (stream) this.close(stream, 'drain');
  }

  /** @param {number} id @returns {Stream | undefined} undefined if it is ending or gone */
  find(id) {
    const stream = this.byId.get(id);
    return stream?.reason === null ? stream : undefined;
  }

  /** @param {Stream} stream @param {Buffer} payload @returns {boolean} false if it has ended, or ends now because the client is too slow */
  write(stream, payload) {
    if (stream.isEnded) {
      this.close(stream, 'drain');
      return false;
    }
    if (this.backlogs.isSlow(stream)) {
      this.destroy(stream, 'slow');
      return false;
    }
    if (payload.length > 0) this.tally.counts.bytesWritten += stream.write(payload);
    this.backlogs.noteWrite(stream);
    return true;
  }

  /** @returns {number} bytes waiting in all streams */
  backlogBytes() {
    return this.backlogs.totalBytes();
  }

  /**
   * Ends a stream gently: everything written is still sent. Does nothing if it is ending already.
   * @param {Stream} stream @param {CloseReason} reason
   */
  close(stream, reason) {
    if (stream.reason) return;
    this.release(stream, reason);
    stream.end();
  }

  /** Ends a stream at once. @param {Stream} stream @param {CloseReason} reason */
  destroy(stream, reason) {
    if (!stream.reason) this.release(stream, reason);
    stream.destroy();
  }

  /** @param {Stream} stream @param {CloseReason} reason */
  release(stream, reason) {
    stream.reason = reason;
    this.pinger.remove(stream);
    this.channels.leave(stream);
  }

  /** @param {Stream} stream whose response has closed @param {CloseReason} reason used if it has none yet */
  forget(stream, reason) {
    if (!this.byId.delete(stream.id)) return;
    if (!stream.reason) this.release(stream, reason);
    this.backlogs.delete(stream);
    this.tally.counts.streams--;
    this.tally.counts.inJs--;
    if (stream.isAdopted) this.tally.counts.connections--;
    this.tally.closed[stream.reason ?? reason]++;
    this.onClose(stream.id, stream.reason ?? reason);
    if (this.byId.size === 0) this.onEmpty();
  }

  /**
   * Accepts no more streams, and closes the existing ones evenly over the period.
   * @param {number} periodMs
   * @returns {Promise<void>} resolves when the last one is gone
   */
  async drain(periodMs) {
    this.isDraining = true;
    const streams = [...this.byId.values()];
    if (streams.length === 0) return;
    const gone = new Promise((resolve) => {
      this.onEmpty = () => resolve(undefined);
    });
    const stop = closeEvenly(
      streams,
      periodMs,
      (stream) => this.close(stream, 'drain'),
      (stream) => this.destroy(stream, 'drain'),
    );
    await gone;
    stop();
  }
}

/** @this {MarkedResponse} */
function onResponseClose() {
  const { [kStreams]: streams, [kStream]: stream } = this;
  if (streams && stream) streams.forget(stream, reasonOfEnd(this));
}
