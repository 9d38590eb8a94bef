/*
 * Holds streams: natively in shards if it gets the native core, otherwise (and for what native can't take) in JS. It checks
 * the arguments of the application and passes them to the right place.
 *
 * `Hold` (hold.js) extends it; native.js and http.js make transports from it.
 */
import { lookup } from 'node:dns/promises';
import { codeOf, HoldfastError } from '../lib/errors.js';
import { adoptable, answerHead, checkOpen, comeToRest, giveBack, watchForMore } from './adopt.js';
import {
  badArgument,
  checkAdoptionBytes,
  checkChannel,
  checkCursor,
  checkEncoding,
  checkEndReason,
  checkedChannels,
  checkedLabels,
  checkedTargets,
  checkId,
  checkKeys,
  checkLabel,
  checkPayload,
  checkPeriod,
  checkPort,
  shown,
} from './checks.js';
import { Door } from './door.js';
import { channelBytesOf, messageOf, queuedBytesOf } from './encodings.js';
import { listenFailure } from './failures.js';
import { limitsInJs, settingsOf } from './options.js';
import { closed, overCapacity, Shards } from './shards.js';
import { isInJs, Streams } from './streams.js';
import { Tally } from './tally.js';
import { warn, warnOnce } from './warnings.js';

/** @typedef {import('./options.js').HoldOptions} HoldOptions */
/** @typedef {import('./encodings.js').GivenMessage} GivenMessage */
/** @typedef {import('./encodings.js').Message} Message */
/** @typedef {import('./policy.js').Bytes} Bytes */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {'revoked' | 'expired' | 'drain'} EndReason */
/** @typedef {{ channels?: readonly string[], encoding?: import('../native/protocol.js').Encoding }} AdoptOptions */

export class StreamHolder {
  /**
   * @param {HoldOptions} options
   * @param {import('../native/types.js').Native | null} native null to hold everything in JS
   * @param {{ sharesPort?: boolean }} [how] whether other processes may listen on the same port
   * @throws {HoldfastError} BAD_OPTION
   */
  constructor(options, native, { sharesPort = false } = {}) {
    const settings = settingsOf(options);
    this.closeListener = settings.onClose;
    /** Others that are told, such as a hub. @type {((id: number, reason: CloseReason) => void)[]} */
    this.closeListeners = [];
    this.errorListener = settings.onError ?? warn;
    this.maxQueueBytes = settings.maxQueueBytes;
    this.tally = new Tally();
    const listener = {
      onClose: (/** @type {number} */ id, /** @type {CloseReason} */ reason) => this.reportClose(id, reason),
      onError: (/** @type {unknown} */ error) => this.report(error),
      onRefusal: (/** @type {number} */ status) => this.tally.refuse(status),
    };
    const { capacity, connectionLimit, maxChannelBytes } = native ? settings : limitsInJs(settings);
    this.streams = new Streams(settings, { capacity, maxChannelBytes }, this.tally, listener.onClose);
    this.shards = native ? new Shards(native, settings, sharesPort, listener) : null;
    /** Accepts connections. */
    this.front = this.shards ?? new Door(settings, connectionLimit, this.streams, this.tally, listener);
    this.isListening = false;
    this.isDraining = false;
    /** @type {Promise<void> | undefined} */
    this.closing = undefined;
    if (native && settings.shards > 1 && !this.hasOwnTables) warnOnce(SHARED_DESCRIPTORS);
  }

  /** Whether the native core holds the streams. */
  get isNative() {
    return this.shards !== null;
  }

  /** Whether each shard has its own descriptor table, so that the process can hold more streams than its limit. */
  get hasOwnTables() {
    return this.shards?.hasOwnTables ?? false;
  }

  /**
   * @param {number} [port] 0 takes a free one
   * @param {string} [host] '' for every address of the machine
   * @returns {Promise<number>} the port
   * @throws {NodeJS.ErrnoException | HoldfastError} LISTENING if it already does, CLOSED, or a system error such as
   *   EADDRINUSE, whose message names the address and port
   */
  async listen(port = 0, host = '') {
    checkPort(port);
    if (typeof host !== 'string') throw badArgument(`a host must be a string, not ${shown(host)}`);
    const failed = (/** @type {unknown} */ error) => {
      throw listenFailure(error, host, port);
    };
    const address = host === '' ? '' : (await lookup(host).catch(failed)).address;
    if (this.isDraining) throw closed();
    if (this.isListening)
      throw new HoldfastError('LISTENING', 'this Hold is already listening, and a Hold has only one port');
    this.isListening = true;
    /** @type {Promise<number>} */
    this.listening = this.front.listen(address, port);
    const bound = await this.listening.catch((error) => {
      this.isListening = false;
      return failed(error);
    });
    if (this.isDraining) throw closed();
    return bound;
  }

  /**
   * Takes over a response as a stream. What was written to it is still sent. If its client has already disconnected, the
   * stream opens and closes at once; so it does after the head was sent if the request is a HEAD.
   * @param {import('node:http').ServerResponse | import('node:http2').Http2ServerResponse} served without a
   *   Content-Length; its head is sent now unless it was already
   * @param {AdoptOptions} [options]
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, CLOSED, BAD_ARGUMENT. The response then still
   *   belongs to the application, but its head may have been sent
   */
  async adopt(served, options = {}) {
    const response = /** @type {import('node:http').ServerResponse} */ (served);
    checkKeys('adopt', options, ['channels', 'encoding']);
    const { channels: given = [], encoding = 'events' } = options;
    const channels = checkedChannels(given);
    checkAdoptionBytes(channels);
    checkEncoding(encoding);
    if (this.isDraining) throw closed();
    try {
      const socket = checkOpen(response);
      if (response.req.method === 'HEAD') {
        answerHead(response, encoding);
        return this.streams.miss('drain');
      }
      const found = adoptable(response, socket, encoding);
      await comeToRest(response, found.socket);
      return await this.take(response, found, encoding, channels);
    } catch (error) {
      if (codeOf(error) === 'CLIENT_GONE') return this.streams.miss('client-gone');
      throw error;
    }
  }

