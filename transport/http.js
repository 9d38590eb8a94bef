/*
 * The plain transport: node:http, one ServerResponse a stream. What most people would write; the reference
 * for behaviour, and the baseline of every measurement.
 *
 * A stream moves so (how a connection comes to be one: door.js):
 *
 *     held --close(reason)--> ending --> gone
 *        \---destroy(reason)-------------^
 */
import { performance } from 'node:perf_hooks';
import { Histogram } from '../lib/histogram.js';
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from '../lib/reasons.js';
import { closeDoor, openDoor } from './door.js';
import { Wheel } from './wheel.js';
import { streamHeaders, wireBytes } from './wire.js';

/** The queue of the listening socket: as long as the kernel (somaxconn) lets it be. */
const ACCEPT_QUEUE = 65_535;
/** Streams that drain and don't finish reading are cut this long after the period. */
const DRAIN_GRACE_MS = 1000;
const DRAIN_STEP_MS = 20;

/** What CPU it spends on what, one process can't tell of itself. */
const NOTHING = new Histogram().take();

const now = performance.now.bind(performance);

/** One open stream, and its seat in the wheel. */
export class HttpStream {
  /**
   * @param {import('node:http').ServerResponse} response
   * @param {import('./wire.js').Format} format
   * @param {readonly string[]} channels
   */
  constructor(response, format, channels) {
    this.response = response;
    this.format = format;
    this.channels = channels;
    this.isChunked = response.req.httpVersion !== '1.0';
    this.slot = -1;
    this.place = 0;
    /** @type {import('../lib/reasons.js').CloseReason | null} */
    this.reason = null;
  }
}

/**
 * @param {import('./index.js').TransportOptions} options
 * @returns {import('./index.js').Transport}
 */
export function create(options) {
  return new HttpTransport(options);
}

class HttpTransport {
  /** @param {import('./index.js').TransportOptions} options */
  constructor(options) {
    this.options = options;
    this.counters = {
      streams: 0,
      opened: 0,
      closed: zeroes(CLOSE_REASONS),
      refused: zeroes(REFUSAL_STATUSES),
      cut: 0,
      pings: 0,
      deliveries: 0,
      bytesWritten: 0,
    };
    this.lateness = new Histogram();
    /** @type {Set<HttpStream>} streams that had bytes waiting after they were last written to */
    this.backlogged = new Set();
    /** @type {Wheel<HttpStream>} */
    this.wheel = new Wheel(options.pingIntervalMs, now());
    /** @type {HttpStream[]} written to in this turn of the wheel, or of a channel */
    this.written = [];
    /** @type {Map<string, Set<HttpStream>>} who listens to what */
    this.channels = new Map();
    this.draining = false;
    this.turnWheel = this.turnWheel.bind(this);
    this.noteBacklogs = this.noteBacklogs.bind(this);
    this.timer = setTimeout(this.turnWheel, this.wheel.slotMs);
    this.server = openDoor(this, options);
  }

