/*
 * Replaces workers with new ones that take over their streams: for new code (`reload`), and after their JS has thrown. One at a time.
 *
 *     fork --ready--> move --first round--> the slot is the new one's --> the old one drains what could not move
 *        \--dies, or is too slow--> killed: the old one stays
 */
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatNoun } from '../../lib/format.js';
import { backOff } from '../slot.js';
import { Move } from './move.js';
import { NewSide } from './newside.js';

/** How long a successor may take to start. */
const START_MS = 30_000;
/** When the last round begins at the latest. */
const ROUNDS_MS = 15_000;
/** How long a worker may live on after its JS has thrown. */
const CRASHED_MS = 5000;
/** How long a worker may take to exit after its drain. */
const EXIT_GRACE_MS = 3000;
/** A worker that is too slow for its publications doesn't pause those of others for longer. */
const SENT_MS = 2000;
/** How long the end of the server may be delayed by a round. */
const STOP_MS = 3000;

/** @typedef {import('../slot.js').Slot} Slot */
/** @typedef {import('../workers.js').Workers} Workers */

export class Replacements {
  /** @param {Workers} workers */
  constructor(workers) {
    this.workers = workers;
    this.isReloading = false;
    /** Another server died while it took over, and the listening sockets with it. */
    this.isReviving = false;
    /** @type {Promise<unknown>} the last replacement */
    this.last = Promise.resolve();
    /** @type {Move | null} in progress */
    this.move = null;
  }

  /**
   * Replaces all workers, one after the other.
   * @returns {string} what happens now
   * @throws {HoldfastError} why that is not possible
   */
  begin() {
    const { transport, slots } = this.workers;
    if (transport !== 'hold')
      throw new HoldfastError(
        'NOT_NATIVE',
        `the ${transport} transport can't move streams: restart the server instead`,
      );
    if (this.isReloading) throw new HoldfastError('BUSY', 'the workers are being reloaded already');
    void this.reload();
    return `reloading ${formatNoun(slots.length, 'worker')}`;
  }

  /** @returns {Promise<void>} never rejects */
  async reload() {
    const { workers } = this;
    this.isReloading = true;
    const slots = [...workers.slots];
    workers.note(`reloading ${formatNoun(slots.length, 'worker')}`);
    let count = 0;
    for (const { id } of slots) {
      if (workers.ending) break;
      if (await this.replace(workers.slots[id - 1])) count++;
    }
    this.isReloading = false;
    workers.note(`reloaded ${count} of ${formatNoun(slots.length, 'worker')}`);
  }

  /**
   * The JS of a worker has thrown: it can't be trusted, but its shards can.
   * @param {Slot} slot @param {string} message
   */
  crashed(slot, message) {
    const { workers } = this;
    slot.crash = message;
    if (workers.ending || workers.aside.has(slot)) return;
    if (workers.starting || workers.isArriving) return void slot.process.process.kill('SIGKILL');
    workers.note(
      `worker ${slot.id} (pid ${slot.pid}) has crashed: ${message}; another worker takes over its streams`,
    );
    void this.rescue(slot);
  }

  /** Back-off, as for workers that die: the crashed one goes on meanwhile. @param {Slot} slot */
  async rescue(slot) {
    const { failures, delayMs } = backOff(slot);
    await after(delayMs);
    const isReplaced = await this.replace(slot, { failures, startMs: CRASHED_MS, roundsMs: CRASHED_MS });
    if (!isReplaced && this.workers.slots.includes(slot)) slot.process.process.kill('SIGKILL');
  }

  /**
   * @param {Slot} old @param {{ failures?: number, startMs?: number, roundsMs?: number, listens?: boolean }} [how] `listens`: the successor listens by itself
   * @returns {Promise<boolean>} whether another one has its slot
   */
  replace(old, how = {}) {
    return this.inTurn(() => this.replaceNow(old, how)).catch((error) => {
      this.workers.note(`worker ${old.id}: ${messageOf(error)}`);
      return false;
    });
  }

  /** @template T @param {() => Promise<T>} act during which nothing else moves streams @returns {Promise<T>} */
  inTurn(act) {
    const done = this.last.then(act);
    this.last = done.catch(() => {});
    return done;
  }

