/*
 * Holds streams: natively in shards if it gets the native core, otherwise (and for what native can't take) in JS. What is
 * said to the streams goes through teller.js, responses become streams in adopter.js, and requests WebSockets in upgrader.js.
 *
 * `Hold` (hold.js) extends it; native.js and http.js make transports from it.
 */

import { lookup } from 'node:dns/promises';
import { setTimeout as after } from 'node:timers/promises';
import { codeOf, HoldfastError } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { mergeTops } from '../lib/tops.js';
import { badArgument, checkKeys, checkPeriod, checkPort, checkSignal } from './checks.js';
import { Door } from './door.js';
import { closed, listenFailure } from './failures.js';
import { Offer } from './offer.js';
import { checkPath } from './offerpath.js';
import { limitsInJs, settingsOf } from './options.js';
import { checkPlace } from './place.js';
import { Shards } from './shards.js';
import { Streams } from './streams.js';
import { notNative } from './takeover.js';
import { Tally } from './tally.js';
import { noTls, Tls } from './tls.js';
import { Upgrader } from './upgrader.js';
import { warn, warnOnce } from './warnings.js';

/** @typedef {import('./options.js').HoldOptions} HoldOptions */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/** @typedef {import('./place.js').Place} Place */
/** @typedef {import('./tls.js').TlsOptions} TlsOptions */
/** How often, and how many times, a port is tried again that another process is about to lose. */
const AGAIN_MS = 50;
const AGAIN_TRIES = 100;

/** @typedef {{ periodMs?: number, signal?: AbortSignal }} HandOverOptions */

export class StreamHolder extends Upgrader {
  /**
   * @param {HoldOptions} options
   * @param {import('../native/types.js').Native | null} native null to hold everything in JS
   * @param {{ sharesPort?: boolean }} [how] whether other processes may listen on the same port
   * @throws {HoldfastError} BAD_OPTION
   */
  constructor(options, native, { sharesPort = false } = {}) {
    const settings = settingsOf(options);
    const tally = new Tally();
    /** @type {import('./shards.js').Listener} */
    const listener = {
      onClose: (id, reason) => this.reportClose(id, reason),
      onMessage: (id, data) => this.reportMessage(id, data),
      onError: (error) => this.report(error),
      onRefusal: (status) => tally.refuse(status),
    };
    const { capacity, connectionLimit, maxChannelBytes } = native ? settings : limitsInJs(settings);
    const streams = new Streams(settings, { capacity, maxChannelBytes }, tally, listener);
    super(
      streams,
      native ? new Shards(native, settings, sharesPort, listener) : null,
      settings.maxQueueBytes,
    );
    this.closeListener = settings.onClose;
    this.messageListener = settings.onMessage;
    /** Others that are told, such as a hub. @type {((id: number, reason: CloseReason) => void)[]} */
    this.closeListeners = [];
    /** Those that are asked first whether a message is for them. @type {((id: number, data: string) => boolean)[]} */
    this.messageListeners = [];
    this.errorListener = settings.onError ?? warn;
    this.tally = tally;
    /** Accepts connections. */
    this.front = this.shards ?? new Door(settings, connectionLimit, streams, tally, listener);
    this.isListening = false;
    /** Where it listens. @type {Place | null} */
    this.place = null;
    this.isPlaceInherited = false;
    /** Certificates; null without the native core. */
    this.tls = native && this.shards ? new Tls(native, this.shards.core) : null;
    /** In progress, for another process to take over the streams. @type {Offer | null} */
    this.offer = null;
    /** @type {Promise<void> | undefined} */
    this.closing = undefined;
    if (native && settings.shards > 1 && !this.hasOwnTables) warnOnce(SHARED_DESCRIPTORS);
  }

  /** Whether the native core holds the streams. */
  get isNative() {
    return this.shards !== null;
  }

  /** Hands its streams over to another one; null without the native core. */
  get handover() {
    return this.shards?.handover ?? null;
  }

