/*
 * Which streams listen to which channels, for streams held in JS.
 */

/**
 * @typedef {object} Listener
 * @property {Set<string>} channels those it listens to; maintained by `Channels`
 */

/** Shared by all that listen to nothing. @type {Set<string>} */
export const NONE = Object.freeze(new Set());

/** @template {Listener} T */
export class Channels {
  constructor() {
    /** @type {Map<string, Set<T>>} without channels that nobody listens to */
    this.listeners = new Map();
  }

  /** @param {string} channel @returns {Iterable<T>} */
  of(channel) {
    return this.listeners.get(channel) ?? [];
  }

  /** @param {T} listener @param {string} channel */
  subscribe(listener, channel) {
    if (listener.channels === NONE) listener.channels = new Set();
    listener.channels.add(channel);
    const listeners = this.listeners.get(channel);
    if (listeners) listeners.add(listener);
    else this.listeners.set(channel, new Set([listener]));
  }

  /** @param {T} listener @param {string} channel */
  unsubscribe(listener, channel) {
    if (!listener.channels.delete(channel)) return;
    const listeners = this.listeners.get(channel);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.listeners.delete(channel);
  }

  /** @param {T} listener from all channels */
  leave(listener) {
    for (const channel of listener.channels) this.unsubscribe(listener, channel);
  }
}