  /**
   * @param {import('node:http').ServerResponse} response after `comeToRest`
   * @param {import('./adopt.js').Adoptable} found
   * @param {import('../native/protocol.js').Encoding} encoding
   * @param {readonly string[]} channels
   * @returns {Promise<number>}
   */
  async take(response, found, encoding, channels) {
    try {
      if (this.shards && found.canLeaveJs && found.socket)
        return await this.shards.adopt(found.socket, encoding, found.isChunked, channels);
      return this.adoptInJs(response, found, encoding, channels);
    } catch (error) {
      giveBack(response);
      throw error;
    }
  }

  /**
   * @param {import('node:http').ServerResponse} response
   * @param {import('./adopt.js').Adoptable} found
   * @param {import('../native/protocol.js').Encoding} encoding
   * @param {readonly string[]} channels
   */
  adoptInJs(response, { socket, isCompressed }, encoding, channels) {
    if (this.isDraining) throw closed();
    if (this.streams.isFull) throw overCapacity('the streams in JS are at capacity');
    if (!this.streams.channels.hasRoomFor(channels))
      throw overCapacity('the channels of the streams in JS take maxChannelBytes already');
    const stream = this.streams.adopt(response, { encoding, channels, isCompressed });
    if (socket) watchForMore(socket, () => this.streams.destroy(stream, 'bad-request'));
    return stream.id;
  }

  /**
   * Sends a message to every stream that listens to at least one of the channels, once.
   * @param {string | readonly string[]} channels
   * @param {Bytes | GivenMessage | null} message a string or bytes are its data; null only moves the cursor
   * @param {{ cursor?: string }} [options] `cursor`: from now on that of all streams of updates
   * @returns {Promise<number>} the streams it was for, once it was written to all of them; never rejects
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY
   */
  publish(channels, message, options = {}) {
    const targets = checkedTargets(channels);
    checkKeys('publish', options, ['cursor']);
    const { cursor } = options;
    checkCursor(cursor);
    if (message === null && (targets.length > 0 || cursor === undefined))
      throw badArgument('a publication without a message must have a cursor, and no channels');
    const checked = message === null ? null : this.messageOf(message, channelBytesOf(targets));
    if (targets.length === 0 && cursor === undefined) return Promise.resolve(0);
    const said = targets.length === 0 ? null : checked;
    const published = this.shards?.publish(targets, said, cursor);
    const inJs = this.streams.publish(targets, said, cursor);
    return published ? published.then((listeners) => listeners + inJs) : Promise.resolve(inJs);
  }

  /**
   * Sends a message to one stream. This and the methods below do nothing if the stream has ended.
   * @param {number} id @param {Bytes | GivenMessage} message
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY
   */
  send(id, message) {
    checkId(id);
    const checked = this.messageOf(message);
    this.placeOf(id)?.send(id, checked);
  }

  /**
   * Writes to one stream as it is, without encoding it as a message. However much it is, the stream is not slow because of
   * it, and the queue takes it.
   * @param {number} id @param {Bytes} payload
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  write(id, payload) {
    checkId(id);
    checkPayload(payload);
    this.placeOf(id)?.writeTo(id, payload);
  }

  /**
   * Replaces the labels of a stream.
   * @param {number} id @param {import('./labels.js').Labels} labels
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  label(id, labels) {
    checkId(id);
    const checked = checkedLabels(labels);
    this.placeOf(id)?.label(id, checked);
  }

  /**
   * @param {Bytes | GivenMessage} given
   * @param {number} [others] bytes that it takes besides
   * @returns {Message} for which there is room in the queue
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY
   */
  messageOf(given, others = 0) {
    const message = messageOf(given);
    const bytes = queuedBytesOf(message) + others;
    if (bytes > this.maxQueueBytes)
      throw badArgument(`a message of ${bytes} bytes is larger than maxQueueBytes, ${this.maxQueueBytes}`);
    this.shards?.checkRoom(bytes);
    return message;
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    checkId(id);
    checkChannel(channel);
    this.placeOf(id)?.subscribe(id, channel);
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    checkId(id);
    checkChannel(channel);
    this.placeOf(id)?.unsubscribe(id, channel);
  }

  /** Ends one stream, after everything sent to it has been written. @param {number} id */
  end(id) {
    checkId(id);
    this.placeOf(id)?.end(id);
  }

  /**
   * Ends all streams that listen to a channel, after everything sent to them has been written.
   * @param {string} channel @param {EndReason} reason
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endChannel(channel, reason) {
    checkChannel(channel);
    checkEndReason(reason);
    this.shards?.endChannel(channel, reason);
    this.streams.endChannel(channel, reason);
  }

  /**
   * Ends all streams with a label, after everything sent to them has been written.
   * @param {import('../native/protocol.js').Label} kind @param {number} label @param {EndReason} reason
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endLabelled(kind, label, reason) {
    checkLabel(kind, label);
    checkEndReason(reason);
    this.shards?.endLabelled(kind, label, reason);
    this.streams.endLabelled(kind, label, reason);
  }

  /** @param {number} id */
  placeOf(id) {
    return isInJs(id) ? this.streams : this.shards;
  }

  /**
   * Stops accepting, and closes the streams evenly over the period. Connections passed on to `server` stay open: closing
   * them is up to the application.
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