  /** Whether each shard has its own descriptor table, so that the process can hold more streams than its limit. */
  get hasOwnTables() {
    return this.shards?.hasOwnTables ?? false;
  }

  /**
   * @param {number} [port] 0 takes a free one
   * @param {string} [host] '' for every address of the machine
   * @param {{ tls?: TlsOptions }} [options]
   * @returns {Promise<number>} the port
   * @throws {NodeJS.ErrnoException | HoldfastError} LISTENING if it already does, CLOSED, NOT_NATIVE for TLS without the native
   *   core, BAD_ARGUMENT, or a system error such as EADDRINUSE, whose message names the address and port
   */
  async listen(port = 0, host = '', options = {}) {
    checkPort(port);
    if (typeof host !== 'string') throw badArgument(`a host must be a string, not ${shown(host)}`);
    checkKeys('listen', options, ['tls']);
    const useTls = options.tls === undefined ? null : this.prepareTls(options.tls);
    const isTls = useTls !== null;
    const failed = (/** @type {unknown} */ error) => {
      throw listenFailure(error, host, port);
    };
    const address = host === '' ? '' : (await lookup(host).catch(failed)).address;
    if (this.isDraining) throw closed();
    if (this.isPlaceInherited && this.place) {
      checkPlace(this.place, { address, port, isTls });
      useTls?.();
      return this.takePlace(this.place);
    }
    if (this.isListening)
      throw new HoldfastError('LISTENING', 'this Hold is already listening, and a Hold has only one port');
    if (!isTls && this.tls?.isUsed)
      throw badArgument(
        'this Hold has certificates (setSecureContext, or takeOver): listen with { tls } too',
      );
    this.isListening = true;
    useTls?.();
    /** @type {Promise<number>} */
    this.listening = this.front.listen(address, port, isTls);
    const bound = await this.listening.catch((error) => {
      this.isListening = false;
      return failed(error);
    });
    if (this.isDraining) throw closed();
    this.place = { address, port: bound, isTls };
    return bound;
  }

  /**
   * Other certificates, for connections from now on: those of streams go on. Without `ticketKeys`, sessions from before can still
   * be resumed.
   * @param {TlsOptions} options
   * @throws {HoldfastError} BAD_ARGUMENT, NOT_NATIVE, CLOSED
   */
  setSecureContext(options) {
    const useTls = this.prepareTls(options);
    if (this.isDraining) throw closed();
    useTls();
  }

  /** @param {TlsOptions} options @returns {() => void} uses them @throws {HoldfastError} BAD_ARGUMENT, NOT_NATIVE */
  prepareTls(options) {
    if (!this.tls) throw noTls();
    return this.tls.prepare(options);
  }

  /**
   * The listening sockets of another process have come with its streams. They are used once `listen` is called.
   * @param {Place} place
   */
  inherit(place) {
    this.place = place;
    if (this.shards) this.shards.place = place;
    this.isPlaceInherited = true;
    this.isListening = true;
  }

  /** @param {Place} place where the sockets listen that have come @returns {number} the port */
  takePlace(place) {
    this.isPlaceInherited = false;
    this.shards?.keepAlive();
    this.shards?.takeHeads();
    return place.port;
  }

  /** The process that had the listening sockets has died. The kernel may not have closed all of them yet. */
  async listenAgain() {
    const { place } = this;
    for (let i = 0; place && !this.isDraining; i++) {
      try {
        await this.front.listen(place.address, place.port, place.isTls ?? false);
        return;
      } catch (error) {
        if (codeOf(error) !== 'EADDRINUSE' || i === AGAIN_TRIES)
          throw listenFailure(error, place.address, place.port);
      }
      await after(AGAIN_MS);
    }
  }

