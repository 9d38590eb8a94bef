/*
 * Keeps the copy of a node in step with the stream.
 *
 *     aligning --the copy continues the stream--> following --in doubt, disconnected--> aligning
 *         \--another stream, a gap: the copy begins anew--/
 */
import { setTimeout as after } from 'node:timers/promises';
import { codeOf, messageOf } from '../../lib/errors.js';
import { Follower } from './follower.js';
import { decode, NOTHING } from './messages.js';
import { LOOK_MS } from './progress.js';
import { differencesOf, hasFrom, identityOf, infoOf, openStream, renew } from './stream.js';

/** Between two attempts to follow, with as much jitter. */
const RETRY_MS = 100;
/** Publications that the copy gets at once. */
const MOST_AT_ONCE = 500;
/** How soon the copy is tried again if it has no room, and if it fails. */
const FULL_MS = 20;
const FAILED_MS = 1000;
/** How long the last publication may be missing in the stream before it counts as lost: a new leader may still be catching up. */
const LOSS_MS = 3000;
/** A start that takes longer than this is announced. */
const SLOW_MS = 2000;
const UNUSABLE = "JetStream can't be used";

/** @typedef {import('../index.js').Draft} Draft */
/** @typedef {import('../index.js').Publication} Publication */
/** @typedef {import('./follower.js').Message} Message */
/** @typedef {import('./stream.js').Info} Info */

