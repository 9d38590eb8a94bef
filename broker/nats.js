/*
 * Publications in a stream of NATS JetStream, which the nodes of a hub share. Its sequences are those of the hub. Each node follows
 * the stream and keeps a copy of the last publications, in memory or on disk; its followers and most reads are served from that.
 *
 *     append --> publisher --> JetStream --> follower --> copy --> followers --> the append resolves
 *                                 \--> older: what the copy does not have
 *
 *     aligning --the copy continues the stream--> following --in doubt, disconnected--> aligning
 *         \--another stream, a gap: the copy starts anew--/
 */
import { setTimeout as after } from 'node:timers/promises';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';
import { busy } from './appends.js';
import { sizeOf } from './limits.js';
import { openLocal } from './local.js';
import { Bus } from './nats/bus.js';
import { Follower } from './nats/follower.js';
import { Link } from './nats/link.js';
import { decode, NOTHING, prefixOf } from './nats/messages.js';
import { Newest } from './nats/newest.js';
import { Older } from './nats/older.js';
import { Publisher } from './nats/publisher.js';
import { differencesOf, hasFrom, identityOf, infoOf, openStream, renew, windowMsOf } from './nats/stream.js';

/** Publishers usually stop waiting after 5 s. */
const ACK_MS = 4500;
/** How often the stream is looked at, to know how far this node is behind. */
const LOOK_MS = 1000;
/** Between two attempts to follow, with as much jitter. */
const RETRY_MS = 100;
/** Publications that the copy gets at once. */
const MOST_AT_ONCE = 500;
/** How soon the copy is tried again if it has no room, and if it fails. */
const FULL_MS = 20;
const FAILED_MS = 1000;
/** How long an append waits for this node to have what is acknowledged, at most until `REACH_END_MS` after its call. */
const REACH_MS = 1000;
const REACH_END_MS = 4900;
/** How long the last publication may be missing in the stream before it counts as lost: a new leader may still be catching up. */
const LOSS_MS = 3000;
const UNUSABLE = "JetStream can't be used";
/** How long a question may wait for publications that this node does not have yet. */
const CATCH_UP_MS = 2000;
/** A start that takes longer than this is announced. */
const SLOW_MS = 2000;

