/*
 * Which other nodes are alive. Each says so every second; one that has been silent for four is gone. But silence may be ours: a node
 * hears itself too, and as long as it does not, it declares nobody dead. When it hears itself again, everybody gets a new lease.
 *
 *     deaf --we hear ourselves--> hearing --we have not heard ourselves, lost the connection, or were suspended--> deaf
 */
import { performance } from 'node:perf_hooks';

export const BEAT_MS = 1000;
export const LEASE_MS = 4000;
/** Looks per beat: so much earlier does a node notice that another one is gone. */
const LOOKS = 4;
/** Beats of our own that may be missing. */
const MOST_MISSING = 2;

/**
 * What happens to this node and to others.
 * @typedef {object} Events
 * @property {() => void} beat it is time to say that we are alive
 * @property {() => void} look called several times per beat, at the end of a look
 * @property {() => void} away we may not be heard from now on
 * @property {() => void} back we are heard again
 * @property {(id: string) => void} gone another node has not been heard for a lease
 */

export class Lease {
  /**
   * @param {Events} events
   * @param {{ beatMs?: number, leaseMs?: number, now?: () => number }} [how] `now` in ms, on a clock that never jumps
   */
  constructor(events, { beatMs = BEAT_MS, leaseMs = LEASE_MS, now = () => performance.now() } = {}) {
    this.events = events;
    this.beatMs = beatMs;
    this.leaseMs = leaseMs;
    this.now = now;
    this.isDeaf = true;
    this.heardSelfMs = Number.NEGATIVE_INFINITY;
    this.lastBeatMs = Number.NEGATIVE_INFINITY;
    this.lookedMs = now();
    /** When others were heard last, by id. @type {Map<string, number>} */
    this.heardMs = new Map();
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
  }

  start() {
    this.look();
    this.timer = setInterval(() => this.look(), this.beatMs / LOOKS).unref();
  }

  stop() {
    clearInterval(this.timer);
  }

  /** @param {string} id of another node */
  heard(id) {
    this.heardMs.set(id, this.now());
  }

  /** @param {string} id of a node that is gone */
  forget(id) {
    this.heardMs.delete(id);
  }

  heardSelf() {
    const nowMs = this.now();
    this.heardSelfMs = nowMs;
    if (!this.isDeaf) return;
    this.isDeaf = false;
    for (const id of this.heardMs.keys()) this.heardMs.set(id, nowMs);
    this.events.back();
  }

  /** Others may not hear us, nor we them. */
  turnDeaf() {
    if (this.isDeaf) return;
    this.isDeaf = true;
    this.events.away();
  }

  /** Says that we are alive, at once instead of at the next look. */
  beat() {
    this.lastBeatMs = this.now();
    this.events.beat();
  }

  look() {
    const nowMs = this.now();
    const wasSuspended = nowMs - this.lookedMs > this.leaseMs / 2;
    this.lookedMs = nowMs;
    if (wasSuspended || nowMs - this.heardSelfMs > MOST_MISSING * this.beatMs) this.turnDeaf();
    if (nowMs - this.lastBeatMs >= this.beatMs - this.beatMs / LOOKS / 2) this.beat();
    if (!this.isDeaf)
      for (const [id, heardMs] of this.heardMs) {
        if (nowMs - heardMs <= this.leaseMs) continue;
        this.heardMs.delete(id);
        this.events.gone(id);
      }
    this.events.look();
  }
}
