/*
 * The clock of the profiler: process.hrtime() as one number. Of Node's clocks with a resolution of nanoseconds it costs least on Node
 * 20, 22 and 24 (docs/profiler.md has the figures): hrtime.bigint() allocates a BigInt for each reading, and performance.now()
 * converts to milliseconds first. Optimised code doesn't even allocate the array.
 */
const { hrtime } = process;

/** Readings count from here: nanoseconds since the machine started can exceed what a number holds exactly. 0 is never read. */
const BEGIN_S = hrtime()[0] - 1000;

/** @returns {number} nanoseconds, always more than 0 */
export function now() {
  const reading = hrtime();
  return (reading[0] - BEGIN_S) * 1e9 + reading[1];
}