export class Replica {
  /**
   * @param {object} parts
   * @param {import('./link.js').Link} parts.link
   * @param {import('@nats-io/jetstream').JetStreamManager} parts.manager
   * @param {import('../index.js').Copy} parts.copy
   * @param {import('./progress.js').Progress} parts.progress
   * @param {import('./older.js').Older} parts.older
   * @param {import('./lastvalues.js').LastValues | null} parts.lastValues null if no topics are cached
   * @param {import('./stream.js').Wanted} parts.wanted
   * @param {(line: string) => void} parts.onNote
   */
  constructor({ link, manager, copy, progress, older, lastValues, wanted, onNote }) {
    this.link = link;
    this.manager = manager;
    this.copy = copy;
    this.progress = progress;
    this.older = older;
    this.lastValues = lastValues;
    this.wanted = wanted;
    this.onNote = onNote;
    /** The last publications of cached topics from before the copy; null until they are read. @type {Publication[] | null} */
    this.earlier = null;
    const onMessages = (/** @type {Message[]} */ messages) => this.keep(messages);
    this.follower = new Follower({ nc: link.nc, manager, stream: wanted.name, onMessages });
    this.isLooking = false;
    /** What the copy had at the last look. */
    this.lastBefore = -1;
    this.isStarted = false;
    /** @type {Promise<void> | null} until it follows no more */
    this.running = null;
    this.timer = setInterval(() => this.look(), LOOK_MS).unref();
    link.listeners.push(() => this.follower.end('the connection was lost')); // its consumer may be gone
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
    this.earlier ??= await this.earlierThan({ epoch: this.copy.epoch, last: this.copy.first - 1 });
    this.running = this.run();
    const beganMs = performance.now();
    const isBehind = () => this.copy.last < Math.min(info.state.last_seq, this.progress.seen.last); // it may have been created again
    for (let noted = ''; !this.progress.isFollowing || isBehind(); ) {
      await after(FULL_MS, undefined, { signal });
      if (performance.now() - beganMs < SLOW_MS) continue;
      const { problem } = this.progress;
      const line = problem ? `${UNUSABLE}: ${problem}; trying again` : 'reading publications from NATS';
      if (shapeOf(line) !== noted) this.onNote(line);
      noted = shapeOf(line);
    }
    this.isStarted = true;
    const { version = '' } = this.link.nc.info ?? {};
    const { messages } = info.state;
    const where = `NATS ${version} (${this.link.nc.getServer()})`;
    this.onNote(`publications are in ${where}: stream ${this.wanted.name}, with ${messages} of them`);
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

  /** @returns {Promise<void>} once it does not follow the stream any more */
  async close() {
    clearInterval(this.timer);
    this.progress.end();
    this.follower.end('closed');
    await this.running;
  }

  /** Follows the stream until it is closed. */
  async run() {
    while (!this.progress.isOver) {
      try {
        if (!(await this.link.ready(LOOK_MS))) throw new Error(this.link.problem || 'not connected');
        const info = await openStream(this.manager, this.wanted);
        this.note(info);
        await this.align(info);
        if (this.progress.isOver) return; // nobody would end it
        this.progress.problem = await this.follower.follow(this.copy.last, () => {
          this.progress.isFollowing = true;
          this.progress.problem = '';
        });
      } catch (error) {
        this.failed(messageOf(error));
      }
      this.progress.isFollowing = false;
      if (!this.progress.isOver) await after(RETRY_MS * (1 + Math.random()));
    }
  }

  /** The connection has notes of its own. @param {string} problem noted once, as long as nothing else is wrong */
  failed(problem) {
    const isNew =
      shapeOf(problem) !== shapeOf(this.progress.problem) && this.link.isConnected && this.isStarted;
    this.progress.problem = problem;
    if (isNew) this.onNote(`${UNUSABLE}: ${problem}; trying again`);
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
    await this.begin({
      ...identityOf(info),
      last: last - Math.min(historyCount, Math.ceil(stored * part)),
    });
    this.note(info);
  }

  /** The copy begins anew. @param {import('../index.js').Order} order */
  async begin(order) {
    this.earlier = await this.earlierThan(order);
    await this.copy.restart(order);
  }

  /** @param {{ epoch: number, last: number }} order @returns {Promise<Publication[]>} the last publications of cached topics, up to `last` */
  async earlierThan(order) {
    return this.lastValues ? this.lastValues.read(order) : [];
  }

  /** The next messages of the stream. @param {Message[]} messages */
  async keep(messages) {
    for (let start = 0, end = 0; start < messages.length && !this.progress.isOver; start = end) {
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
    await this.begin({ epoch, key, last: sequence - 1 });
  }

  /** @param {Draft[]} drafts @returns {Promise<void>} once the copy has them, however long that takes */
  async store(drafts) {
    while (!this.progress.isOver) {
      try {
        await this.copy.append(drafts);
        this.progress.storeProblem = '';
        return;
      } catch (error) {
        if (codeOf(error) === 'CLOSED') return;
        if (codeOf(error) !== 'BUSY') this.progress.storeProblem = messageOf(error);
        await after(codeOf(error) === 'BUSY' ? FULL_MS : FAILED_MS);
      }
    }
  }

  /** @param {Info} info */
  note(info) {
    this.older.isDirect = info.config.allow_direct === true;
    this.progress.note(info);
  }

  /** Sees how far the stream is, and whether it is still the same. */
  async look() {
    if (!this.progress.isFollowing || this.isLooking) return;
    this.isLooking = true;
    const { last } = this.copy;
    try {
      const info = await infoOf(this.manager, this.wanted.name);
      const reason = this.reasonToAlign(info, last);
      if (reason || !info) return this.follower.end(reason);
      this.note(info);
      this.progress.problem = '';
      this.lastBefore = last;
    } catch (error) {
      this.progress.problem = messageOf(error); // the age of the last look shows
    } finally {
      this.isLooking = false;
    }
  }

  /** @param {Info | null} info @param {number} last of the copy, before the stream was looked at @returns {string} '' if there is none */
  reasonToAlign(info, last) {
    if (!info) return 'the stream is gone';
    if (identityOf(info).epoch !== this.copy.epoch) return 'it is another stream';
    if (info.state.last_seq < last) return 'the stream ends before what this node has';
    const isStuck = last === this.lastBefore && last < this.progress.seen.last && this.follower.isIdle;
    return isStuck ? 'what is missing does not come' : ''; // it may have been removed
  }
}

/** @param {Draft} draft @returns {string} the same for equal ones */
function textOf({ topics, data, private: isPrivate, id, type, retry }) {
  return JSON.stringify([topics, data, isPrivate, id, type, retry]);
}

/** @param {string} problem @returns {string} the same for the same problem: subjects may have random parts */
function shapeOf(problem) {
  return problem.replace(/"[^"]*"/g, '');
}
