/*
 * The old server of a takeover: another one gets its streams, and then everything else. Until all streams that can move have moved,
 * any failure means that this one goes on as if nothing had happened.
 *
 *     accepted --ready--> rounds (move.js) --> moved --serving--> draining --> drained --close, done--> exit 0
 *         \---------\-------\--> goes on       \------------\--------------\--> starts workers again: the new server has died
 */
import { Asks, failedIn } from '../../lib/asks.js';
import { dispatch } from '../../lib/dispatch.js';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatCount, formatNoun } from '../../lib/format.js';
import { Move } from './move.js';
import { Turns } from './protocol.js';

/** How long a new server may take to start its workers, as long as it is not silent. */
const ROUNDS_MS = 30_000;
/** A step of the new server; each of its workers has less. */
const STEP_MS = 12_000;

/** @typedef {import('./lines.js').Lines} Lines */
/** @typedef {import('./protocol.js').TakeOver} TakeOver */
/** @typedef {import('./protocol.js').Moved} Moved */
/** @typedef {import('./protocol.js').ToOld} ToOld */
/** @typedef {import('../workers.js').Workers} Workers */

/**
 * What it needs of the server.
 * @typedef {object} Old
 * @property {Workers} workers
 * @property {() => Promise<{ version: string, port: number, csvPath: string, adminPort: number, tls: { ticketKeys: string } | null }>} facts
 * @property {() => string} state
 * @property {() => Promise<void>} pause no more frames: streams would be missing
 * @property {() => Promise<Omit<Moved, 'type' | 'streams' | 'left'>>} suspend closes CSV and admin port
 * @property {() => Promise<void>} resume undoes both
 * @property {() => Promise<import('../../hub/nodes/index.js').State | null>} closeBroker resolves to what its node on NATS was
 * @property {() => boolean} isBrokerClosed the new server has the publications, or nobody has
 * @property {(error: HoldfastError) => void} fail ends the process with status 1
 * @property {(line: string) => void} leave ends the process
 * @property {(line: string) => void} note
 */

export class Departure {
  /** @param {{ lines: Lines, request: TakeOver, old: Old }} options */
  constructor({ lines, request, old }) {
    this.lines = lines;
    this.request = request;
    this.old = old;
    this.broker = /** @type {import('../../broker/server.js').BrokerServer} */ (old.workers.broker); // there is one while it runs
    this.turns = new Turns(lines);
    this.asks = new Asks((message) => lines.send(message), failedIn(`the new server (pid ${request.pid})`));
    /** @type {Move | null} */
    this.move = null;
    /** Whether the new server has the streams: then there is no way back. */
    this.hasMoved = false;
    /** Nobody publishes here any more. */
    this.hasDrained = false;
    lines.onMessage = (message) => dispatch(this.handlers, /** @type {ToOld} */ (message));
    lines.onClose = () =>
      this.lost(lines.problem ? `it said what can't be understood (${lines.problem})` : 'it has ended');
  }

  /** @param {string} why */
  lost(why) {
    this.asks.close(why);
    this.turns.fail(`the new server (pid ${this.request.pid}) is gone: ${why}`);
  }

  get handlers() {
    const { workers } = this.old;
    const came = (/** @type {import('./lines.js').Message} */ message) => this.turns.came(message);
    return {
      ...this.broker.handlersOf(this),
      /** @param {import('../messages.js').Published} message */
      published: (message) => workers.publications.answered(this, message),
      /** @param {import('../messages.js').Revoked} message */
      revoked: ({ id }) => workers.revocations.answered(this, id, undefined),
      /** @param {import('../messages.js').HandedOver} message */
      handedOver: (message) => this.asks.answered(message),
      alive: () => {},
      ready: came,
      serving: came,
      close: () => void this.close(),
      done: came,
    };
  }

  /** @returns {Promise<void>} never rejects: it ends the process, or the server goes on */
  async run() {
    const { old, request } = this;
    old.note(`server ${request.version} (pid ${request.pid}) takes over`);
    try {
      this.sit(await old.facts());
      await this.turns.until('ready');
      await old.pause();
      const moved = await this.handOver();
      if (old.state() === 'draining') throw new HoldfastError('HANDOVER', 'the server is ending');
      this.hasMoved = true;
      await this.follow(moved);
    } catch (error) {
      await this.goOn(messageOf(error));
    }
  }

