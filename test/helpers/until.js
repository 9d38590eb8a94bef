/*
 * Waits for conditions instead of sleeping.
 */

const POLL_MS = 20;

/**
 * @template T
 * @param {() => T | Promise<T>} probe
 * @param {string | (() => string)} what we wait for, for the error
 * @param {number} [deadlineMs]
 * @returns {Promise<Exclude<T, false | null | undefined>>} the first truthy answer
 */
export async function until(probe, what, deadlineMs = 60_000) {
  const endMs = Date.now() + deadlineMs;
  for (;;) {
    const answer = await probe();
    if (answer) return /** @type {Exclude<T, false | null | undefined>} */ (answer);
    if (Date.now() > endMs)
      throw new Error(`did not happen within ${deadlineMs} ms: ${typeof what === 'string' ? what : what()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
