/*
 * What the benchmarks share: a server of their own, progress, and differences between rows of its CSV.
 */
import { startServer } from './server.js';

/** @typedef {Record<string, string>} Row of the CSV */
/** @typedef {Awaited<ReturnType<typeof startServer>>} RunningServer */

/** @returns {import('node:test').TestContext} its clean-ups run when this process ends, Ctrl-C included */
export function untilExit() {
  /** @type {(() => unknown)[]} */
  const cleanups = [];
  process.once('SIGINT', () => process.exit(130));
  process.on('exit', () => {
    for (const cleanup of cleanups) cleanup();
  });
  return /** @type {any} */ ({ after: (/** @type {() => unknown} */ cleanup) => cleanups.push(cleanup) });
}

/**
 * Prints a line a second until the condition holds. It asks no oftener: the asking is work for the server.
 * @param {RunningServer} server
 * @param {number} deadlineS
 * @param {(totals: Record<string, unknown>) => boolean} condition
 */
export async function progressUntil(server, deadlineS, condition) {
  for (let second = 0; second < deadlineS; second++) {
    const { totals } = await server.frame();
    process.stdout.write(
      `${totals.streams} streams, ${Math.round(Number(totals.pingsPerSecond))} pings a second\n`,
    );
    if (condition(totals)) return totals;
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  throw new Error(`the streams did not come within ${deadlineS} s`);
}

/** @param {string} name @param {Row} from @param {Row} to @returns {number} how much a field grew */
export function grown(name, from, to) {
  return Number(to[name]) - Number(from[name]);
}

/** @param {Row[]} rows @returns {number} the share of one core that a server uses for itself, over these rows */
export function idleShareOf(rows) {
  const [first, last] = [rows[0], rows[rows.length - 1]];
  return grown('processCpuSeconds', first, last) / (grown('elapsedMs', first, last) / 1000);
}

/**
 * CPU between two rows, less what the server uses for itself.
 * @param {Row} from @param {Row} to @param {number} idleShare
 * @returns {number} µs
 */
export function busyUs(from, to, idleShare) {
  return 1e6 * (grown('processCpuSeconds', from, to) - (idleShare * grown('elapsedMs', from, to)) / 1000);
}

/** @param {number[]} values @returns {number} */
export function medianOf(values) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
}
