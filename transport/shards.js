/*
 * Streams held by the native core, outside the JS heap. JS gets request heads in batches, answers each batch with one call,
 * and from then on knows a stream only by its id.
 */
import cluster from 'node:cluster';
import { Socket } from 'node:net';
import { codeOf, HoldfastError } from '../lib/errors.js';
import { CLOSE_REASONS } from '../lib/reasons.js';
import { formatOf } from '../native/protocol.js';
import { stopReading } from './adopt.js';
import { bind, claimPort, withCode } from './bind.js';
import { Commands } from './commands.js';
import { pingsOf } from './encodings.js';
import { Handover } from './handover.js';
import { Heads } from './heads.js';
import { nativeOptions } from './options.js';

/** The most heads answered before other callbacks can run. */
const HEADS_PER_BATCH = 64;
/** How soon an adoption is retried if too many are in progress. */
const BUSY_MS = 5;
/** So often an adoption in progress is waited for before streams move. */
const MOST_WAITS = 200;
/** Errors of a process, or a system, that may open no more. */
const NO_DESCRIPTORS = ['EMFILE', 'ENFILE'];
/** Shards that have not reported their channels by then are left out. */
const COUNT_MS = 2000;
const MOST_TOKENS = 2 ** 32 - 1;
/** The longest time a timer can have. */
const FOREVER_MS = 0x7fffffff;

/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./encodings.js').Message} Message */
/** @typedef {{ onClose: (id: number, reason: CloseReason) => void, onError: (error: unknown) => void, onRefusal: (status: number) => void }} Listener */
/** @typedef {{ resolve: (id: number) => void, reject: (error: Error) => void }} Adoption */
/** @typedef {import('../lib/tops.js').Top} Top */
/** @typedef {{ tops: Top[], resolve: (tops: Top[]) => void, timer: NodeJS.Timeout }} Census */

export class Shards {
  /**
   * @param {import('../native/types.js').Native} native
   * @param {import('./options.js').Settings} settings
   * @param {boolean} sharesPort whether other processes may listen on the same port
   * @param {Listener} listener
   */
  constructor(native, settings, sharesPort, { onClose, onError, onRefusal }) {
    this.native = native;
    this.count = settings.shards;
    this.sharesPort = sharesPort || cluster.isWorker;
    this.application = settings.server;
    this.onClose = onClose;
    this.onError = onError;
    this.commands = new Commands();
    this.heads = new Heads(settings, this.commands, {
      onError,
      onAnswer: () => this.flushSoon(),
      onRefusal,
      // The policy gets to know its decision before it is called with the outcome.
      onMiss: (id, reason) => void setImmediate(onClose, id, reason),
    });
    this.isFlushing = false;
    /** Whether what is said waits here: streams are moving to another process. */
    this.isPaused = false;
    /** Whether connections wait in JS that are to become streams. */
    this.isAdoptionPaused = false;
    /** Whether heads wait in native. */
    this.isPostponing = false;
    this.isDraining = false;
    this.isStopped = false;
    this.drained = 0;
    this.onDrained = () => {};
    this.maxQueueBytes = settings.maxQueueBytes;
    /** Bytes of messages that native has; asked once between two flushes, since it only gets more in a flush. @type {number | undefined} */
    this.waitingBytes = undefined;
    /** @type {Map<number, Adoption>} by token */
    this.adoptions = new Map();
    /** What to tell how many streams a publication reached. @type {Map<number, (listeners: number) => void>} by token */
    this.publications = new Map();
    /** Channels that are being counted. @type {Map<number, Census>} by token */
    this.censuses = new Map();
    this.lastToken = 0;
    /** Keeps the process alive while it listens. @type {NodeJS.Timeout | undefined} */
    this.anchor = undefined;
    this.takeEvents = this.takeEvents.bind(this);
    this.core = new native.Core({
      options: nativeOptions(settings),
      headers: this.heads.names,
      pings: Object.values(pingsOf(settings.ping)),
      proxies: [...settings.proxies],
    });
    this.handover = new Handover(this.core, this.count, () => this.flush());
    this.bell = this.openBell();
  }

