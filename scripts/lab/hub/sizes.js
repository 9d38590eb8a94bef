/*
 * How many streams, and how long. Pure, so that a test can be small.
 */

/** A pause of the machine that is longer than this disturbs what is measured. */
export const PAUSE_MS = 2;

/** @param {import('../plan.js').Plan} plan */
export function sizesOf({ streams, holdS }) {
  const unitMs = (holdS * 1000) / 20;
  return {
    low: Math.round(streams / 3),
    high: streams,
    /** How long CPU is watched while nothing happens. */
    idleMs: 3 * unitMs,
    /** After a change, until CPU has settled. */
    settleMs: 1.5 * unitMs,
    /** V8 takes longer to give back the memory it needed to open streams. */
    restMs: 12 * unitMs,
    /** How long it is published at a given rate, and as fast as possible. */
    paceMs: 10 * unitMs,
    floodMs: 6 * unitMs,
  };
}
