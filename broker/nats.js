/*
 * Publications in a stream of NATS JetStream, which the nodes of a hub share. Its sequences are those of the hub. Each node follows
 * the stream and keeps a copy of the last publications, in memory or on disk; its followers and most reads are served from that.
 *
 *     append --> publisher --> JetStream --> replica --> copy --> followers --> the append resolves
 *                                 |--> older: what the copy does not have
 *                                 \--> lastvalues: cached topics that are older than the copy
 */
import { setTimeout as after } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { busy } from './appends.js';
import { Cached } from './cached.js';
import { sizeOf } from './limits.js';
import { openLocal } from './local.js';
import { Bus } from './nats/bus.js';
import { LastValues } from './nats/lastvalues.js';
import { Link } from './nats/link.js';
import { prefixOf } from './nats/messages.js';
import { Older } from './nats/older.js';
import { Progress } from './nats/progress.js';
import { Publisher } from './nats/publisher.js';
import { Replica } from './nats/replica.js';
import { infoOf } from './nats/stream.js';

/** Publishers usually stop waiting after 5 s. */
const ACK_MS = 4500;
/** How long an append waits for this node to have what is acknowledged, at most until `REACH_END_MS` after its call. */
const REACH_MS = 1000;
const REACH_END_MS = 4900;
/** A question to JetStream that is asked while it starts is never answered, so it is asked again after this. */
const API_MS = 1000;
/** How often it is looked whether ids are known. */
const STEP_MS = 20;

/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Copy} Copy */
/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Listener} Listener */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */
/** @typedef {import('./nats/publisher.js').Prepared} Prepared */
/** @typedef {import('./nats/link.js').Address & { stream: string, replicas: number }} NatsOptions */

/**
 * @param {import('./index.js').Limits & { store: string, syncs: boolean, nats: NatsOptions, onNote: (line: string) => void }} options
 * @param {AbortSignal} [signal] ends waiting for NATS
 * @returns {Promise<Broker>} once the copy has what was published before
 * @throws {HoldfastError} NATS, STORE, BAD_OPTION
 */
export async function openNats(
  { nats, store, syncs, onNote, ...limits },
  signal = new AbortController().signal,
) {
  const { stream: name, replicas } = nats;
  const { historyCount, historyAgeMs, historyBytes } = limits;
  const wanted = { name, replicas, retention: { historyCount, historyAgeMs, historyBytes } };
  const link = await Link.open(nats, { onNote, signal });
  /** @type {{ close: () => Promise<void> }[]} what has to be closed if the rest fails */
  const parts = [link];
  try {
    const copy = await openLocal({ store, syncs, ...limits, isCopy: true });
    parts.push(copy);
    const manager = await jetstreamManager(link.nc, { checkAPI: false, timeout: API_MS });
    const broker = new NatsBroker({ link, manager, copy, wanted, limits, onNote });
    parts.splice(0, parts.length, broker);
    await broker.replica.start(signal);
    return broker;
  } catch (error) {
    for (const part of parts) await part.close();
    throw error;
  }
}

/** @implements {Broker} */
export class NatsBroker {
  /**
   * @param {object} parts
   * @param {Link} parts.link
   * @param {import('@nats-io/jetstream').JetStreamManager} parts.manager
   * @param {Copy} parts.copy
   * @param {import('./nats/stream.js').Wanted} parts.wanted
   * @param {import('./index.js').Limits} parts.limits
   * @param {(line: string) => void} parts.onNote
   */
  constructor({ link, manager, copy, wanted, limits, onNote }) {
    const { isCached, hasCached = true, maxQueueBytes } = limits;
    const { name: stream } = wanted;
    this.link = link;
    this.bus = new Bus({ link, prefix: prefixOf(stream) });
    this.copy = copy;
    this.isCached = isCached;
    this.maxQueueBytes = maxQueueBytes;
    this.publisher = new Publisher({ link, client: jetstream(link.nc), stream, isCached, ackMs: ACK_MS });
    this.older = new Older({ link, manager, stream });
    this.progress = new Progress({ link, copy, ask: () => infoOf(manager, stream) });
    const lastValues = hasCached ? new LastValues({ link, manager, wanted, onNote }) : null;
    const { older, progress } = this;
    this.replica = new Replica({ link, manager, copy, progress, older, lastValues, wanted, onNote });
    /** Of drafts that are on their way. */
    this.bytes = 0;
    /** Until all drafts so far have been sent. @type {Promise<void>} */
    this.sending = Promise.resolve();
    /** @type {Set<Promise<Receipt[]>>} appends that are not answered yet */
    this.publishing = new Set();
    this.isClosed = false;
    copy.follow(
      () => progress.advanced(),
      () => {
        older.reads.restart();
        progress.advanced();
      },
    );
  }

  get epoch() {
    return this.copy.epoch;
  }

  get key() {
    return this.copy.key;
  }

  get last() {
    return this.copy.last;
  }

  /** Somebody may have purged the stream, and the copy may not have everything. */
  get first() {
    return Math.min(this.progress.seen.first, this.copy.last + 1);
  }

  /** @returns {import('./index.js').State | undefined} undefined once it is closed */
  get state() {
    return this.isClosed ? undefined : this.progress.state;
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<Receipt[]>} */
  async append(drafts) {
    if (this.isClosed) throw new HoldfastError('CLOSED', 'the broker is closed');
    let bytes = 0;
    for (const draft of drafts) bytes += sizeOf(draft);
    const waiting = this.bytes + this.copy.waitingBytes;
    if (waiting > 0 && waiting + bytes > this.maxQueueBytes) throw busy(waiting, this.maxQueueBytes);
    const prepared = drafts.map((draft) => this.publisher.prepare(draft)); // if one is too large, none is sent
    this.bytes += bytes;
    const receipts = this.publish(drafts, prepared);
    this.publishing.add(receipts);
    try {
      return await receipts;
    } finally {
      this.publishing.delete(receipts);
      this.bytes -= bytes;
    }
  }

