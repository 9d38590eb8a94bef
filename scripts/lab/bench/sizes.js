/*
 * How many streams the benchmark opens, and how long it waits. Pure.
 */

/** A pause of the machine that is longer than this disturbs the second it falls into. */
export const PAUSE_MS = 2;

/**
 * How many streams and how long, from the plan, so that a test can be small.
 * @param {import('../plan.js').Plan} plan
 */
export function sizesOf({ streams, holdS }) {
  const unitMs = (holdS * 1000) / 20;
  return {
    low: Math.round(streams / 3),
    high: streams,
    many: 4 * streams,
    /** How long CPU is watched while nothing happens. */
    idleMs: 6 * unitMs,
    /** After a change, until CPU and memory have settled. */
    settleMs: 1.5 * unitMs,
    /** V8 takes longer to give back the memory it needed to start and to open streams. */
    restMs: 12 * unitMs,
    pingWindowMs: 3 * unitMs,
    busyS: holdS,
  };
}
