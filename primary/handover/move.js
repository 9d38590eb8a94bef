/*
 * Moves streams from old workers to new ones, in rounds. Each is all or nothing, and publications pause meanwhile.
 *
 *     offer, connect --> freeze --> sync --> move, learn --> release --> go --> thaw --> the next round, or withdraw
 *                           \---------\-------\-----\--> takeBack, drop, thaw: nothing has happened
 *
 * `release` is the point of no return: the old workers close their copies, and only the new ones have these streams.
 */
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { linksOf, wholeLinksOf } from './links.js';

/** How long a step may take; `move` besides the time that it is given. */
const STEP_MS = 5000;
/** How long publications may wait for a new worker that is behind, or for an old one that does not stop moving. */
const PAUSED_STEP_MS = 2000;
/** Old workers move streams for at most this part of a round, and at least for so long; then new workers have to go on with them. */
const MOVE_PART = 0.5;
const LEAST_MOVE_MS = 50;
/** Between two rounds, so that publications continue; longer if nothing could move. */
const BREAK_MS = 10;
const EMPTY_BREAK_MS = 250;

/** @typedef {import('./links.js').Link} Link */
/** @typedef {{ prepared: number, left: number, notes?: unknown[] }} Moved `notes`: what the hubs of the new workers have to know */

/**
 * @typedef {object} Source an old worker
 * @property {(step: string, fields: Record<string, unknown>, deadlineMs: number) => Promise<any>} ask
 *
 * @typedef {object} Targets the new workers
 * @property {number[]} shards of each
 * @property {(links: Link[][]) => Promise<void>} connect
 * @property {(deadlineMs: number) => Promise<void>} sync resolves once they have given their Holds everything that was fed
 * @property {(notes: unknown[]) => Promise<void>} learn
 * @property {(presence: PresenceOf[]) => Promise<number>} go continues the streams; resolves to how many
 * @property {() => Promise<void>} drop forgets what is parked; never rejects
 *
 * @typedef {{ freeze: () => void | Promise<void>, thaw: () => void }} Feed
 *
 * What a new worker has to know of streams on the list of subscriptions.
 * @typedef {{ worker: number, entries: import('../../hub/presence/moves.js').Entry[] }} PresenceOf
 * @typedef {{ pass: (source: number, target: number, ids: number[]) => PresenceOf[] }} PresenceMove takes ids, old and new in turn; moves
 *   what is in this process, and returns what another one needs
 */

export class Move {
  /**
   * @param {object} options
   * @param {Source[]} options.sources
   * @param {Targets} options.targets
   * @param {Feed} options.feed
   * @param {PresenceMove | null} [options.presence] with --subscriptions
   * @param {number} [options.pauseMs] about how long streams and publications may wait in one round
   * @param {number} [options.deadlineMs] no round begins so long after the last one in which something moved
   * @param {(streams: number) => void} [options.onRound] when the old workers no longer have its streams
   * @param {(line: string) => void} options.onNote
   */
  constructor({ sources, targets, feed, presence = null, pauseMs = 600, deadlineMs = 15_000, ...listeners }) {
    const { onRound = () => {}, onNote } = listeners;
    this.sources = sources;
    this.targets = targets;
    this.feed = feed;
    this.presence = presence;
    this.pauseMs = pauseMs;
    /** How long old workers move streams in the next round. */
    this.moveMs = pauseMs * MOVE_PART;
    this.deadlineMs = deadlineMs;
    this.onRound = onRound;
    this.onNote = onNote;
    /** The new worker of each old one, if presence has to know. @type {number[]} */
    this.takers = [];
    this.streams = 0;
    /** Streams and other connections that the old workers no longer have. */
    this.released = 0;
    /** Rounds whose streams are with the new workers. */
    this.rounds = 0;
    this.isStopped = false;
  }

