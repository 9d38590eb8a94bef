/*
 * Reads from the stream what a node does not have itself. Servers from 2.11 on give many messages at once, others one by one.
 */
import { JetStreamError } from '@nats-io/jetstream';
import { READ_BYTES, sizeOf } from '../limits.js';
import { numbered } from '../order.js';
import { SharedReads } from '../parts.js';
import { decode, NOTHING } from './messages.js';

/** The first version that gives many messages at once. */
const BATCHES = [2, 11];
/** Messages that are asked for at the same time, if one by one. */
const AT_ONCE = 64;
/** Reads at the same time; the others wait. */
const MOST_READS = 4;

const NOT_FOUND = 404;

/** @typedef {import('../index.js').Publication} Publication */
/** @typedef {{ seq: number, data: Uint8Array, time: Date, header: { get: (name: string) => string } }} Stored */

export class Older {
  /**
   * @param {object} options
   * @param {import('./link.js').Link} options.link
   * @param {import('@nats-io/jetstream').JetStreamManager} options.manager
   * @param {string} options.stream its name
   */
  constructor({ link, manager, stream }) {
    this.link = link;
    this.manager = manager;
    this.stream = stream;
    /** Whether every server that has the stream answers, and many messages at once. */
    this.isDirect = true;
    this.reads = new SharedReads(MOST_READS);
  }

  /**
   * @param {number} first a sequence @param {number} most
   * @returns {Promise<Publication[]>} consecutive ones; the first is the oldest that is still stored
   */
  read(first, most) {
    return this.reads.share(`${first} ${most}`, () => this.collect(first, most));
  }

  /** @param {number} first @param {number} most @returns {Promise<Publication[]>} */
  async collect(first, most) {
    /** @type {Publication[]} */
    const publications = [];
    let bytes = 0;
    for await (const { seq, data, time } of this.stored(first, most)) {
      const before = publications.at(-1)?.sequence;
      if (before !== undefined && seq !== before + 1) break; // whoever asks for the next one is told that something is missing
      const publication = numbered(decode(data) ?? NOTHING, seq, time.getTime());
      bytes += sizeOf(publication);
      if (bytes > READ_BYTES && publications.length > 0) break;
      publications.push(publication);
    }
    return publications;
  }

  /** @param {number} first @param {number} most @returns {AsyncIterable<Stored>} in order */
  stored(first, most) {
    return this.hasBatches() ? this.batch(first, most) : this.oneByOne(first, most);
  }

  /** Who answers for single messages. */
  get source() {
    return this.isDirect ? this.manager.direct : this.manager.streams;
  }

  /** @returns {boolean} */
  hasBatches() {
    if (!this.isDirect) return false;
    const [major = 0, minor = 0] = (this.link.nc.info?.version ?? '').split('.').map(Number);
    return major > BATCHES[0] || (major === BATCHES[0] && minor >= BATCHES[1]);
  }

  /** @param {number} first @param {number} most @returns {AsyncGenerator<Stored>} */
  async *batch(first, most) {
    const limits = { seq: first, batch: most, max_bytes: READ_BYTES };
    try {
      yield* await this.manager.direct.getBatch(this.stream, /** @type {any} */ (limits));
    } catch (error) {
      if (!(error instanceof JetStreamError && 'code' in error && error.code === NOT_FOUND)) throw error;
    }
  }

  /** @param {number} first @param {number} most @returns {AsyncGenerator<Stored>} */
  async *oneByOne(first, most) {
    const oldest = await this.from(first);
    if (!oldest) return;
    yield oldest;
    const end = oldest.seq + most;
    for (let start = oldest.seq + 1; start < end; start += AT_ONCE) {
      const count = Math.min(AT_ONCE, end - start);
      const asked = Array.from({ length: count }, (_, i) => this.one(start + i));
      for (const stored of await Promise.all(asked)) if (stored) yield stored;
    }
  }

  /** @param {number} first @param {number} most @returns {AsyncGenerator<Stored>} the next ones, however far apart they are */
  async *next(first, most) {
    if (this.hasBatches()) return yield* this.batch(first, most);
    let stored = await this.from(first);
    for (let count = 0; stored && count < most; count++) {
      yield stored;
      stored = await this.from(stored.seq + 1);
    }
  }

  /** @param {number} seq @returns {Promise<Stored | null>} the first one from there on */
  from(seq) {
    return this.source.getMessage(this.stream, /** @type {any} */ ({ seq, next_by_subj: '>' })); // the types lack the second one
  }

  /** @param {number} seq @returns {Promise<Stored | null>} */
  one(seq) {
    return this.source.getMessage(this.stream, { seq });
  }
}
