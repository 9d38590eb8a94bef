/*
 * Which streams listen to which channels, for streams held in JS.
 */

import { topOf } from '../lib/tops.js';

/** What a channel (its entry, a set, and a string) and a subscription (an entry in two sets) take in V8, roughly. */
const CHANNEL_BYTES = 512;
const SUBSCRIPTION_BYTES = 64;

/**
 * @typedef {object} Listener
 * @property {Set<string>} channels those it listens to; maintained by `Channels`
 */

/** Shared by all that listen to nothing. @type {Set<string>} */
export const NONE = Object.freeze(new Set());

/** @template {Listener} T */
export class Channels {
  /** @param {number} mostBytes that all channels may take */
  constructor(mostBytes) {
    this.mostBytes = mostBytes;
    this.bytes = 0;
    /** @type {Map<string, Set<T>>} without channels that nobody listens to */
    this.listeners = new Map();
  }

  /** Whether nobody listens to anything. */
  get isEmpty() {
    return this.listeners.size === 0;
  }

  /** @param {string} channel @returns {Iterable<T>} */
  of(channel) {
    return this.listeners.get(channel) ?? [];
  }

  /** @param {readonly string[]} channels @returns {Iterable<T>} those of all of them, each once */
  ofAny(channels) {
    if (channels.length === 1) return this.of(channels[0]);
    return new Set(channels.flatMap((channel) => [...this.of(channel)]));
  }

  /** @param {readonly string[]} channels @returns {boolean} whether a listener may subscribe to all of these */
  hasRoomFor(channels) {
    const bytes = channels.reduce(
      (sum, name) => sum + SUBSCRIPTION_BYTES + (this.listeners.has(name) ? 0 : sizeOf(name)),
      this.bytes,
    );
    return bytes <= this.mostBytes;
  }

  /** @param {T} listener @param {string} channel */
  subscribe(listener, channel) {
    if (listener.channels.has(channel)) return;
    if (listener.channels === NONE) listener.channels = new Set();
    listener.channels.add(channel);
    this.bytes += SUBSCRIPTION_BYTES;
    const listeners = this.listeners.get(channel);
    if (listeners) listeners.add(listener);
    else {
      this.listeners.set(channel, new Set([listener]));
      this.bytes += sizeOf(channel);
    }
  }

  /** @param {T} listener @param {string} channel */
  unsubscribe(listener, channel) {
    if (!listener.channels.delete(channel)) return;
    this.bytes -= SUBSCRIPTION_BYTES;
    const listeners = this.listeners.get(channel);
    listeners?.delete(listener);
    if (listeners?.size !== 0) return;
    this.listeners.delete(channel);
    this.bytes -= sizeOf(channel);
  }

  /** @param {number} most @returns {import('../lib/tops.js').Top} those with most listeners */
  largest(most) {
    return topOf(sizesOf(this.listeners), most);
  }

  /** @param {T} listener from all channels */
  leave(listener) {
    for (const channel of listener.channels) this.unsubscribe(listener, channel);
  }
}

/** @param {Map<string, Set<unknown>>} listeners @returns {Generator<[string, number]>} */
function* sizesOf(listeners) {
  for (const [name, { size }] of listeners) yield [name, size];
}

/** @param {string} name of a channel @returns {number} what the channel takes, without its listeners */
function sizeOf(name) {
  return CHANNEL_BYTES + name.length;
}