  /** @param {number} port @param {string} host @returns {Promise<number>} */
  listen(port, host) {
    const { server } = this;
    return new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host: host || undefined, backlog: ACCEPT_QUEUE }, () => {
        server.off('error', reject);
        server.on('error', onAcceptError);
        resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port);
      });
    });
  }

  /** @returns {import('../primary/messages.js').TransportCounters} */
  take() {
    let backlogBytes = 0;
    for (const stream of this.backlogged) {
      const bytes = stream.response.writableLength;
      if (bytes === 0) this.backlogged.delete(stream);
      backlogBytes += bytes;
    }
    return {
      ...this.counters,
      backlogBytes,
      lateness: this.lateness.take(),
      openCpu: NOTHING,
      pingCpu: NOTHING,
      deliveryCpu: NOTHING,
    };
  }

  /** @param {number} periodMs @returns {Promise<void>} */
  async drain(periodMs) {
    this.draining = true;
    const gone = closeDoor(this.server);
    const streams = [...this.wheel];
    const startMs = now();
    let next = 0;
    const step = setInterval(() => {
      const share = periodMs === 0 ? 1 : (now() - startMs) / periodMs;
      const until = Math.ceil(streams.length * Math.min(1, share));
      for (; next < until; next++) this.close(streams[next], 'drain');
    }, DRAIN_STEP_MS);
    const cut = setTimeout(() => {
      for (const stream of streams) this.destroy(stream, 'drain');
    }, periodMs + DRAIN_GRACE_MS);
    await gone;
    clearInterval(step);
    clearTimeout(cut);
    clearTimeout(this.timer);
  }

  /** Pings all that are due, and comes again when the next slot is. */
  turnWheel() {
    this.wheel.turn(now, (stream, lateMs) => this.ping(stream, lateMs));
    if (this.written.length > 0) setImmediate(this.noteBacklogs);
    this.timer = setTimeout(this.turnWheel, Math.max(1, this.wheel.dueMs - now()));
  }

  /** @param {HttpStream} stream @param {number} lateMs */
  ping(stream, lateMs) {
    if (!this.write(stream, stream.format.ping)) return;
    this.counters.pings++;
    this.lateness.record(lateMs);
  }

  /** @param {string} channel @param {string} message */
  publish(channel, message) {
    for (const stream of this.channels.get(channel) ?? []) {
      if (this.write(stream, stream.format.message(message))) this.counters.deliveries++;
    }
    if (this.written.length > 0) setImmediate(this.noteBacklogs);
  }

  /** @param {HttpStream} stream @param {string} payload @returns {boolean} false where it was too slow, and is closed */
  write(stream, payload) {
    const { response, isChunked } = stream;
    if (response.writableLength > this.options.maxBacklogBytes) {
      this.destroy(stream, 'slow');
      return false;
    }
    response.write(payload);
    this.counters.bytesWritten += wireBytes(payload, isChunked);
    this.written.push(stream);
    return true;
  }

  /** Once the writes of a turn have left: what is still here is a backlog. */
  noteBacklogs() {
    for (const stream of this.written) if (stream.response.writableLength > 0) this.backlogged.add(stream);
    this.written.length = 0;
  }

  isFull() {
    return this.draining || this.counters.streams >= this.options.capacity;
  }

  /**
   * @param {import('node:http').ServerResponse} response
   * @param {import('./wire.js').Format} format
   * @param {readonly string[]} channels
   * @returns {HttpStream}
   */
  hold(response, format, channels) {
    const socket = /** @type {import('node:net').Socket} */ (response.socket);
    const stream = new HttpStream(response, format, channels);
    for (const channel of channels)
      this.channels.set(channel, (this.channels.get(channel) ?? new Set()).add(stream));
    response.writeHead(200, streamHeaders(format));
    response.write(format.welcome(Math.random()));
    this.wheel.add(stream);
    this.counters.streams++;
    this.counters.opened++;
    this.counters.bytesWritten += socket.bytesWritten;
    return stream;
  }

  /**
   * Ends a stream gently: what was written still leaves. Does nothing where it is ending already.
   * @param {HttpStream} stream
   * @param {import('../lib/reasons.js').CloseReason} reason
   */
  close(stream, reason) {
    if (stream.reason) return;
    this.release(stream, reason);
    stream.response.end();
  }

  /**
   * Ends a stream at once.
   * @param {HttpStream} stream
   * @param {import('../lib/reasons.js').CloseReason} reason
   */
  destroy(stream, reason) {
    if (!stream.reason) this.release(stream, reason);
    stream.response.destroy();
  }

  /** @param {HttpStream} stream @param {import('../lib/reasons.js').CloseReason} reason */
  release(stream, reason) {
    stream.reason = reason;
    this.wheel.remove(stream);
    for (const channel of stream.channels) {
      const listeners = this.channels.get(channel);
      listeners?.delete(stream);
      if (listeners?.size === 0) this.channels.delete(channel);
    }
  }

  /** @param {HttpStream} stream whose connection is gone */
  forget(stream) {
    if (!stream.reason) this.release(stream, 'client-gone');
    this.backlogged.delete(stream);
    this.counters.streams--;
    this.counters.closed[/** @type {import('../lib/reasons.js').CloseReason} */ (stream.reason)]++;
  }
}

let lastAcceptErrorMs = 0;

/** The system is short of something: said once a second, and the streams stay. @param {Error} error */
function onAcceptError(error) {
  if (now() - lastAcceptErrorMs < 1000) return;
  lastAcceptErrorMs = now();
  process.stderr.write(`can't accept: ${error.message}\n`);
}
