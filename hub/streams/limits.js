/*
 * What one client may use: streams at a time of an address and of a token's subject, and streams opened per second of an address.
 * An address is what one client can choose its addresses from (siteOf). Proxies are exempt, because all their clients have theirs; they
 * are counted, and only looked up when they would be refused, because that takes longer than everything else here.
 *
 *     open --> (tokens, replay: may take long) --> take --> keep(id) --> leave(id)
 *                                                    \--> release, if there is no stream after all
 */
import { inRanges, plainAddress, siteOf } from '../../lib/addresses.js';
import { RequestError } from '../../lib/router.js';
import { Buckets } from './buckets.js';

/** Nobody knows when a stream ends. */
const STREAMS_RETRY_S = '10';
const OPENS_RETRY_S = '1';
export const NO_ROOM = 'there is no room for more subscriptions on the list of subscriptions (max-presence)';

/** @typedef {import('../../lib/hubcounters.js').HubLimitName} HubLimitName */

/** A request that a limit refuses. */
export class LimitError extends RequestError {
  /** @param {number} status @param {string} message @param {HubLimitName} counter @param {Record<string, string>} [headers] */
  constructor(status, message, counter, headers) {
    super(status, message, headers);
    this.counter = counter;
  }
}

/**
 * @template Key
 * @typedef {{ key: Key, streams: number }} Share what somebody has
 */

/**
 * Streams of somebody, at most so many at a time. What is kept for a stream is its place in a map.
 * @template Key
 */
class Shares {
  /** @param {number} most */
  constructor(most) {
    this.most = most;
    /** Those with streams. @type {Map<Key, Share<Key>>} */
    this.shares = new Map();
    /** @type {Map<number, Share<Key>>} by id of a stream */
    this.byStream = new Map();
  }

  /** @param {Key} key @param {(key: Key) => boolean} [isExempt] @returns {Share<Key> | null} null if there are too many */
  take(key, isExempt) {
    const share = this.shares.get(key) ?? { key, streams: 0 };
    if (share.streams >= this.most && !isExempt?.(key)) return null;
    if (share.streams++ === 0) this.shares.set(key, share);
    return share;
  }

  /** @param {Share<Key>} share */
  release(share) {
    if (--share.streams === 0) this.shares.delete(share.key);
  }

  /** @param {number} id */
  leave(id) {
    const share = this.byStream.get(id);
    if (!share) return;
    this.byStream.delete(id);
    this.release(share);
  }
}

/** What a stream has taken. @typedef {{ site: Share<string> | null, subject: Share<number> | null }} Taken */

export class Limits {
  /**
   * @param {object} options of a Hub
   * @param {number} options.maxStreamsPerAddress
   * @param {number} options.maxStreamsPerSubject
   * @param {number} options.maxOpensPerAddress
   * @param {readonly string[]} options.proxies
   * @returns {Limits | null} null if there is none
   */
  static of({ maxStreamsPerAddress, maxStreamsPerSubject, maxOpensPerAddress, proxies }) {
    if (maxStreamsPerAddress + maxStreamsPerSubject + maxOpensPerAddress === 0) return null;
    return new Limits({
      streamsPerAddress: maxStreamsPerAddress,
      streamsPerSubject: maxStreamsPerSubject,
      opensPerAddress: maxOpensPerAddress,
      proxies,
    });
  }

  /**
   * @param {object} options 0 is no limit
   * @param {number} options.streamsPerAddress
   * @param {number} options.streamsPerSubject
   * @param {number} options.opensPerAddress per second; as many may come at once
   * @param {readonly string[]} options.proxies
   * @param {() => number} [options.nowMs]
   */
  constructor({ streamsPerAddress, streamsPerSubject, opensPerAddress, proxies, nowMs }) {
    this.isProxy = inRanges(proxies);
    /** @type {Shares<string> | null} */
    this.sites = streamsPerAddress > 0 ? new Shares(streamsPerAddress) : null;
    /** @type {Shares<number> | null} */
    this.subjects = streamsPerSubject > 0 ? new Shares(streamsPerSubject) : null;
    this.opens = opensPerAddress > 0 ? new Buckets(opensPerAddress, nowMs) : null;
  }

  /** Somebody wants a stream. @param {string} address @throws {LimitError} 429 */
  open(address) {
    if (!this.opens) return;
    const plain = plainAddress(address);
    if (plain === '' || this.opens.take(siteOf(plain)) || this.isProxy(plain)) return;
    const message = `too many streams opened from your address: at most ${this.opens.perSecond} per second (max-opens-per-address)`;
    throw new LimitError(429, message, 'hubLimitedOpensPerAddress', { 'Retry-After': OPENS_RETRY_S });
  }

  /**
   * @param {string} address '' if it is unknown @param {number} subject label of the token's sub; 0 if it has none
   * @returns {Taken} to be kept or released
   * @throws {LimitError} 429
   */
  take(address, subject) {
    const site = this.takeSite(address);
    if (!this.subjects || subject === 0) return { site, subject: null };
    const own = this.subjects.take(subject);
    if (own) return { site, subject: own };
    if (site) this.sites?.release(site);
    throw tooMany(
      'of your user',
      this.subjects.most,
      'max-streams-per-subject',
      'hubLimitedStreamsPerSubject',
    );
  }

  /** @param {string} address @returns {Share<string> | null} */
  takeSite(address) {
    if (!this.sites) return null;
    const plain = plainAddress(address);
    if (plain === '') return null;
    const share = this.sites.take(siteOf(plain), () => this.isProxy(plain));
    if (share) return share;
    throw tooMany(
      'from your address',
      this.sites.most,
      'max-streams-per-address',
      'hubLimitedStreamsPerAddress',
    );
  }

  /** @param {Taken} taken */
  release({ site, subject }) {
    if (site) this.sites?.release(site);
    if (subject) this.subjects?.release(subject);
  }

  /** @param {number} id of the stream that has it from now on @param {Taken} taken */
  keep(id, { site, subject }) {
    if (site) this.sites?.byStream.set(id, site);
    if (subject) this.subjects?.byStream.set(id, subject);
  }

  /**
   * A stream of another process is here now. It counts, even if there are too many.
   * @param {number} id @param {string} address '' if it is unknown @param {number} subject 0 if it has none
   */
  takeIn(id, address, subject) {
    const plain = plainAddress(address);
    const site = plain === '' ? null : this.sites?.take(siteOf(plain), always);
    const own = subject === 0 ? null : this.subjects?.take(subject, always);
    this.keep(id, { site: site ?? null, subject: own ?? null });
  }

  /** Whether something is counted for a stream. */
  get countsStreams() {
    return this.sites !== null || this.subjects !== null;
  }

  /** @param {number} id of any stream that has ended */
  leave(id) {
    this.sites?.leave(id);
    this.subjects?.leave(id);
  }
}

const always = () => true;

/** @param {string} whose @param {number} most @param {string} limit @param {HubLimitName} counter */
function tooMany(whose, most, limit, counter) {
  const message = `too many streams ${whose}: at most ${most} at a time (${limit})`;
  return new LimitError(429, message, counter, { 'Retry-After': STREAMS_RETRY_S });
}