  /**
   * Offers the streams, and the listening sockets, to a process that calls `Hold.takeOver` with the same path.
   * @param {string} path of a Unix socket, which is created with mode 0600
   * @param {HandOverOptions} [options]
   * @returns {Promise<number>} how many streams the other process took, once those that could not move have been ended
   * @throws {HoldfastError} NOT_NATIVE, BUSY, CLOSED, HANDOVER, BAD_ARGUMENT, or the reason of the signal
   */
  async handOver(path, options = {}) {
    checkPath(path);
    checkKeys('handOver', options, ['periodMs', 'signal']);
    const { periodMs = 0, signal } = options;
    checkPeriod(periodMs);
    checkSignal(signal);
    if (!this.handover) throw notNative();
    if (this.isDraining) throw closed();
    if (this.offer)
      throw new HoldfastError(
        'BUSY',
        'this Hold already offers its streams: wait for that offer, or withdraw it with its signal',
      );
    signal?.throwIfAborted();
    const offer = new Offer(this, periodMs);
    this.offer = offer;
    const withdraw = () => void offer.withdraw(signal?.reason);
    signal?.addEventListener('abort', withdraw);
    try {
      await offer.open(path);
      return await offer.result;
    } finally {
      signal?.removeEventListener('abort', withdraw);
      this.offer = null;
    }
  }

  /**
   * Stops accepting, and closes the streams evenly over the period. Connections passed on to `server` stay open: closing
   * them is up to the application. This Hold encrypts for those with TLS, so it waits for them.
   * @param {number} [periodMs]
   * @returns {Promise<void>} resolves when the last connection is gone; a second call returns the same promise
   */
  close(periodMs = 0) {
    checkPeriod(periodMs);
    this.closing ??= this.drain(periodMs);
    return this.closing;
  }

  /** @param {number} periodMs */
  async drain(periodMs) {
    this.isDraining = true;
    await this.offer?.withdraw(closed());
    await this.listening?.catch(() => {});
    await Promise.all([this.front.close(periodMs), this.streams.drain(periodMs)]);
  }

  /**
   * @param {{ reset?: boolean }} [options] `reset` empties the histograms
   * @returns {import('../lib/counters.js').TransportCounters} counts since the start, histograms since the last reset
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  counters(options = {}) {
    checkKeys('counters', options, ['reset']);
    const { reset = false } = options;
    if (typeof reset !== 'boolean') throw badArgument(`reset must be true or false, not ${shown(reset)}`);
    this.tally.counts.backlogBytes = this.streams.backlogBytes();
    this.tally.counts.queuedBytes = this.shards?.queuedBytes ?? 0;
    return this.tally.read(this.shards?.core.takeCounters(), reset);
  }

  /**
   * @param {number} most
   * @returns {Promise<import('../lib/tops.js').Top>} the channels that most streams are on, after 2 seconds at the latest
   */
  async countChannels(most) {
    const tops = (await this.shards?.countChannels(most)) ?? [];
    return mergeTops([...tops, this.streams.channels.largest(most)], most);
  }

  /** @param {(id: number, reason: CloseReason) => void} listener called before `onClose`; must not throw */
  onStreamClose(listener) {
    this.closeListeners.push(listener);
  }

  /** @param {number} id @param {CloseReason} reason */
  reportClose(id, reason) {
    for (const listener of this.closeListeners) listener(id, reason);
    try {
      this.closeListener?.(id, reason);
    } catch (error) {
      this.report(error);
    }
  }

  /** @param {(id: number, data: string) => boolean} listener true if the message is its own, so `onMessage` is not called; must not throw */
  onStreamMessage(listener) {
    this.messageListeners.push(listener);
  }

  /** @param {number} id @param {string} data */
  reportMessage(id, data) {
    for (const listener of this.messageListeners) if (listener(id, data)) return;
    try {
      this.messageListener?.(id, data);
    } catch (error) {
      this.report(error);
    }
  }

  /** Deferred, because an `onError` that throws must not interrupt a batch. @param {unknown} error */
  report(error) {
    process.nextTick(this.errorListener, error);
  }
}

const SHARED_DESCRIPTORS = {
  code: 'SHARED_DESCRIPTORS',
  message:
    'the shards share one descriptor table (unshare is refused here): together they can hold only as many streams as the process may have descriptors',
};