  get hasOwnTables() {
    return this.core.hasOwnTables;
  }

  /** Native writes a byte to it when there are events to take. It does not keep the process alive. */
  openBell() {
    const callback = () => {
      this.takeEvents();
      return true;
    };
    const onread = { buffer: Buffer.alloc(16), callback };
    const read = /** @type {import('node:net').SocketConstructorOpts} */ ({ onread }); // missing in Node's types
    return new Socket({ ...read, fd: this.core.takeBell(), writable: false }).unref();
  }

  /** @param {string} address '' for all @param {number} port @returns {Promise<number>} the port */
  async listen(address, port) {
    if (this.isDraining) throw closed();
    const claim = this.sharesPort ? null : claimPort(this.native, address, port);
    try {
      // Once they listen, the kernel itself refuses the claims of others.
      const bound = bind(this.core, address, claim?.port ?? port);
      this.keepAlive();
      return bound;
    } finally {
      claim?.release();
    }
  }

  /** The process, while it listens. */
  keepAlive() {
    this.anchor ??= setInterval(() => {}, FOREVER_MS);
  }

  /**
   * Takes over a connection on which everything has been written.
   * @param {import('./adopt.js').HandledSocket} socket destroyed once native has a copy of the descriptor
   * @param {import('../native/protocol.js').Encoding} encoding
   * @param {boolean} isChunked
   * @param {readonly string[]} channels
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} OVER_CAPACITY, CLOSED, CLIENT_GONE
   */
  async adopt(socket, encoding, isChunked, channels) {
    const token = this.nextToken();
    try {
      await this.handOver(stopReading(socket), token, formatOf(encoding, isChunked), [...channels]);
    } catch (error) {
      socket.resume();
      throw error;
    }
    const adopted = new Promise((resolve, reject) => this.adoptions.set(token, { resolve, reject }));
    socket.destroy();
    return adopted;
  }

  /** @param {() => number} fd @param {number} token @param {number} format @param {string[]} channels */
  async handOver(fd, token, format, channels) {
    for (;;) {
      if (this.isDraining) throw closed();
      this.flush(); // earlier commands must reach native first
      const refused = this.isAdoptionPaused ? 'busy' : this.tryToAdopt(fd(), token, format, channels);
      if (refused === 'full') throw overCapacity('every shard is full');
      if (refused === '') return;
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    }
  }

  /** @param {number} fd @param {number} token @param {number} format @param {string[]} channels */
  tryToAdopt(fd, token, format, channels) {
    try {
      return withCode('dup', () => this.core.adopt(fd, token, format, channels));
    } catch (error) {
      if (NO_DESCRIPTORS.includes(codeOf(error))) throw overCapacity('no file descriptor is left');
      throw error;
    }
  }

  /** @returns {number} not 0, 32 bits */
  nextToken() {
    this.lastToken = (this.lastToken % MOST_TOKENS) + 1;
    return this.lastToken;
  }

  /** Bytes that wait to be delivered or written. */
  get queuedBytes() {
    return this.core.queuedBytes() + this.commands.queuedBytes + this.commands.rawBytes;
  }

  /**
   * @param {number} bytes of a message that is about to be published or sent
   * @throws {HoldfastError} BUSY
   */
  checkRoom(bytes) {
    if (this.waitingBytes === undefined) {
      this.waitingBytes = this.core.queuedMessageBytes();
      this.flushSoon();
    }
    if (this.waitingBytes + this.commands.queuedBytes + bytes > this.maxQueueBytes)
      throw new HoldfastError(
        'BUSY',
        `more than ${this.maxQueueBytes} bytes of messages would be waiting for delivery (maxQueueBytes): try again later`,
      );
  }

  /**
   * @param {readonly string[]} channels @param {Message | null} message null only moves the cursor
   * @param {string | undefined} cursor @param {boolean} isCounted
   * @returns {Promise<number> | undefined} the streams it was for, once it has reached all of them; undefined if they are not counted
   */
  publish(channels, message, cursor, isCounted) {
    if (this.isStopped) return undefined;
    const token = message && isCounted ? this.nextToken() : 0;
    this.commands.publish(channels, message, cursor, token);
    this.flushSoon();
    if (token === 0) return undefined;
    this.bell.ref(); // keeps the process alive until it is delivered
    return new Promise((resolve) => this.publications.set(token, resolve));
  }

