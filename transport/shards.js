/*
 * Streams held by the native core, outside the JS heap. JS gets request heads in batches, answers each batch with one call,
 * and from then on knows a stream only by its id.
 */
import cluster from 'node:cluster';
import { Socket } from 'node:net';
import { HoldfastError } from '../lib/errors.js';
import { CLOSE_REASONS } from '../lib/reasons.js';
import { Adoptions } from './adoptions.js';
import { bind, claimPort } from './bind.js';
import { Census } from './census.js';
import { Commands } from './commands.js';
import { pingsOf } from './encodings.js';
import { closed } from './failures.js';
import { Handover } from './handover.js';
import { Heads } from './heads.js';
import { nativeOptions } from './options.js';
import { relayedSocket } from './relayed.js';

/** The most heads answered before other callbacks can run. */
const HEADS_PER_BATCH = 64;
/** How long reports may keep other callbacks waiting. */
const REPORT_MS = 5;
const MOST_TOKENS = 2 ** 32 - 1;
/** With more shards than this, publications wait for each other: each wakes all of them. */
const MANY_SHARDS = 16;
/** For how long, for each shard: a wake-up costs as much as two writes, and most find nothing to do. */
const WAKE_MS = 1 / 3;
/** The longest time a timer can have. */
const FOREVER_MS = 0x7fffffff;

/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./encodings.js').Message} Message */
/** @typedef {{ onClose: (id: number, reason: CloseReason) => void, onMessage: (id: number, data: string) => void, onError: (error: unknown) => void, onRefusal: (status: number) => void }} Listener */
/** @typedef {import('../lib/tops.js').Top} Top */

