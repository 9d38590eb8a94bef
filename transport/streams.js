/*
 * Streams held in JS: all of them without the native core, and with it those that it can't adopt. A stream moves so:
 *
 *     held --close(reason)--> ending --what was written has left--> gone
 *        \---destroy(reason)----------------------------------------^
 */
import { performance } from 'node:perf_hooks';
import { Backlogs } from './backlogs.js';
import { Channels, NONE } from './channels.js';
import { Encoded } from './encodings.js';
import { Pinger } from './pinger.js';
import { streamHeaders, welcomesOf } from './responses.js';
import { CompressedStream, Stream } from './stream.js';

/** Ids of streams held in JS have the one shard number that no native shard has, in the top 8 of 53 bits. */
const FIRST_ID = 255 * 2 ** 45;
/** Streams that are drained and don't finish reading are cut this long after the period. */
const DRAIN_GRACE_MS = 1000;
const DRAIN_STEP_MS = 20;

const kStream = Symbol('stream');
const kStreams = Symbol('streams');

const now = performance.now.bind(performance);

/** @typedef {import('../native/protocol.js').Encoding} Encoding */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/**
 * Our marks on a response, instead of a closure for each.
 * @typedef {import('node:http').ServerResponse & { [kStream]?: Stream, [kStreams]?: Streams }} MarkedResponse
 */

/** @param {number} id @returns {boolean} whether it is one of a stream held in JS */
export function isInJs(id) {
  return id >= FIRST_ID;
}

export class Streams {
  /**
   * @param {Pick<import('./options.js').Settings, 'ping' | 'pingIntervalMs' | 'maxBacklogBytes'>} settings
   * @param {number} capacity
   * @param {import('./tally.js').Tally} tally counted up here
   * @param {(id: number, reason: CloseReason) => void} onClose
   */
  constructor({ ping, pingIntervalMs, maxBacklogBytes }, capacity, tally, onClose) {
    this.capacity = capacity;
    this.tally = tally;
    this.onClose = onClose;
    this.pings = { text: Buffer.from(ping.text), events: Buffer.from(ping.events) };
    /** @type {Map<number, Stream>} those that are not gone */
    this.byId = new Map();
    /** @type {Channels<Stream>} */
    this.channels = new Channels();
    /** @type {Pinger<Stream>} */
    this.pinger = new Pinger(pingIntervalMs, (stream, lateMs) => this.ping(stream, lateMs));
    /** @type {Backlogs<Stream>} */
    this.backlogs = new Backlogs(maxBacklogBytes);
    this.lastId = FIRST_ID - 1;
    this.welcomes = 0;
    this.isDraining = false;
    this.onEmpty = () => {};
  }

  /** @returns {number} an id for a stream that may come about */
  nextId() {
    return ++this.lastId;
  }

  get isFull() {
    return this.isDraining || this.byId.size >= this.capacity;
  }

  /**
   * Opens a stream on a response of which nothing was sent.
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

  /** @param {readonly import('./policy.js').Bytes[]} variants which take turns */
  welcomeIn(variants) {
    const variant = variants[this.welcomes++ % variants.length] ?? '';
    return Buffer.from(/** @type {Uint8Array} */ (variant)); // a copy: the application may go on writing to its own
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
   * Counts and reports a stream whose client went before it was held.
   * @returns {number} its id, which the application gets before `onClose`
   */
  miss() {
    const id = this.nextId();
    this.tally.counts.opened++;
    this.tally.closed['client-gone']++;
    setImmediate(this.onClose, id, 'client-gone');
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

  /** @param {string} channel @param {import('./encodings.js').Message} message */
  publish(channel, message) {
    const encoded = new Encoded(message);
    for (const stream of this.channels.of(channel)) this.deliver(stream, encoded);
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
    if (stream) this.channels.subscribe(stream, channel);
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

  /** @param {number} id @returns {Stream | undefined} one that is not ending */
  find(id) {
    const stream = this.byId.get(id);
    return stream?.reason === null ? stream : undefined;
  }

  /** @param {Stream} stream @param {Buffer} payload @returns {boolean} false where it was too slow, and is closed */
  write(stream, payload) {
    if (this.backlogs.isSlow(stream)) {
      this.destroy(stream, 'slow');
      return false;
    }
    if (payload.length > 0) this.tally.counts.bytesWritten += stream.write(payload);
    this.backlogs.noteWrite(stream);
    return true;
  }

  /** @returns {number} bytes that wait in all streams */
  backlogBytes() {
    return this.backlogs.totalBytes();
  }

  /**
   * Ends a stream gently: what was written still leaves. Does nothing where it is ending already.
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

  /** @param {Stream} stream whose response is closed @param {CloseReason} reason unless it has one */
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
   * Takes no more streams, and closes those it has evenly over the period.
   * @param {number} periodMs
   * @returns {Promise<void>} when the last is gone
   */
  async drain(periodMs) {
    this.isDraining = true;
    const streams = [...this.byId.values()];
    if (streams.length === 0) return;
    const gone = new Promise((resolve) => {
      this.onEmpty = () => resolve(undefined);
    });
    const startMs = now();
    let next = 0;
    const step = () => {
      const share = periodMs === 0 ? 1 : Math.min(1, (now() - startMs) / periodMs);
      for (const until = Math.ceil(streams.length * share); next < until; next++)
        this.close(streams[next], 'drain');
    };
    step();
    const stepping = setInterval(step, DRAIN_STEP_MS);
    const cut = setTimeout(() => {
      for (const stream of streams) this.destroy(stream, 'drain');
    }, periodMs + DRAIN_GRACE_MS);
    await gone;
    clearInterval(stepping);
    clearTimeout(cut);
  }
}

/** @this {MarkedResponse} */
function onResponseClose() {
  const { [kStreams]: streams, [kStream]: stream } = this;
  if (streams && stream) streams.forget(stream, reasonOfEnd(this));
}

/**
 * Why a response closed that we did not close.
 * @param {import('node:http').ServerResponse} response
 * @returns {CloseReason}
 */
function reasonOfEnd(response) {
  if (response.writableEnded) return 'drain'; // by the application
  const { errored } = /** @type {{ errored?: Error & { code?: string } | null }} */ (
    response.req.socket ?? {}
  );
  return errored ? reasonOfError(errored.code ?? '') : 'client-gone';
}

/** @param {string} code of an error of a connection @returns {CloseReason} */
export function reasonOfError(code) {
  if (code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'bad-request';
  if (code === 'ECONNRESET' || code === 'EPIPE') return 'client-gone';
  if (code === 'ETIMEDOUT' || code === 'EHOSTUNREACH' || code === 'ENETUNREACH') return 'dead-peer';
  return 'error';
}
