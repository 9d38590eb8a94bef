/*
 * Asks the workers for snapshots, once per frame. One that does not answer for too many frames is killed, and replaced like any
 * other that dies.
 */
import { nameOf } from './slot.js';

/** A worker that has not reported for this long is not ready. If --hung-after is short, half of that counts. */
const SILENT_MS = 3000;

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./workers.js').Workers} Workers */

export class Samples {
  /** @param {Workers} workers */
  constructor(workers) {
    const { hungAfterMs, refreshMs } = workers.config;
    this.workers = workers;
    this.refreshMs = refreshMs;
    this.lastId = 0;
    const silentMs = Math.min(SILENT_MS, hungAfterMs / 2 || SILENT_MS);
    /** Both are numbers of frames without a report, not times: if the primary or the machine was suspended, no worker is late. */
    this.silentAfter = Math.max(2, Math.ceil(silentMs / refreshMs));
    this.hungAfter = hungAfterMs && Math.max(this.silentAfter + 1, Math.ceil(hungAfterMs / refreshMs));
    /** @type {Promise<void>} the last ones */
    this.last = Promise.resolve();
  }

  /**
   * Asks all but those that have not answered the last request yet. While streams move, they would be counted in two workers or
   * in none, so it waits.
   * @param {number} deadlineMs
   * @returns {Promise<void>} when all have answered, or at the deadline
   */
  async take(deadlineMs) {
    await this.workers.pause.passed();
    this.last = this.takeNow(deadlineMs);
    await this.last;
  }

  /** @param {number} deadlineMs */
  async takeNow(deadlineMs) {
    const { workers } = this;
    for (const slot of workers.slots) {
      const canAnswer = (slot.state === 'ready' || slot.state === 'draining') && !slot.drained;
      if (!canAnswer || slot.askedId !== 0) continue;
      slot.askedId = ++this.lastId;
      workers.send(slot, { type: 'sample', id: slot.askedId });
    }
    await workers.until(() => workers.slots.every(({ askedId }) => askedId === 0), deadlineMs);
    for (const slot of workers.slots) if (slot.askedId !== 0) this.missed(slot);
  }

  /** @param {Slot} slot whose worker did not answer in this frame */
  missed(slot) {
    slot.silentFrames++;
    const ms = slot.silentFrames * this.refreshMs;
    const name = nameOf(slot);
    if (slot.silentFrames === this.silentAfter)
      this.workers.note(`${name} has not reported for ${ms} ms: the server is not ready`);
    if (slot.silentFrames !== this.hungAfter) return;
    this.workers.note(`${name} has not reported for ${ms} ms (--hung-after): killing it`);
    slot.process.process.kill('SIGKILL');
  }
}
