/*
 * When items expire, by memcached's rules.
 */
const MOST_RELATIVE = 60 * 60 * 24 * 30;
const LONG_AGO = 1;

/**
 * @param {{ now: number, shared: { startedAt: number } }} clock
 * @param {number} exptime 0: never; up to 30 days: from now; more: Unix time; negative: at once
 * @returns {number} in seconds of the clock; 0: never
 */
export function expiryOf({ now, shared }, exptime) {
  if (exptime === 0) return 0;
  if (exptime > 0 && exptime <= MOST_RELATIVE) return now + exptime;
  return Math.max(exptime - shared.startedAt, LONG_AGO);
}