  handOver() {
    const { old } = this;
    return old.workers.replacements.inTurn(async () => {
      const slots = old.workers.slots.filter(({ state }) => state === 'ready');
      const move = new Move({
        sources: slots.map(({ asks }) => asks),
        targets: this.targets(),
        presence: this.presenceOf(slots),
        feed: old.workers.replacements.feed,
        deadlineMs: ROUNDS_MS,
        onNote: old.note,
      });
      this.move = move;
      old.workers.replacements.move = move;
      const begunMs = performance.now();
      try {
        const moved = await move.run();
        const tookMs = formatCount(performance.now() - begunMs);
        old.note(`moved ${formatNoun(moved.streams, 'stream')} in ${tookMs} ms`);
        return moved;
      } finally {
        old.workers.replacements.move = null;
      }
    });
  }

  /** The new server opens the store, or goes on as this node of NATS. */
  async close() {
    if (!this.hasDrained) return this.lines.refuse(new HoldfastError('HANDOVER', 'close came too early'));
    const node = await this.old.closeBroker();
    this.lines.send({ type: 'closed', node });
  }

  /** From now on the new server is fed as a worker is. @param {object} facts */
  sit(facts) {
    const { workers } = this.old;
    const send = (/** @type {import('./lines.js').Message} */ message) => this.lines.send(message);
    workers.successor = this;
    const place = this.broker.add(this, send);
    workers.publications.add(this, send);
    workers.revocations.add(this, send);
    const identity = workers.presence?.presence.identity ?? null;
    send({ type: 'accepted', pid: process.pid, ...facts, identity, place });
  }

  stand() {
    const { workers } = this.old;
    workers.successor = null;
    this.broker.remove(this);
    workers.publications.remove(this);
    workers.revocations.remove(this);
    workers.presence?.presence.retire(this); // what it had taken is lost
    this.turns.stop();
  }

  /**
   * The new server has the identity of this one, so its streams stay on the list of subscriptions.
   * @param {import('../slot.js').Slot[]} slots @returns {import('./move.js').PresenceMove | null} null if one of the two has no such list
   */
  presenceOf(slots) {
    const presence = this.old.workers.presence?.presence;
    if (!presence || !this.request.subscriptions) return null;
    return {
      pass: (source, worker, ids) => [{ worker, entries: presence.export(slots[source], ids, this) }],
    };
  }

  /** @returns {import('./move.js').Targets} */
  targets() {
    const { asks } = this;
    return {
      shards: this.request.shards,
      connect: (links) => asks.ask('connect', { links }, STEP_MS),
      sync: (deadlineMs) => asks.ask('sync', {}, deadlineMs),
      learn: (notes) => asks.ask('learn', { notes }, STEP_MS),
      go: (presence) => asks.ask('go', { presence }, STEP_MS),
      drop: () => asks.ask('drop', {}, STEP_MS).catch(() => {}),
    };
  }

  /** The new server has the streams; it gets the rest. @param {{ streams: number, left: number }} moved */
  async follow({ streams, left }) {
    const { old, lines, request } = this;
    const { workers } = old;
    lines.send({ type: 'moved', streams, left, ...(await old.suspend()) });
    await this.turns.until('serving');
    await workers.drain(workers.config.drainMs);
    this.hasDrained = true;
    lines.send({ type: 'drained', counts: workers.retired });
    await this.turns.until('done');
    old.leave(`pid ${request.pid} has taken over ${formatNoun(streams, 'stream')}`);
  }

  /** @param {string} why */
  async goOn(why) {
    const { old, lines } = this;
    lines.destroy();
    this.stand();
    if (old.state() === 'draining') return;
    if (old.isBrokerClosed())
      return old.fail(new HoldfastError('HANDOVER', `${why}, and it had the publications: ending`));
    // The other one has died with the listening sockets. What is left moves to workers that listen themselves.
    const revived = this.move && this.move.rounds > 0 ? old.workers.replacements.revive() : null;
    const lost = this.move?.released ?? 0;
    old.workers.totals.retire(null, lost);
    old.note(
      `not taken over: ${why}; ${lost > 0 ? `${formatNoun(lost, 'stream')} lost; ` : ''}this server goes on`,
    );
    await old.resume();
    await revived;
  }
}
