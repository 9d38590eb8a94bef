/*
 * The ping wheel: one timer for all streams. The interval is divided into slots of about 10 ms; a stream stays in one slot
 * for its whole life and is due each time the wheel reaches it. Slots are assigned in steps of the golden ratio, so that any
 * series of openings is spread evenly over the interval; the first ping comes at most one interval after the opening.
 */

const SLOT_MS = 10;
/** Slots take memory, so an interval of hours has longer ones. */
const MOST_SLOTS = 16_384;
const GOLDEN = 0.618033988749895;

/**
 * What is in the wheel stores its place, so that it can be removed quickly.
 * @typedef {object} Seat
 * @property {number} slot -1 if it is in no wheel
 * @property {number} place in the slot
 */

/** @template {Seat} T */
export class Wheel {
  /**
   * @param {number} intervalMs one turn
   * @param {number} nowMs on the same clock as for `turn`
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

  /** Skips the time in which it was empty and did not turn. @param {number} nowMs */
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

  /** @param {T} seat may already be removed */
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
   * Visits all that are due, slot by slot in the order of time. A seat may be removed while it is visited. After a stall of
   * more than a turn, each seat is visited once, with the lateness of its oldest missed visit.
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