  /** @param {Slot} old @param {{ failures?: number, startMs?: number, roundsMs?: number, listens?: boolean }} how */
  async replaceNow(old, { failures = 0, startMs = START_MS, roundsMs = ROUNDS_MS, listens = false }) {
    const { workers } = this;
    if (old.state !== 'ready' || workers.ending || !workers.slots.includes(old)) return false;
    const successor = workers.fork(old.id, failures, old.broker, !listens);
    workers.aside.add(successor);
    await workers.until(() => ['ready', 'gone'].includes(successor.state), startMs);
    const problem =
      successor.state === 'ready'
        ? await this.moveTo(old, successor, roundsMs)
        : 'its successor has not started';
    const isReplaced = workers.slots[old.id - 1] === successor;
    if (problem && !workers.ending)
      workers.note(`worker ${old.id} (pid ${old.pid}): ${problem}${isReplaced ? '' : '; it goes on'}`);
    if (!isReplaced) await this.end(successor, 0);
    else void this.end(old, workers.config.drainMs);
    if (isReplaced && successor.crash) this.crashed(successor, successor.crash);
    return isReplaced;
  }

  /** @param {Slot} old @param {Slot} successor @param {number} deadlineMs @returns {Promise<string>} what went wrong; '' if nothing did */
  async moveTo(old, successor, deadlineMs) {
    const { workers } = this;
    const move = new Move({
      sources: [old.asks],
      targets: this.sideOf([successor]),
      feed: this.feed,
      deadlineMs,
      presence: workers.presence && { pass: (_, __, ids) => this.passPresence(old, successor, ids) },
      onRound: (streams) => {
        successor.received += streams;
        if (move.rounds === 1) this.swap(old, successor);
      },
      onNote: (line) => workers.note(line),
    });
    this.move = move;
    try {
      const { streams } = await move.run();
      workers.note(
        `worker ${old.id}: pid ${successor.pid} took over ${formatNoun(streams, 'stream')} from pid ${old.pid}`,
      );
      return '';
    } catch (error) {
      return messageOf(error);
    } finally {
      this.move = null;
    }
  }

  /** @param {Slot} old @param {Slot} successor */
  swap(old, successor) {
    const isGone = successor.state === 'gone';
    this.workers.swap(old, successor);
    if (!isGone) return;
    this.workers.totals.retire(null, successor.received);
    this.workers.exits.restart(successor, 'while it took over', successor.received);
  }

  /** @param {Slot[]} slots new workers */
  sideOf(slots) {
    const { workers } = this;
    return new NewSide({
      workers: slots.map(({ asks }) => asks),
      shards: slots.map(() => workers.plan.shards),
      flush: async () => {
        await workers.publications.sent();
        workers.broker?.flush();
      },
      arrive: ({ worker, entries }) => workers.presence?.presence.import(slots[worker], entries),
    });
  }

  /** @param {Slot} old @param {Slot} successor @param {number[]} ids old and new in turn */
  passPresence(old, successor, ids) {
    this.workers.presence?.presence.move(old, successor, ids);
    return [];
  }

  /** What has to stand still in a round. @returns {import('./move.js').Feed} */
  get feed() {
    const { workers } = this;
    const { pause, broker } = workers;
    return {
      freeze: async () => {
        pause.begin();
        await workers.samples.last;
        const late = after(SENT_MS).then(() => {
          throw new HoldfastError(
            'HANDOVER',
            `workers have not received publications for more than ${SENT_MS} ms`,
          );
        });
        await Promise.race([workers.publications.sent(), late]);
        late.catch(() => {});
        broker?.freeze();
      },
      thaw: () => {
        broker?.thaw();
        pause.end();
      },
    };
  }

  /** @param {Slot} slot ends what it still has, and exits @param {number} periodMs */
  async end(slot, periodMs) {
    const { workers } = this;
    if (!workers.ending) workers.send(slot, { type: 'drain', periodMs });
    await workers.until(() => !workers.aside.has(slot), periodMs + EXIT_GRACE_MS);
    if (workers.aside.has(slot)) slot.process.process.kill('SIGKILL');
  }

  /** The workers start again, and those that still run are replaced with new ones that open their own listening sockets. */
  async revive() {
    const { workers } = this;
    workers.ending = false;
    this.isReviving = true;
    for (const slot of [...workers.slots]) {
      if (slot.state === 'ready') await this.replace(slot, { listens: true });
      else if (slot.state === 'gone') workers.slots[slot.id - 1] = workers.fork(slot.id, 0, slot.broker);
    }
    this.isReviving = false;
  }

  /** The server ends: no more rounds. @returns {Promise<void>} when none is in progress */
  async stop() {
    this.move?.stop();
    if (this.move) await Promise.race([this.last, after(STOP_MS)]);
  }
}
