/*
 * The search for the highest rate at which everything stays on time: steps upwards until one fails twice, because the machine may
 * have paused, and then between the highest good rate and that one. Pure.
 */

const UP = 1.25;
/** How often the interval between good and bad is halved. */
const HALVINGS = 2;
const MOST_STEPS = 40;

/** What has come out of the steps so far: the highest rate that was good, 0 for none, and the next to try, null for none. @typedef {{ best: number, next: number | null }} Search */

/**
 * @param {number} first rate to try @param {boolean[]} steps in their order: whether each was good
 * @param {number} [most] steps
 * @returns {Search}
 */
export function searched(first, steps, most = MOST_STEPS) {
  let [best, rate, halvings] = [0, first, 0];
  let bad = Number.POSITIVE_INFINITY;
  let isRetry = false;
  for (const isGood of steps) {
    isRetry = !isGood && !isRetry;
    if (isRetry) continue;
    if (isGood) best = rate;
    else bad = rate;
    if (Number.isFinite(bad) && (best === 0 || halvings++ === HALVINGS)) return { best, next: null };
    rate = Math.round(Number.isFinite(bad) ? Math.sqrt(best * bad) : rate * UP);
  }
  return { best, next: steps.length < most ? rate : null };
}