  /** @param {number} id @param {Message} message */
  send(id, message) {
    this.commands.send(id, message);
    this.flushSoon();
  }

  /** @param {number} id @param {import('./policy.js').Bytes} payload */
  writeTo(id, payload) {
    this.commands.write(id, payload);
    this.flushSoon();
  }

  /** @param {number} id @param {import('./labels.js').Labels} labels */
  label(id, labels) {
    this.commands.label(id, labels);
    this.flushSoon();
  }

  /** @param {number} id @param {string} tag '' for none */
  tag(id, tag) {
    this.commands.tag(id, tag);
    this.flushSoon();
  }

  /** @param {string} channel @param {CloseReason} reason */
  endChannel(channel, reason) {
    this.commands.endChannel(channel, reason);
    this.flushSoon();
  }

  /** @param {import('../native/protocol.js').Label} kind @param {number} label @param {CloseReason} reason */
  endLabelled(kind, label, reason) {
    this.commands.endLabelled(kind, label, reason);
    this.flushSoon();
  }

  /** @param {CloseReason} reason */
  endUpdates(reason) {
    this.commands.endUpdates(reason);
    this.flushSoon();
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    this.commands.subscribe(id, channel);
    this.flushSoon();
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    this.commands.unsubscribe(id, channel);
    this.flushSoon();
  }

