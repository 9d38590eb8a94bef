/*
 * How many streams the experiment opens, and how long it waits. Pure.
 */

/** A pause of the machine that is longer than this disturbs the storm it falls into. Shorter ones hardly move a p99 of seconds. */
export const PAUSE_MS = 10;

/** @param {import('../plan.js').Plan} plan */
export function sizesOf({ streams, holdS }) {
  const unitMs = holdS * 1000;
  return {
    low: Math.max(1, Math.round(streams / 3)),
    high: streams,
    /** Those that are open when a storm comes. A process of a peer has no descriptors for many more. */
    held: Math.max(1, Math.round(streams / 5)),
    /** How long CPU is watched while nothing happens. */
    idleMs: unitMs,
    /** After a change, until CPU has settled. */
    settleMs: unitMs / 2,
    /** V8 takes longer to give back the memory it needed to start and to open streams. */
    restMs: 3 * unitMs,
    windowMs: unitMs,
  };
}