  /** @param {readonly Draft[]} drafts @param {readonly Prepared[]} prepared @returns {Promise<Receipt[]>} */
  async publish(drafts, prepared) {
    const beganMs = performance.now();
    const outcomes = await Promise.allSettled(await this.sent(drafts, prepared, beganMs + ACK_MS));
    const isPart = outcomes.some(({ status }) => status === 'fulfilled');
    const receipts = outcomes.map((outcome) => {
      if (outcome.status === 'rejected') throw isPart ? inPart(outcome.reason) : outcome.reason;
      return outcome.value;
    });
    const last = receipts.reduce((most, { sequence }) => Math.max(most, sequence), 0);
    await this.progress.reached(last, Math.min(performance.now() + REACH_MS, beganMs + REACH_END_MS));
    return receipts;
  }

  /**
   * Sends drafts in the order of the calls. NATS knows the ids of the last minutes, and the copy those of everything it has.
   * @param {readonly Draft[]} drafts @param {readonly Prepared[]} prepared @param {number} endMs
   * @returns {Promise<Promise<Receipt>[]>} one for each
   */
  async sent(drafts, prepared, endMs) {
    const before = this.sending;
    const hasIds = drafts.some(({ id }) => id !== undefined);
    const found = hasIds && this.knowsIds ? this.found(drafts) : null;
    const sent = before.then(async () => {
      if (hasIds && !found) await this.untilIdsAreKnown(endMs);
      const sequences = hasIds ? await (found ?? this.found(drafts)) : [];
      return {
        receipts: prepared.map((one, i) => {
          const sequence = sequences[i];
          return sequence === undefined
            ? this.publisher.publish(one, endMs)
            : Promise.resolve({ sequence, isNew: false });
        }),
      };
    });
    this.sending = sent.then(noop, noop);
    return (await sent).receipts;
  }

  /** @param {readonly Draft[]} drafts @returns {Promise<(number | undefined)[]>} sequences of those whose ids the copy knows */
  found(drafts) {
    const found = drafts.map(({ id }) => (id === undefined ? undefined : this.copy.find(id)));
    return Promise.all(found).catch(() => []); // NATS will know
  }

  /** Whether everything that NATS has forgotten the id of is in the copy. */
  get knowsIds() {
    return this.progress.lagMs <= this.progress.windowMs / 2;
  }

  /** After a long outage NATS has forgotten ids that this node has not seen yet. @param {number} endMs @throws {HoldfastError} BUSY */
  async untilIdsAreKnown(endMs) {
    while (!this.knowsIds) {
      if (performance.now() >= endMs || this.progress.isOver)
        throw tooFarBehind(this.progress.lagMs, this.link.problem);
      await after(STEP_MS);
    }
  }

  /** @param {Listener} listener @param {() => void} [onReset] */
  follow(listener, onReset) {
    this.copy.follow(listener, onReset);
  }

  /** @param {number} after @param {number} most @returns {Promise<readonly Publication[]>} */
  async read(after, most) {
    if (after >= this.copy.last) await this.progress.caughtUp();
    const first = Math.max(after + 1, this.first);
    if (first >= this.copy.first) return this.copy.read(first - 1, most);
    const older = await this.older.read(first, Math.min(most, this.copy.first - first)).catch((error) => {
      const line = `what was published before can't be read from NATS: ${messageOf(error)}`;
      throw new HoldfastError('BUSY', line);
    });
    const found = older.filter(({ sequence }) => sequence < this.copy.first);
    return found.length > 0 ? found : this.copy.read(this.copy.first - 1, most);
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  async find(id) {
    const found = await this.copy.find(id);
    if (found !== undefined) return found;
    await this.progress.caughtUp(); // another node may have published it
    return this.copy.find(id);
  }

  /** @returns {Promise<readonly Publication[]>} */
  async latest() {
    const own = await this.copy.latest();
    const { earlier } = this.replica;
    if (!earlier?.length) return own;
    const bySequence = new Map(
      [...earlier, ...own].map((publication) => [publication.sequence, publication]),
    );
    const all = [...bySequence.values()].sort((one, other) => one.sequence - other.sequence);
    const cached = new Cached(this.isCached);
    for (const publication of all) cached.note(publication, sizeOf(publication));
    return all.filter(({ sequence }) => cached.has(sequence));
  }

  async close() {
    this.isClosed = true;
    await this.bus.close().catch(noop);
    await Promise.allSettled(this.publishing);
    await this.replica.close();
    await this.link.close();
    await this.copy.close();
  }
}

/** @param {unknown} error of one of several drafts, others of which are stored @returns {unknown} */
function inPart(error) {
  if (!(error instanceof HoldfastError)) return error;
  return new HoldfastError(error.code, `a part of the publications is stored; ${error.message}`);
}

/** @param {number} lagMs @param {string} problem @returns {HoldfastError} */
function tooFarBehind(lagMs, problem) {
  const line = `this server is ${Math.round(lagMs)} ms behind NATS${problem && ` (${problem})`}`;
  return new HoldfastError('BUSY', `${line}, and can't know whether the ids are new: nothing was stored`);
}

function noop() {}