export class Shards {
  /**
   * @param {import('../native/types.js').Native} native
   * @param {import('./options.js').Settings} settings
   * @param {boolean} sharesPort whether other processes may listen on the same port
   * @param {Listener} listener
   */
  constructor(native, settings, sharesPort, { onClose, onMessage, onError, onRefusal }) {
    this.native = native;
    this.count = settings.shards;
    this.sharesPort = sharesPort || cluster.isWorker;
    this.application = settings.server;
    this.onClose = onClose;
    this.onMessage = onMessage;
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
    /** The least time from one flush with publications to the next. */
    this.wakeMs = this.count > MANY_SHARDS ? this.count * WAKE_MS : 0;
    /** When all shards were woken last. */
    this.wokenMs = Number.NEGATIVE_INFINITY;
    /** When they will be woken. @type {NodeJS.Timeout | undefined} */
    this.waking = undefined;
    /** Whether they are about to be. */
    this.isWaking = false;
    /** Whether what is said waits here: streams are moving to another process. */
    this.isPaused = false;
    /** Whether heads wait in native. */
    this.isPostponing = false;
    this.isDraining = false;
    this.isStopped = false;
    this.drained = 0;
    this.onDrained = () => {};
    this.maxQueueBytes = settings.maxQueueBytes;
    /** Bytes of messages that native has; asked once between two flushes, since it only gets more in a flush. @type {number | undefined} */
    this.waitingBytes = undefined;
    this.adoptions = new Adoptions(this);
    /** What to tell how many streams a publication reached. @type {Map<number, (listeners: number) => void>} by token */
    this.publications = new Map();
    this.census = new Census(this.count);
    this.lastToken = 0;
    /** Keeps the process alive while it listens. @type {NodeJS.Timeout | undefined} */
    this.anchor = undefined;
    /** Where it listens. @type {{ address: string, port: number } | null} */
    this.place = null;
    /** What is being reported. @type {Generator<void> | null} */
    this.reports = null;
    /** Whether events are taken later in this turn. */
    this.isTaking = false;
    this.takeMore = () => {
      this.isTaking = false;
      this.takeEvents();
    };
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
      if (!this.isTaking) this.takeEvents();
      return true;
    };
    const onread = { buffer: Buffer.alloc(16), callback };
    const read = /** @type {import('node:net').SocketConstructorOpts} */ ({ onread }); // missing in Node's types
    return new Socket({ ...read, fd: this.core.takeBell(), writable: false }).unref();
  }

  /** @param {string} address '' for all @param {number} port @param {boolean} isTls @returns {Promise<number>} the port */
  async listen(address, port, isTls) {
    if (this.isDraining) throw closed();
    const claim = this.sharesPort ? null : claimPort(this.native, address, port);
    try {
      // Once they listen, the kernel itself refuses the claims of others.
      const bound = bind(this.core, address, claim?.port ?? port, isTls);
      this.keepAlive();
      this.place = { address, port: bound };
      return bound;
    } finally {
      claim?.release();
    }
  }

  /** Keeps the process alive while it listens. */
  keepAlive() {
    this.anchor ??= setInterval(() => {}, FOREVER_MS);
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
      this.wakeSoon();
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
    this.wakeSoon();
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

  /** @param {number} id @param {string} payload */
  reply(id, payload) {
    this.commands.reply(id, payload);
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
    return this.census.begin(token, () => this.core.countChannels(token, most));
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
    for (const _ of this.reports ?? []); // what ended before is reported before
    this.reports = null;
    this.reportEnds(this.core.takeEvents(0).closed, 0);
    this.bell.destroy();
    this.adoptions.stop();
    for (const resolve of this.publications.values()) resolve(0);
    this.publications.clear();
    this.census.stop();
  }

  /** All commands of one turn of the event loop go to native in one call. */
  flushSoon() {
    if (this.isFlushing) return;
    this.isFlushing = true;
    queueMicrotask(() => this.flush());
  }

  /** The same for what all shards have to know. If there are many, they are not woken for each publication. */
  wakeSoon() {
    if (this.wakeMs === 0) return this.flushSoon();
    const waitMs = this.wokenMs + this.wakeMs - performance.now();
    if (waitMs > 0) this.waking ??= setTimeout(() => this.wake(), Math.ceil(waitMs));
    else if (!this.isWaking) {
      this.isWaking = true;
      queueMicrotask(() => this.wake());
    }
  }

  /** Everything that was said goes to native, and all shards read it. */
  wake() {
    clearTimeout(this.waking);
    this.waking = undefined;
    this.isWaking = false;
    this.wokenMs = performance.now();
    this.flush(true);
  }

  /** @param {boolean} [wakesAll] or else shards that get only publications read them later, but in order */
  flush(wakesAll = this.wakeMs === 0) {
    this.isFlushing = false;
    this.waitingBytes = undefined;
    if (this.isPaused) return;
    const records = this.commands.take();
    const isHeard = records.length > 0 || (wakesAll && this.wakeMs > 0);
    if (isHeard && !this.isStopped) this.core.command(records, wakesAll);
  }

  /** From now on, what is said waits. */
  pause() {
    this.flush();
    this.isPaused = true;
  }

  /** What has waited goes to native. */
  resume() {
    this.isPaused = false;
    this.adoptions.resume();
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
    if (this.isStopped || this.reports) return; // it goes on once all is reported
    const events = this.core.takeEvents(this.isPostponing ? 0 : HEADS_PER_BATCH);
    const {
      heads,
      lines,
      closed,
      said,
      saidText,
      adopted,
      published,
      counted,
      passed,
      passedRead,
      passedFrom,
      passedIds,
      failed,
      drained,
      hasMore,
    } = events;
    if (heads.length > 0) {
      this.heads.answer(heads, lines.toString('latin1'));
      this.flush();
    }
    passed.forEach((fd, i) => void this.passOn(fd, passedRead[i], passedFrom[i], passedIds[i]));
    this.adoptions.settle(adopted);
    for (let i = 0; i < published.length; i += 2) this.settlePublication(published[i], published[i + 1]);
    for (const report of counted) this.census.reported(report);
    for (const shard of failed) this.onError(shardFailed(shard));
    this.handover.take(events);
    const reports = this.reportsOf(said, saidText, closed, drained);
    // The caller of `adopt` gets the id before `onMessage` or `onClose` is called with it.
    if (adopted.length > 0 && closed.length + said.length > 0) this.reportLater(reports);
    else this.report(reports);
    if (hasMore && !this.isPostponing) this.takeSoon();
  }

  /** One batch of heads in each turn, however often the bell rings: everything else that JS does has its share. */
  takeSoon() {
    if (this.isTaking) return;
    this.isTaking = true;
    setImmediate(this.takeMore);
  }

  /**
   * @param {Float64Array} said id, bytes of its message, id… @param {Buffer} text of all messages
   * @param {Float64Array} closed id, index of the reason, id… @param {number} drained shards without connections from now on
   * @returns {Generator<void>} reports a message each time, and in the end what has ended
   */
  *reportsOf(said, text, closed, drained) {
    let begin = 0;
    for (let i = 0; i < said.length; i += 2) {
      const end = begin + said[i + 1];
      this.onMessage(said[i], text.toString('utf8', begin, end));
      begin = end;
      yield;
    }
    this.reportEnds(closed, drained);
  }

  /** Other callbacks run in between if it takes long: a read may contain thousands of short messages. @param {Generator<void>} reports */
  report(reports) {
    const endMs = performance.now() + REPORT_MS;
    while (!reports.next().done) if (performance.now() >= endMs) return this.reportLater(reports);
  }

  /** @param {Generator<void>} reports Nothing else is taken from native before. */
  reportLater(reports) {
    this.reports = reports;
    setImmediate(() => {
      if (this.reports !== reports) return; // the Hold was closed
      this.reports = null;
      this.report(reports);
      this.takeEvents();
    });
  }

  /** @param {Float64Array} closed id, index of the reason, id… @param {number} drained shards without connections from now on */
  reportEnds(closed, drained) {
    for (let i = 0; i < closed.length; i += 2) this.onClose(closed[i], CLOSE_REASONS[closed[i + 1]]);
    this.drained += drained;
    if (this.drained >= this.count) this.onDrained();
  }

  /**
   * @param {number} fd of a connection
   * @param {Buffer} read what native has read from it, if the head came in pieces
   * @param {string} from '' for a connection of its own; of one with TLS, the address and port of the client
   * @param {number} id of one with TLS
   */
  passOn(fd, read, from, id) {
    const socket = from
      ? relayedSocket(fd, id, from, this.place)
      : new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
    if (read.length > 0) socket.unshift(read); // Node's parser gets it before anything else is read
    // Later, because a listener that throws must not interrupt a batch.
    if (this.application) process.nextTick(() => this.application?.emit('connection', socket));
    else socket.destroy();
  }

  /** @param {number} token @param {number} listeners */
  settlePublication(token, listeners) {
    this.publications.get(token)?.(listeners);
    this.publications.delete(token);
    if (this.publications.size === 0) this.bell.unref();
  }
}

/** @param {number} shard */
function shardFailed(shard) {
  return new HoldfastError(
    'SHARD_FAILED',
    `shard ${shard} failed and was restarted: its streams are closed with the reason 'failed'`,
  );
}