  /** @param {number} most @returns {Promise<Top[]>} the largest channels of each shard that reports them in time */
  countChannels(most) {
    if (this.isStopped) return Promise.resolve([]);
    const token = this.nextToken();
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finishCensus(token), COUNT_MS).unref();
      this.censuses.set(token, { tops: [], resolve, timer });
      this.core.countChannels(token, most);
    });
  }

  /** @param {number} token @param {Top} top of one more shard */
  counted(token, top) {
    const census = this.censuses.get(token);
    census?.tops.push(top);
    if (census?.tops.length === this.count) this.finishCensus(token);
  }

  /** @param {number} token */
  finishCensus(token) {
    const { tops = [], resolve, timer } = this.censuses.get(token) ?? {};
    this.censuses.delete(token);
    clearTimeout(timer);
    resolve?.(tops);
  }

  /** @param {number} id */
  end(id) {
    this.commands.end(id);
    this.flushSoon();
  }

  /**
   * Stops accepting, closes the streams evenly over the period, and ends the threads.
   * @param {number} periodMs
   * @returns {Promise<void>} resolves when the last connection is gone
   */
  async close(periodMs) {
    this.isDraining = true;
    this.handover.takeBack(); // in a round, nothing that is said takes effect
    const gone = new Promise((resolve) => {
      this.onDrained = () => resolve(undefined);
    });
    const wait = setInterval(() => {}, FOREVER_MS);
    this.commands.drain(periodMs);
    this.flush();
    await gone;
    clearInterval(wait);
    clearInterval(this.anchor);
    this.isStopped = true;
    this.handover.fail('this Hold was closed');
    this.heads.stop();
    this.core.stop();
    this.reportEnds(this.core.takeEvents(0).closed, 0);
    this.bell.destroy();
    for (const { reject } of this.adoptions.values()) reject(closed());
    this.adoptions.clear();
    for (const resolve of this.publications.values()) resolve(0);
    this.publications.clear();
    for (const token of this.censuses.keys()) this.finishCensus(token);
  }

  /** All commands of one turn of the event loop go to native in one call. */
  flushSoon() {
    if (this.isFlushing) return;
    this.isFlushing = true;
    queueMicrotask(() => this.flush());
  }

  flush() {
    this.isFlushing = false;
    this.waitingBytes = undefined;
    if (this.isPaused) return;
    const records = this.commands.take();
    if (records.length > 0 && !this.isStopped) this.core.command(records);
  }

  /** From now on no response becomes a stream; those that were about to, have, and the application has said what they are. */
  async pauseAdoptions() {
    this.isAdoptionPaused = true;
    for (let i = 0; i < MOST_WAITS && this.adoptions.size > 0; i++)
      await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** From now on, what is said waits. */
  pause() {
    this.flush();
    this.isPaused = true;
  }

  /** What has waited goes to native. */
  resume() {
    this.isPaused = false;
    this.isAdoptionPaused = false;
    this.flush();
  }

  /** From now on, heads wait in native for an application that is not ready for them. */
  postponeHeads() {
    this.isPostponing = true;
  }

  takeHeads() {
    this.isPostponing = false;
    this.takeEvents();
  }

  /** Takes what has happened from native, and handles it. */
  takeEvents() {
    if (this.isStopped) return;
    const events = this.core.takeEvents(this.isPostponing ? 0 : HEADS_PER_BATCH);
    const {
      heads,
      lines,
      closed,
      adopted,
      published,
      counted,
      passed,
      passedRead,
      failed,
      drained,
      hasMore,
    } = events;
    if (heads.length > 0) {
      this.heads.answer(heads, lines.toString('latin1'));
      this.flush();
    }
    passed.forEach((fd, i) => void this.passOn(fd, passedRead[i]));
    for (let i = 0; i < adopted.length; i += 2) this.settle(adopted[i], adopted[i + 1]);
    for (let i = 0; i < published.length; i += 2) this.settlePublication(published[i], published[i + 1]);
    for (const { token, ...found } of counted) this.counted(token, topOfShard(found));
    for (const shard of failed) this.onError(shardFailed(shard));
    this.handover.take(events);
    // The caller of `adopt` gets the id before `onClose` is called with it.
    if (adopted.length > 0 && closed.length > 0) setImmediate(() => this.reportEnds(closed, drained));
    else this.reportEnds(closed, drained);
    if (hasMore && !this.isPostponing) setImmediate(this.takeEvents);
  }

  /** @param {Float64Array} closed id, index of the reason, id… @param {number} drained shards without connections from now on */
  reportEnds(closed, drained) {
    for (let i = 0; i < closed.length; i += 2) this.onClose(closed[i], CLOSE_REASONS[closed[i + 1]]);
    this.drained += drained;
    if (this.drained >= this.count) this.onDrained();
  }

  /** @param {number} fd of a connection @param {Buffer} read what native has read from it, if the head came in pieces */
  passOn(fd, read) {
    const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    if (read.length > 0) socket.unshift(read); // Node's parser gets it before anything else is read
    // Later, because a listener that throws must not interrupt a batch.
    if (this.application) process.nextTick(() => this.application?.emit('connection', socket));
    else socket.destroy();
  }

  /** @param {number} token @param {number} id negative if it was refused */
  settle(token, id) {
    const adoption = this.adoptions.get(token);
    this.adoptions.delete(token);
    if (id >= 0) adoption?.resolve(id);
    else
      adoption?.reject(
        overCapacity('the shard has filled up in the meantime, and the connection was closed'),
      );
  }

  /** @param {number} token @param {number} listeners */
  settlePublication(token, listeners) {
    this.publications.get(token)?.(listeners);
    this.publications.delete(token);
    if (this.publications.size === 0) this.bell.unref();
  }
}

/** @param {{ names: string[], streams: number[], leftOut: number }} found @returns {Top} */
function topOfShard({ names, streams, leftOut }) {
  const rows = names.map((name, i) => /** @type {[string, number, number]} */ ([name, streams[i], 0]));
  return { rows, missing: leftOut };
}

/** @param {string} why */
export function overCapacity(why) {
  return new HoldfastError('OVER_CAPACITY', `the stream can't be held: ${why}`);
}

export function closed() {
  return new HoldfastError('CLOSED', 'this Hold was closed: create a new one');
}

/** @param {number} shard */
function shardFailed(shard) {
  return new HoldfastError(
    'SHARD_FAILED',
    `shard ${shard} failed and was restarted: its streams are closed with the reason 'failed'`,
  );
}
