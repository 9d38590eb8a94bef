/*
 * What happens when a worker exits. It depends on what it was there for:
 *
 *     in a slot, running         another one is started after the back-off
 *     in a slot, starting        the server can't start, or can't take over
 *     in a slot, ending          expected, unless it still had streams
 *     beside the slots           it was to take over a slot, or has handed its own over (handover/replacements.js)
 */
import { HoldfastError } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { backOff, nameOf } from './slot.js';

/** @typedef {import('./slot.js').Slot} Slot */
/** @typedef {import('./workers.js').Workers} Workers */

export class Exits {
  /** @param {Workers} workers */
  constructor(workers) {
    this.workers = workers;
  }

  /** @param {Slot} slot @param {string} how */
  exited(slot, how) {
    const { workers } = this;
    clearTimeout(slot.timer);
    workers.forget(slot, how);
    const lost = workers.totals.retire(slot.snapshot, slot.received);
    slot.snapshot = null;
    if (workers.aside.has(slot)) this.beside(slot, how, lost);
    else if (workers.ending) this.whileEnding(slot, how, lost);
    else if (workers.starting || workers.isArriving) this.whileStarting(slot, how);
    else this.restart(slot, how, lost);
    workers.emit('change');
  }

  /** @param {Slot} slot @param {string} how @param {number} lost streams */
  beside(slot, how, lost) {
    this.workers.aside.delete(slot);
    slot.state = 'gone';
    if (lost > 0) this.workers.note(`${nameOf(slot)} died (${how}): ${formatNoun(lost, 'stream')} lost`);
  }

  /** @param {Slot} slot @param {string} how @param {number} lost streams */
  whileEnding(slot, how, lost) {
    slot.state = 'gone';
    if (lost > 0)
      this.workers.note(`${nameOf(slot)} died (${how}) while draining: ${formatNoun(lost, 'stream')} lost`);
  }

  /** @param {Slot} slot @param {string} how */
  whileStarting(slot, how) {
    const { workers } = this;
    slot.state = 'dead';
    const line = `worker ${slot.id} exited (${how}) before it was listening`;
    const error = new HoldfastError('WORKER_DIED', line);
    if (workers.starting) workers.failed(slot, error);
    else workers.emit('lost', error);
  }

  /** Another worker takes its place after the back-off. @param {Slot} slot @param {string} how @param {number} lost streams */
  restart(slot, how, lost) {
    const { workers } = this;
    slot.state = 'dead';
    const { failures, delayMs } = backOff(slot);
    workers.note(
      `${nameOf(slot)} died (${how}): ${formatNoun(lost, 'stream')} lost; restarting in ${delayMs} ms`,
    );
    slot.timer = setTimeout(() => {
      workers.slots[slot.id - 1] = workers.fork(slot.id, failures, slot.broker);
    }, delayMs);
  }
}
