/*
 * What an application says to streams: checks the arguments, and passes them on to where the streams are held, in the native
 * core or in JS.
 */
import {
  badArgument,
  checkChannel,
  checkCursor,
  checkEndReason,
  checkedLabels,
  checkedTargets,
  checkId,
  checkKeys,
  checkLabel,
  checkPayload,
} from './checks.js';
import { channelBytesOf, messageOf, queuedBytesOf } from './encodings.js';
import { isInJs } from './streams.js';

/** @typedef {import('../lib/errors.js').HoldfastError} HoldfastError */
/** @typedef {import('./encodings.js').GivenMessage} GivenMessage */
/** @typedef {import('./encodings.js').Message} Message */
/** @typedef {import('./policy.js').Bytes} Bytes */
/** @typedef {'revoked' | 'expired' | 'restarted' | 'drain'} EndReason */

/** The last two are for our own modules. */
const PUBLISH_OPTIONS = ['cursor', 'isCounted', 'mayBeLarge'];
const PUBLIC_OPTIONS = ['cursor'];
const NOBODY = Promise.resolve(0);

export class Teller {
  /**
   * @param {import('./streams.js').Streams} streams held in JS
   * @param {import('./shards.js').Shards | null} shards
   * @param {number} maxQueueBytes
   */
  constructor(streams, shards, maxQueueBytes) {
    this.streams = streams;
    this.shards = shards;
    this.maxQueueBytes = maxQueueBytes;
    /** To the process that takes over the streams. @type {import('./relay.js').Relay | null} */
    this.relay = null;
  }

  /**
   * Sends a message to every stream that listens to at least one of the channels, once.
   * @param {string | readonly string[]} channels
   * @param {Bytes | GivenMessage | null} message a string or bytes are its data; null only moves the cursor
   * @param {{ cursor?: string, isCounted?: boolean, mayBeLarge?: boolean }} [options] `cursor`: from now on that of all streams of
   *   updates; `isCounted`: false if nobody wants to know the number of streams, which costs less; `mayBeLarge`: a message that
   *   takes more than `maxQueueBytes`, with its channels, gets BUSY too as long as much is waiting, and not BAD_ARGUMENT
   * @returns {Promise<number>} the streams it was for, once it was written to all of them; 0 at once if it is not counted; never rejects
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY
   */
  publish(channels, message, options = {}) {
    const targets = checkedTargets(channels);
    checkKeys('publish', options, PUBLISH_OPTIONS, PUBLIC_OPTIONS);
    const { cursor, isCounted = true, mayBeLarge = false } = options;
    checkCursor(cursor);
    if (message === null && (targets.length > 0 || cursor === undefined))
      throw badArgument('a publication without a message must have a cursor, and no channels');
    const checked = message === null ? null : this.messageOf(message, channelBytesOf(targets), mayBeLarge);
    if (targets.length === 0 && cursor === undefined) return NOBODY;
    const said = targets.length === 0 ? null : checked;
    const published = this.shards?.publish(targets, said, cursor, isCounted);
    const inJs = this.streams.publish(targets, said, cursor);
    // Streams of updates end when they have moved: what has a cursor belongs to the order that they followed.
    const elsewhere =
      said && cursor === undefined ? this.relay?.publish(targets, said, isCounted) : undefined;
    if (!isCounted) return NOBODY;
    if (elsewhere)
      return Promise.all([published, elsewhere]).then(([here = 0, there]) => here + there + inJs);
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
   * Writes to one stream what its client has asked for: like `write`, but if the client does not read it, the stream is slow.
   * @param {number} id @param {string} payload
   */
  reply(id, payload) {
    this.placeOf(id)?.reply(id, payload);
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
   * @param {number} [others] bytes that it takes besides @param {boolean} [mayBeLarge]
   * @returns {Message} for which there is room in the queue
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY
   */
  messageOf(given, others = 0, mayBeLarge = false) {
    const message = messageOf(given);
    const bytes = queuedBytesOf(message) + others;
    const isLarge = bytes > this.maxQueueBytes;
    if (isLarge && !mayBeLarge)
      throw badArgument(`a message of ${bytes} bytes is larger than maxQueueBytes, ${this.maxQueueBytes}`);
    // Whoever waits for an empty queue may wait for ever.
    const needed = isLarge ? this.maxQueueBytes / 2 : bytes;
    this.shards?.checkRoom(needed);
    this.relay?.checkRoom(needed);
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
    this.relay?.say('endChannel', [channel, reason]);
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
    this.relay?.say('endLabelled', [kind, label, reason]);
  }

  /**
   * Ends all streams of updates, after everything sent to them has been written. They get nothing that is said from now on, no cursor
   * either, even if their end takes a while.
   * @param {EndReason} reason
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endUpdates(reason) {
    checkEndReason(reason);
    this.shards?.endUpdates(reason);
    this.streams.endUpdates(reason);
  }

  /** @param {number} id */
  placeOf(id) {
    return isInJs(id) ? this.streams : this.shards;
  }
}