/** @typedef {import('./index.js').Broker} Broker */
/** @typedef {import('./index.js').Copy} Copy */
/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Listener} Listener */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */
/** @typedef {import('./nats/follower.js').Message} Message */
/** @typedef {import('./nats/publisher.js').Prepared} Prepared */
/** @typedef {import('./nats/stream.js').Info} Info */
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
  /** @type {NatsBroker | undefined} */
  let broker;
  try {
    const copy = await openLocal({ store, syncs, ...limits, isCopy: true });
    const manager = await jetstreamManager(link.nc, { checkAPI: false });
    broker = new NatsBroker({ link, manager, copy, wanted, maxQueueBytes: limits.maxQueueBytes, onNote });
    await broker.start(signal);
    return broker;
  } catch (error) {
    await (broker ?? link).close();
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
   * @param {number} parts.maxQueueBytes of drafts that are not acknowledged yet
   * @param {(line: string) => void} parts.onNote
   */
  constructor({ link, manager, copy, wanted, maxQueueBytes, onNote }) {
    const { name: stream } = wanted;
    const { nc } = link;
    this.link = link;
    this.bus = new Bus({ link, prefix: prefixOf(stream) });
    this.manager = manager;
    this.copy = copy;
    this.wanted = wanted;
    this.maxQueueBytes = maxQueueBytes;
    this.onNote = onNote;
    this.publisher = new Publisher({ link, client: jetstream(nc), stream, ackMs: ACK_MS });
    this.older = new Older({ link, manager, stream });
    this.follower = new Follower({ nc, manager, stream, onMessages: (messages) => this.keep(messages) });
    /** Of drafts that are on their way. */
    this.bytes = 0;
    /** Until all drafts so far have been sent. @type {Promise<void>} */
    this.sending = Promise.resolve();
    /** @type {Set<Promise<Receipt[]>>} appends that are not answered yet */
    this.publishing = new Set();
    /** What the last look at the stream has found. */
    this.seen = { first: copy.first, last: copy.last, atMs: 0 };
    this.isLooking = false;
    this.newest = new Newest(() => infoOf(manager, stream));
    /** What the copy had at the last look. */
    this.lastBefore = -1;
    /** How long NATS knows the id of a publication. */
    this.windowMs = 0;
    /** When this node last had everything. */
    this.currentMs = performance.now();
    this.isFollowing = false;
    /** Whether it takes no more drafts, and whether it does not follow the stream any more. */
    this.isClosed = false;
    this.isOver = false;
    this.problem = '';
    /** Appends that wait for the copy. @type {Set<{ sequence: number, done: () => void }>} */
    this.waiting = new Set();
    /** @type {Promise<void> | null} until it follows no more */
    this.running = null;
    this.timer = setInterval(() => this.look(), LOOK_MS).unref();
    link.listeners.push(() => this.follower.end('the connection was lost')); // its consumer may be gone
    copy.follow(
      () => this.advanced(),
      () => this.advanced(),
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
    return Math.min(this.seen.first, this.copy.last + 1);
  }

  /** How far this node is behind, for the monitor. @returns {import('./index.js').State} */
  get state() {
    const { link, isFollowing, behind, lagMs } = this;
    return {
      isConnected: link.isConnected && isFollowing,
      behind,
      lagMs: Math.round(lagMs),
      problem: link.problem || this.problem,
    };
  }

  get behind() {
    return Math.max(0, this.seen.last - this.copy.last);
  }

  get lagMs() {
    const nowMs = performance.now();
    const { link, isFollowing, seen } = this;
    const isFresh =
      link.isConnected && isFollowing && seen.atMs > Math.max(link.sinceMs, nowMs - 3 * LOOK_MS);
    return isFresh && this.behind === 0 ? 0 : nowMs - this.currentMs;
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
    await this.reached(last, Math.min(performance.now() + REACH_MS, beganMs + REACH_END_MS));
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
    return this.lagMs <= this.windowMs / 2;
  }

  /** After a long outage NATS has forgotten ids that this node has not seen yet. @param {number} endMs @throws {HoldfastError} BUSY */
  async untilIdsAreKnown(endMs) {
    while (!this.knowsIds) {
      if (performance.now() >= endMs || this.isOver) throw tooFarBehind(this.lagMs, this.link.problem);
      await after(FULL_MS);
    }
  }

  /** @param {number} sequence @param {number} endMs @returns {Promise<void>} when the copy has it, or if that takes long */
  reached(sequence, endMs) {
    if (sequence <= this.copy.last) return Promise.resolve();
    return new Promise((resolve) => {
      const one = {
        sequence,
        done: () => {
          clearTimeout(timer);
          this.waiting.delete(one);
          resolve();
        },
      };
      const timer = setTimeout(one.done, endMs - performance.now());
      this.waiting.add(one);
    });
  }

  /** The copy has more than before. */
  advanced() {
    const { last } = this.copy;
    if (last >= this.seen.last) this.currentMs = Math.max(this.currentMs, this.seen.atMs);
    for (const { sequence, done } of this.waiting) if (sequence <= last) done();
  }

  /** @param {Listener} listener @param {() => void} [onReset] */
  follow(listener, onReset) {
    this.copy.follow(listener, onReset);
  }

  /** @param {number} after @param {number} most @returns {Promise<readonly Publication[]>} */
  async read(after, most) {
    if (after >= this.copy.last) await this.caughtUp();
    const first = Math.max(after + 1, this.first);
    if (first >= this.copy.first) return this.copy.read(first - 1, most);
    try {
      return await this.older.read(first, Math.min(most, this.copy.first - first));
    } catch (error) {
      throw new HoldfastError(
        'BUSY',
        `what was published before can't be read from NATS: ${messageOf(error)}`,
      );
    }
  }

  /** @param {string} id @returns {Promise<number | undefined>} */
  async find(id) {
    const found = await this.copy.find(id);
    if (found !== undefined) return found;
    await this.caughtUp(); // another node may have published it
    return this.copy.find(id);
  }

  /**
   * @returns {Promise<void>} when this node has everything that was published before the call
   * @throws {HoldfastError} BUSY if that takes long
   */
  async caughtUp() {
    const endMs = performance.now() + CATCH_UP_MS;
    if (!(await this.link.ready(CATCH_UP_MS))) throw behind(this.link.problem);
    const info = await this.newest.get().catch((error) => {
      throw behind(messageOf(error));
    });
    if (!info) throw behind('the stream is gone');
    while (this.copy.last < info.state.last_seq) {
      if (performance.now() >= endMs || this.isOver) throw behind(this.state.problem);
      await after(FULL_MS);
    }
  }

  /** @returns {Promise<readonly Publication[]>} */
  latest() {
    return this.copy.latest();
  }

  async close() {
    this.isClosed = true;
    await this.bus.close();
    await Promise.allSettled(this.publishing);
    clearInterval(this.timer);
    this.isOver = true;
    this.follower.end('closed');
    await this.running;
    for (const { done } of this.waiting) done();
    await this.link.close();
    await this.copy.close();
  }

  /**
   * @param {AbortSignal} signal
   * @returns {Promise<void>} when the copy has everything that was published before
   * @throws {HoldfastError} NATS: the stream can't be used
   */
  async start(signal) {
    const info = await this.firstLook(signal);
    for (const line of differencesOf(info, this.wanted))
      this.onNote(`--nats-stream ${this.wanted.name}: ${line}`);
    await this.align(info);
    this.running = this.run();
    const beganMs = performance.now();
    for (let noted = ''; !this.isFollowing || this.copy.last < info.state.last_seq; ) {
      await after(FULL_MS, undefined, { signal });
      if (performance.now() - beganMs < SLOW_MS) continue;
      const { problem } = this;
      const line = problem ? `${UNUSABLE}: ${problem}; trying again` : 'reading publications from NATS';
      if (shapeOf(line) !== noted) this.onNote(line);
      noted = shapeOf(line);
    }
  }

  /** Until JetStream answers: its servers may still be electing a leader. @param {AbortSignal} signal @returns {Promise<Info>} */
  async firstLook(signal) {
    for (let noted = ''; ; ) {
      try {
        const info = await openStream(this.manager, this.wanted);
        this.note(info);
        return info;
      } catch (error) {
        if (codeOf(error) === 'NATS') throw error;
        const problem = messageOf(error);
        if (shapeOf(problem) !== noted) this.onNote(`${UNUSABLE}: ${problem}; trying again`);
        noted = shapeOf(problem);
        await after(FAILED_MS, undefined, { signal });
      }
    }
  }

  /** Follows the stream until it is closed. */
  async run() {
    while (!this.isOver) {
      try {
        if (!(await this.link.ready(LOOK_MS))) continue;
        const info = await openStream(this.manager, this.wanted);
        this.note(info);
        await this.align(info);
        this.problem = await this.follower.follow(this.copy.last, () => {
          this.isFollowing = true;
          this.problem = '';
        });
      } catch (error) {
        this.problem = messageOf(error);
      }
      this.isFollowing = false;
      if (!this.isOver) await after(RETRY_MS * (1 + Math.random()));
    }
  }

  /** Makes the copy continue the stream: if it can't, it starts anew. @param {Info} info */
  async align(info) {
    const { copy } = this;
    const { epoch } = identityOf(info);
    if (epoch === copy.epoch && (await this.isLost(info))) {
      this.onNote('NATS has lost publications that it had acknowledged: all streams start anew');
      return this.restart(await renew(this.manager, info));
    }
    const { first_seq: first, last_seq: last } = info.state;
    if (epoch !== copy.epoch || copy.last < first - 1) await this.restart(info);
    if (copy.last < last && (await this.isGone(info, copy.last + 1))) await this.skipTo(last + 1);
  }

  /** @param {Info} info @param {number} sequence @returns {Promise<boolean>} whether the stream has nothing from there on, even after a while */
  async isGone(info, sequence) {
    if (await hasFrom(this.manager, info, sequence)) return false;
    await after(LOSS_MS);
    return !(await hasFrom(this.manager, info, sequence));
  }

  /** @param {Info} info @returns {Promise<boolean>} whether the last publication of the copy is not in the stream any more, or another one is there */
  async isLost(info) {
    const { last } = this.copy;
    const { first_seq: first, last_seq: end } = info.state;
    if (last < first || this.copy.first > last) return last > end && (await this.isStillBehind(last));
    const [ours] = await this.copy.read(last - 1, 1);
    const [theirs] = await this.older.collect(last, 1);
    if (theirs?.sequence !== last) return last > end && (await this.isStillBehind(last));
    return !ours || textOf(ours) !== textOf(theirs);
  }

  /** @param {number} sequence @returns {Promise<boolean>} whether the stream still ends before it after a while */
  async isStillBehind(sequence) {
    await after(LOSS_MS);
    const info = await infoOf(this.manager, this.wanted.name);
    return info !== null && info.state.last_seq < sequence;
  }

  /** The copy starts anew, with as much of the stream as it may keep. @param {Info} info */
  async restart(info) {
    const { first_seq: first, last_seq: last, bytes } = info.state;
    const { historyCount, historyBytes } = this.wanted.retention;
    const stored = last - Math.max(first, 1) + 1; // a new stream begins with 0
    const part = bytes > 0 ? Math.min(1, historyBytes / bytes) : 1;
    await this.copy.restart({
      ...identityOf(info),
      last: last - Math.min(historyCount, Math.ceil(stored * part)),
    });
    this.note(info);
  }

  /** The next messages of the stream. @param {Message[]} messages */
  async keep(messages) {
    for (let start = 0, end = 0; start < messages.length; start = end) {
      const { sequence } = messages[start];
      if (sequence !== this.copy.last + 1) await this.skipTo(sequence);
      const most = Math.min(messages.length, start + MOST_AT_ONCE);
      while (end < most && messages[end].sequence === sequence + end - start) end++;
      await this.store(messages.slice(start, end).map(({ data }) => decode(data) ?? NOTHING));
    }
  }

  /** Messages were removed from the stream before this node had them. @param {number} sequence of the next one */
  async skipTo(sequence) {
    const { epoch, key, last } = this.copy;
    if (sequence <= last) throw new Error(`message ${sequence} came after ${last}`);
    this.onNote(`publications ${last + 1} to ${sequence - 1} were removed from NATS before they came here`);
    await this.copy.restart({ epoch, key, last: sequence - 1 });
  }

  /** @param {Draft[]} drafts @returns {Promise<void>} once the copy has them, however long that takes */
  async store(drafts) {
    while (!this.isOver) {
      try {
        return void (await this.copy.append(drafts));
      } catch (error) {
        if (codeOf(error) === 'CLOSED') return;
        if (codeOf(error) !== 'BUSY') this.problem = messageOf(error);
        await after(codeOf(error) === 'BUSY' ? FULL_MS : FAILED_MS);
      }
    }
  }

  /** @param {Info} info */
  note(info) {
    const { first_seq: first, last_seq: last } = info.state;
    this.windowMs = windowMsOf(info);
    this.older.isDirect = info.config.allow_direct === true;
    this.seen = { first: Math.max(first, 1), last, atMs: performance.now() };
    this.advanced();
  }

  /** Sees how far the stream is, and whether it is still the same. */
  async look() {
    if (!this.isFollowing || this.isLooking) return;
    this.isLooking = true;
    const { last } = this.copy;
    try {
      const info = await infoOf(this.manager, this.wanted.name);
      const reason = this.reasonToAlign(info, last);
      if (reason || !info) return this.follower.end(reason);
      this.note(info);
      this.lastBefore = last;
    } catch (error) {
      this.problem = messageOf(error); // the age of the last look shows
    } finally {
      this.isLooking = false;
    }
  }

  /** @param {Info | null} info @param {number} last of the copy, before the stream was looked at @returns {string} '' if there is none */
  reasonToAlign(info, last) {
    if (!info) return 'the stream is gone';
    if (identityOf(info).epoch !== this.copy.epoch) return 'it is another stream';
    if (info.state.last_seq < last) return 'the stream ends before what this node has';
    const isStuck = last === this.lastBefore && last < this.seen.last && this.follower.isIdle;
    return isStuck ? 'what is missing does not come' : ''; // it may have been removed
  }
}

/** @param {Draft} draft @returns {string} the same for equal ones */
function textOf({ topics, data, private: isPrivate, id, type, retry }) {
  return JSON.stringify([topics, data, isPrivate, id, type, retry]);
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

/** @param {string} problem @returns {string} the same for the same problem: subjects may have random parts */
function shapeOf(problem) {
  return problem.replace(/"[^"]*"/g, '');
}

/** @param {string} problem @returns {HoldfastError} */
function behind(problem) {
  return new HoldfastError('BUSY', `this server is behind NATS${problem && ` (${problem})`}: try again`);
}

function noop() {}
