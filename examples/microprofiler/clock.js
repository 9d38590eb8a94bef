/*
 * The clock of the profiler: process.hrtime() as one number. Of Node's clocks with a resolution of nanoseconds it costs least on Node
 * 20, 22 and 24 (`node scripts/experiment.js profiler` measures it): what hrtime.bigint() gives has to be converted into a number, and
 * performance.now() converts to milliseconds. Where V8 inlines hrtime(), which
 * depends on the code around it, nothing is allocated; otherwise an array of 64 bytes that is garbage at once.
 */
const { hrtime } = process;

/** Readings count from here: nanoseconds since the machine started can exceed what a number holds exactly. 0 is never read. */
const BEGIN_S = hrtime()[0] - 1000;

/** @returns {number} nanoseconds, always more than 0 */
export function now() {
  const reading = hrtime();
  return (reading[0] - BEGIN_S) * 1e9 + reading[1];
}
