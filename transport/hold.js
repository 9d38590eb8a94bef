/*
 * Streams held outside of JS. JS decides, once for each head, and is asked for a batch of
 * heads at a time; what follows of a stream, its pings, its backlog, its end, is native.
 *
 * This is what an application of one's own uses (`import { Hold } from 'holdfast'`); native.js makes the transport of the
 * workers of it.
 */
import { lookup } from 'node:dns/promises';
import { Socket } from 'node:net';
import { getSystemErrorName } from 'node:util';
import { descriptorLimit, limitsOf } from '../lib/descriptors.js';
import { HoldfastError } from '../lib/errors.js';
import { CLOSE_REASONS } from '../lib/reasons.js';
import { native, problem } from '../native/index.js';
import { adoptable, letGo } from './adopt.js';
import { Commands, formatBits } from './commands.js';
import { Heads } from './heads.js';
import {
  badArgument,
  checkChannel,
  checkChannels,
  checkId,
  checkPeriod,
  checkPort,
  settingsOf,
} from './settings.js';
import { FORMATS } from './wire.js';

export { FORMATS };

/** Heads that are answered before other callbacks have their turn. */
const HEADS_A_BATCH = 512;
/** A peer that leaves what was sent unacknowledged for two ping intervals is dead, but no sooner than this. */
const USER_TIMEOUT_MIN_MS = 5000;
/** How soon an adoption is tried again where too many are on their way. */
const BUSY_MS = 5;
/** What the record of an adoption may take in native, less what is not channels. */
const MOST_ADOPTION_BYTES = 16_384 - 16;
/** No timer may be longer. */
const FOR_EVER_MS = 0x7fffffff;

/** @typedef {import('./wire.js').Head} Head */
/** @typedef {import('./wire.js').Format} Format */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/**
 * `hold` opens a stream that listens to `channels` (to a HEAD it answers as `head` does); where it is `always` so for a
 * head like this one, native may hold those that follow, for a second, without asking. `head` and `refuse` answer,
 * `answer` does with a whole response (bytes, Latin-1), `pass` hands the connection, of which nothing was read, to the `server` of the options.
 * @typedef {{ hold: Format, channels?: readonly string[], always?: boolean } | { head: Format } | { refuse: import('../lib/reasons.js').RefusalStatus } | { answer: () => string } | { pass: true }} HoldDecision
 */

/**
 * @typedef {object} HoldOptions
 * @property {(head: Head, id: number) => HoldDecision} [decide] what to do with a request, and the id that its
 *   stream will have; without it every request is passed on
 * @property {string[]} [headers] names, in lower case, of other headers that `decide` looks at
 * @property {import('node:http').Server} [server] takes what is passed on
 * @property {(id: number, reason: CloseReason) => void} [onClose] called for every stream that ends, and, as
 *   'over-capacity', for one that was to be held and found no room
 * @property {(error: unknown) => void} [onError] called with what `decide` or `onClose` threw; without it that is a
 *   warning of the process. A request that `decide` threw at is refused with 503
 * @property {import('./commands.js').Payload} [ping] what is written each interval
 * @property {number} [pingIntervalMs]
 * @property {number} [shards] threads; each holds as many streams as a process may have descriptors
 * @property {number} [capacity] streams that one shard takes; past it 503
 * @property {number} [connectionLimit] connections that one shard takes; past it they wait
 * @property {boolean} [nagle]
 * @property {number} [maxHeadBytes]
 * @property {number} [headTimeoutMs]
 * @property {number} [maxBacklogBytes]
 * @property {number} [seat] where its shards stand among all of the machine, so that they don't wake together
 * @property {number} [seats]
 */

