/*
 * The clock of the profiler: process.hrtime() as one number, because it is the cheapest of Node's clocks with a resolution of
 * nanoseconds (`node scripts/experiment.js profiler` compares them). What hrtime.bigint() gives would have to be converted into a
 * number. Where V8 inlines hrtime(), which depends on the code around it, nothing is allocated; otherwise an array of 64 bytes that
 * is garbage at once.
 */
const { hrtime } = process;

/** Readings count from here: nanoseconds since the machine started can exceed what a number holds exactly. 0 is never read. */
const BEGIN_S = hrtime()[0] - 1000;

/** @returns {number} nanoseconds, always more than 0 */
export function now() {
  const reading = hrtime();
  return (reading[0] - BEGIN_S) * 1e9 + reading[1];
}
