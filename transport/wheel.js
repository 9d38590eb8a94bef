/*
 * The ping wheel: one timer for all streams. The interval is cut into slots of about 10 ms; a stream sits in
 * one slot for its life and is due each time the wheel comes round to it. The slots are handed out in steps
 * of the golden ratio, so that any run of openings is spread evenly over the whole interval, and the first
 * ping of a stream comes between 0 and one interval after it opened.
 */

const SLOT_MS = 10;
/** A slot is memory: an interval of hours has longer ones. */
const MOST_SLOTS = 16_384;
const GOLDEN = 0.618033988749895;

/**
 * What sits in the wheel carries its place, so that it can leave at once.
 * @typedef {object} Seat
 * @property {number} slot -1 when it sits in no wheel
 * @property {number} place in the slot
 */

/** @template {Seat} T */
export class Wheel {
  /**
   * @param {number} intervalMs one turn
   * @param {number} nowMs on the clock that `turn` will be given
   */
  constructor(intervalMs, nowMs) {
    const count = Math.min(MOST_SLOTS, Math.max(1, Math.round(intervalMs / SLOT_MS)));
    this.intervalMs = intervalMs;
    this.slotMs = intervalMs / count;
    this.step = coprimeNear(Math.round(count * GOLDEN), count);
    this.nextSlot = 0;
    this.dueSlot = 0;
    this.dueMs = nowMs + this.slotMs;
    this.size = 0;
    /** @type {T[][]} */
    this.slots = Array.from({ length: count }, () => []);
  }

  /** Lets the time pass in which it did not turn. @param {number} nowMs */
  restart(nowMs) {
    this.dueMs = nowMs + this.slotMs;
  }

  /** @param {T} seat */
  add(seat) {
    const slot = this.slots[this.nextSlot];
    seat.slot = this.nextSlot;
    seat.place = slot.push(seat) - 1;
    this.nextSlot = (this.nextSlot + this.step) % this.slots.length;
    this.size++;
  }

  /** @param {T} seat does nothing where it has left already */
  remove(seat) {
    if (seat.slot === -1) return;
    const slot = this.slots[seat.slot];
    const last = /** @type {T} */ (slot.pop());
    if (last !== seat) {
      slot[seat.place] = last;
      last.place = seat.place;
    }
    seat.slot = -1;
    this.size--;
  }

  /**
   * Visits all that came due, slot by slot in order of time. A seat may leave while it is visited. After a
   * stall of more than a turn each seat is visited once, as late as its oldest visit missed.
   * @param {() => number} now
   * @param {(seat: T, lateMs: number) => void} visit
   */
  turn(now, visit) {
    for (let turns = this.slots.length; turns > 0 && this.dueMs <= now(); turns--) {
      const slot = this.slots[this.dueSlot];
      for (let i = slot.length - 1; i >= 0; i--) visit(slot[i], now() - this.dueMs);
      this.dueSlot = (this.dueSlot + 1) % this.slots.length;
      this.dueMs += this.slotMs;
    }
    const behindMs = now() - this.dueMs;
    if (behindMs > this.intervalMs) this.dueMs += Math.floor(behindMs / this.intervalMs) * this.intervalMs;
  }

  /** Every seat, slot by slot. @returns {Generator<T, void>} */
  *[Symbol.iterator]() {
    for (const slot of this.slots) yield* slot;
  }
}

/** @param {number} near @param {number} count @returns {number} a step that reaches every slot */
function coprimeNear(near, count) {
  let step = Math.max(1, near);
  while (gcd(step, count) !== 1) step++;
  return step % count;
}

/** @param {number} a @param {number} b @returns {number} */
function gcd(a, b) {
  return b === 0 ? a : gcd(b, a % b);
}