/** Many open streams, held natively. */
export class Hold {
  /**
   * @param {HoldOptions} [options]
   * @throws {HoldfastError} NO_NATIVE where the native core is not here, BAD_OPTION
   */
  constructor(options = {}) {
    if (!native) throw new HoldfastError('NO_NATIVE', `the native core is not here: ${problem}`);
    const settings = settingsOf(options, limitsOf(descriptorLimit()));
    this.server = settings.server;
    this.onClose = settings.onClose;
    this.onError = settings.onError ?? warn;
    this.shards = settings.shards;
    this.commands = new Commands();
    this.heads = new Heads(settings, this.commands, {
      onNoRoom: (id) => this.tellClose(id, 'over-capacity'),
      onError: (error) => this.report(error),
    });
    this.isFlushing = false;
    this.isListening = false;
    this.isDraining = false;
    this.isClosed = false;
    /** @type {Promise<void> | undefined} */
    this.closing = undefined;
    this.drained = 0;
    /** @type {() => void} */
    this.onDrained = () => {};
    /** @type {Map<number, { resolve: (id: number) => void, reject: (error: Error) => void }>} */
    this.adoptions = new Map();
    this.lastToken = 0;
    /** @type {NodeJS.Timeout | undefined} keeps the event loop alive while it listens */
    this.anchor = undefined;
    this.see = this.see.bind(this);
    this.core = new native.Core({
      shards: settings.shards,
      seat: settings.seat,
      seats: settings.seats || settings.shards,
      unshare: process.env.HOLDFAST_UNSHARE !== 'off',
      capacity: settings.capacity,
      connections: settings.connectionLimit,
      pingIntervalMs: settings.pingIntervalMs,
      pingText: settings.ping.text,
      pingEvents: settings.ping.events,
      nodelay: !settings.nagle,
      maxHeadBytes: settings.maxHeadBytes,
      headTimeoutMs: settings.headTimeoutMs,
      maxBacklogBytes: settings.maxBacklogBytes,
      userTimeoutMs: Math.max(2 * settings.pingIntervalMs, USER_TIMEOUT_MIN_MS),
      headers: this.heads.names,
      reportsCloses: settings.onClose !== undefined,
    });
    // A byte comes when there is something to see. It does not keep the event loop alive.
    const onread = { buffer: Buffer.alloc(16), callback: () => this.see() };
    const read = /** @type {import('node:net').SocketConstructorOpts} */ ({ onread }); // which node's types lack
    this.bell = new Socket({ ...read, fd: this.core.takeBell(), writable: false }).unref();
  }

  /**
   * @param {number} [port] 0 takes a free one
   * @param {string} [host] '' for every address of the machine
   * @returns {Promise<number>} the port
   * @throws {NodeJS.ErrnoException | HoldfastError} LISTENING where it does already, CLOSED
   */
  async listen(port = 0, host = '') {
    checkPort(port);
    const address = host === '' ? '' : (await lookup(host)).address;
    if (this.isDraining)
      throw new HoldfastError('CLOSED', 'a Hold that was closed listens no more: make another');
    if (this.isListening) throw new HoldfastError('LISTENING', 'it listens already: a Hold has one port');
    const bound = address === '' ? this.bindAny(port) : this.bind(address, port);
    this.isListening = true;
    this.anchor ??= setInterval(() => {}, FOR_EVER_MS);
    return bound;
  }

  /** @param {number} port */
  bindAny(port) {
    try {
      return this.bind('::', port);
    } catch (error) {
      const { code } = /** @type {NodeJS.ErrnoException} */ (error);
      if (code !== 'EAFNOSUPPORT' && code !== 'EADDRNOTAVAIL') throw error;
      return this.bind('0.0.0.0', port);
    }
  }

  /** @param {string} address @param {number} port */
  bind(address, port) {
    try {
      return this.core.listen(address, port);
    } catch (error) {
      throw systemError(error, 'listen');
    }
  }

  /**
   * Takes over the stream of a response of node:http: what was written to it still leaves, and from then on it
   * is held natively and the socket of JS is gone ('close' is emitted on the response).
   * @param {import('node:http').ServerResponse} response a 200 without a length; its head is sent if it was not yet
   * @param {{ channels?: readonly string[] }} [how] what it listens to
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} NOT_ADOPTABLE, and why; OVER_CAPACITY. The application can go on with the response then,
   *   whose head may have been sent
   */
  async adopt(response, { channels = [] } = {}) {
    checkChannels(channels);
    if (channels.reduce((sum, name) => sum + Buffer.byteLength(name) + 4, 0) > MOST_ADOPTION_BYTES)
      throw badArgument(
        `the names of its channels take more than ${MOST_ADOPTION_BYTES} bytes: subscribe to the rest`,
      );
    if (this.isDraining) throw overCapacity('it is closing');
    const { socket, isEvents, isChunked } = adoptable(response);
    const { fd, takeBack } = await letGo(response, socket);
    const token = ++this.lastToken;
    try {
      await this.handOver(fd, token, formatBits(isEvents, isChunked), [...channels]);
    } catch (error) {
      takeBack();
      throw error;
    }
    const adopted = new Promise((resolve, reject) => this.adoptions.set(token, { resolve, reject }));
    socket.destroy();
    return adopted;
  }