  /**
   * @returns {Promise<{ streams: number, rounds: number, left: number }>} `left`: what the old workers could not move
   * @throws {HoldfastError} HANDOVER: the step that failed, and why. Streams of earlier rounds (`streams`) stay with the new workers
   */
  async run() {
    try {
      await this.connect();
      const left = await this.allRounds();
      await Promise.allSettled(this.sources.map((source) => source.ask('withdraw', {}, STEP_MS)));
      return { streams: this.streams, rounds: this.rounds, left };
    } catch (error) {
      await this.undo();
      throw error;
    }
  }

  /** However many streams there are: it ends, because what is new connects to the new workers. @returns {Promise<number>} what is left */
  async allRounds() {
    let endMs = performance.now() + this.deadlineMs;
    for (;;) {
      const { prepared, left } = await this.round();
      if (prepared > 0) endMs = performance.now() + this.deadlineMs;
      if (left === 0 || this.isStopped || performance.now() >= endMs) return left;
      await after(prepared > 0 ? BREAK_MS : EMPTY_BREAK_MS);
    }
  }

  /** No more rounds. */
  stop() {
    this.isStopped = true;
  }

  async connect() {
    const names = await this.askAll('offer');
    const { shards } = this.targets;
    if (!this.presence) return this.targets.connect(linksOf(names, shards));
    const { links, takers } = wholeLinksOf(names, shards);
    this.takers = takers;
    return this.targets.connect(links);
  }

  /** @returns {Promise<Moved>} of all old workers */
  async round() {
    await this.targets.sync(STEP_MS); // most of what there is to be fed, so that the pause is short
    await this.feed.freeze();
    const frozenMs = performance.now();
    try {
      await this.targets.sync(PAUSED_STEP_MS);
      const wantsIds = this.presence !== null;
      const ms = Math.round(this.moveMs);
      const moved = await this.askAll('move', { ms, wantsIds }, ms + PAUSED_STEP_MS);
      if (this.isStopped) throw new HoldfastError('HANDOVER', 'the server is ending');
      const sum = sumOf(moved);
      if (sum.notes.length > 0) await this.targets.learn(sum.notes);
      await this.commit(sum.prepared);
      return sum;
    } finally {
      this.feed.thaw();
      this.pace(performance.now() - frozenMs);
    }
  }

  /** A round takes longer the more streams it moves, and on a busy machine too long: then the next one moves fewer. @param {number} tookMs */
  pace(tookMs) {
    const fittingMs = (this.moveMs * this.pauseMs) / tookMs;
    this.moveMs = Math.min(this.pauseMs * MOVE_PART, Math.max(LEAST_MOVE_MS, fittingMs));
  }

  /** The new workers have everything that was moved. There is no way back from here. @param {number} prepared */
  async commit(prepared) {
    const answers = await Promise.allSettled(
      this.sources.map((source) => source.ask('release', {}, STEP_MS)),
    );
    this.rounds++;
    this.released += prepared;
    const presence = answers.flatMap((answer, source) => {
      if (answer.status === 'fulfilled')
        return this.presence?.pass(source, this.takers[source], answer.value) ?? [];
      this.onNote(`${messageOf(answer.reason)}; its streams go on`);
      return [];
    });
    this.onRound(prepared);
    this.streams += await this.targets.go(presence);
  }

  /** The old workers go on with everything that is not released. */
  async undo() {
    const undone = this.sources.map((source) => source.ask('takeBack', {}, STEP_MS));
    await Promise.allSettled([...undone, this.targets.drop()]);
  }

  /**
   * @param {string} step @param {Record<string, unknown>} [fields] @param {number} [deadlineMs]
   * @returns {Promise<any[]>} by source, when all have answered
   * @throws {HoldfastError} the first that failed
   */
  async askAll(step, fields = {}, deadlineMs = STEP_MS) {
    const answers = await Promise.allSettled(
      this.sources.map((source) => source.ask(step, fields, deadlineMs)),
    );
    return answers.map((answer) => {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    });
  }
}

/** @param {Moved[]} moved @returns {Required<Moved>} */
function sumOf(moved) {
  const sum = { prepared: 0, left: 0, notes: moved.flatMap(({ notes = [] }) => notes) };
  for (const { prepared, left } of moved) {
    sum.prepared += prepared;
    sum.left += left;
  }
  return sum;
}