  /**
   * Gives native its copy of a descriptor.
   * @param {() => number} fd @param {number} token @param {number} format @param {string[]} channels
   * @throws {HoldfastError} OVER_CAPACITY, and whatever `fd` throws
   */
  async handOver(fd, token, format, channels) {
    for (;;) {
      if (this.isDraining) throw overCapacity('it is closing');
      const refused = this.core.adopt(fd(), token, format, channels);
      if (refused === 'full') throw overCapacity('every shard is full');
      if (refused === '') return;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }

  /**
   * Sends a message to every stream that listens to a channel.
   * @param {string} channel
   * @param {string} message on streams of events it is the data of one
   */
  publish(channel, message) {
    checkChannel(channel);
    this.commands.publish(channel, payloadOf(message));
    this.flushSoon();
  }

  /** @param {number} id of a stream; one that has ended is passed over in silence @param {string} message */
  send(id, message) {
    checkId(id);
    this.commands.send(id, payloadOf(message));
    this.flushSoon();
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    checkId(id);
    checkChannel(channel);
    this.commands.subscribe(id, channel);
    this.flushSoon();
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    checkId(id);
    checkChannel(channel);
    this.commands.unsubscribe(id, channel);
    this.flushSoon();
  }

  /** Ends one stream gently. @param {number} id */
  end(id) {
    checkId(id);
    this.commands.close(id);
    this.flushSoon();
  }

  /**
   * Accepts no more, lets the streams go evenly over the period, and ends the threads. What was passed on to the
   * `server` is the application's to close.
   * @param {number} [periodMs]
   * @returns {Promise<void>} when the last connection is gone; of a second call too
   */
  close(periodMs = 0) {
    checkPeriod(periodMs);
    this.closing ??= this.drain(periodMs);
    return this.closing;
  }

  /** @param {number} periodMs */
  async drain(periodMs) {
    this.isDraining = true;
    const gone = new Promise((resolve) => {
      this.onDrained = () => resolve(undefined);
    });
    const wait = setInterval(() => {}, FOR_EVER_MS);
    this.commands.drain(periodMs);
    this.flush();
    await gone;
    clearInterval(wait);
    clearInterval(this.anchor);
    this.isClosed = true;
    this.core.stop();
    this.bell.destroy();
    for (const { reject } of this.adoptions.values()) reject(overCapacity('it has closed'));
    this.adoptions.clear();
  }

  /** @returns {import('../native/types.js').Counters} counts since it began; histograms since the last time */
  take() {
    return this.core.takeCounters();
  }

  /** Many commands of one turn of the event loop are one call. */
  flushSoon() {
    if (this.isFlushing) return;
    this.isFlushing = true;
    queueMicrotask(() => this.flush());
  }

  flush() {
    this.isFlushing = false;
    const records = this.commands.take();
    if (records.length > 0 && !this.isClosed) this.core.command(records);
  }

  /** Something happened: called at most once a turn of the event loop. @returns {boolean} that the bell is to be read on */
  see() {
    const { heads, lines, closed, adopted, passed, drained, hasMore } = this.core.takeEvents(HEADS_A_BATCH);
    if (heads.length > 0) {
      this.heads.answer(heads, lines.toString('latin1'));
      this.flush();
    }
    for (const fd of passed) this.passOn(fd);
    for (let i = 0; i < adopted.length; i += 2) this.settle(adopted[i], adopted[i + 1]);
    // Who awaits an id has it before that stream is said to have ended.
    if (adopted.length > 0 && closed.length > 0) setImmediate(() => this.tellCloses(closed));
    else this.tellCloses(closed);
    this.drained += drained;
    if (this.drained === this.shards) this.onDrained();
    if (hasMore) setImmediate(this.see);
    return true;
  }

  /** @param {Float64Array} closed id, place of the reason, id… */
  tellCloses(closed) {
    for (let i = 0; i < closed.length; i += 2) this.tellClose(closed[i], CLOSE_REASONS[closed[i + 1]]);
  }

  /** @param {number} id @param {CloseReason} reason */
  tellClose(id, reason) {
    try {
      this.onClose?.(id, reason);
    } catch (error) {
      this.report(error);
    }
  }

  /** Later, so that an `onError` that throws in its turn does not cost the rest of a batch. @param {unknown} error */
  report(error) {
    process.nextTick(this.onError, error);
  }

  /** @param {number} fd of a connection of which nothing was read */
  passOn(fd) {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    if (this.server) this.server.emit('connection', socket);
    else socket.destroy();
  }

  /** @param {number} token @param {number} id */
  settle(token, id) {
    const adoption = this.adoptions.get(token);
    this.adoptions.delete(token);
    if (id >= 0) adoption?.resolve(id);
    else adoption?.reject(overCapacity('the shard filled up meanwhile, and the connection is closed'));
  }
}

/** @param {unknown} error that nobody looks after */
function warn(error) {
  const text = error instanceof Error ? error.stack : String(error);
  process.emitWarning(`a callback of Hold threw: ${text}`, {
    type: 'HoldfastWarning',
    code: 'CALLBACK_THREW',
  });
}

/** @param {string} message @returns {import('./commands.js').Payload} */
function payloadOf(message) {
  const text = String(message);
  return { text: FORMATS.text.message(text), events: FORMATS.events.message(text) };
}

/** @param {string} why */
function overCapacity(why) {
  return new HoldfastError('OVER_CAPACITY', `the stream can't be held: ${why}`);
}

/** @param {unknown} error of native, whose text has the number @param {string} syscall */
function systemError(error, syscall) {
  const number = /^errno (\d+)$/.exec(/** @type {Error} */ (error).message)?.[1];
  if (!number) return error;
  const code = getSystemErrorName(-Number(number));
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall, errno: -Number(number) });
}
