/*
 * Numbers for people. Every function takes a value and returns a short text with its unit.
 */

const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'];
/** What a terminal interprets instead of showing it: C0 and C1 control characters, and those that change the direction of text. */
const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** @param {number} n 12345.6 → '12,346' */
export function formatCount(n) {
  return Math.round(n).toLocaleString('en-US');
}

/** @param {number} n @param {string} noun 1, 'stream' → '1 stream'; 1234 → '1,234 streams' */
export function formatNoun(n, noun) {
  return `${formatCount(n)} ${noun}${Math.round(n) === 1 ? '' : 's'}`;
}

/** @param {number} n 8123 → '8.1 KB' (1 KB is 1,000 bytes) */
export function formatBytes(n) {
  let size = 0;
  let value = Math.abs(n);
  while (value >= 999.5 && size < SIZES.length - 1) {
    value /= 1000;
    size++;
  }
  const sign = n < 0 ? '-' : '';
  return `${sign}${value.toFixed(size === 0 || value >= 100 ? 0 : 1)} ${SIZES[size]}`;
}

/** @param {number} n 123456 → '123k', for the axis of a chart */
export function formatShort(n) {
  const value = Math.abs(n);
  if (value >= 1e9) return `${trim(n / 1e9)}G`;
  if (value >= 1e6) return `${trim(n / 1e6)}M`;
  if (value >= 1e3) return `${trim(n / 1e3)}k`;
  return trim(n);
}

/** @param {number | null} ms 10.234 → '10.2' (the unit is in the label); '-' if it is unknown */
export function formatMs(ms) {
  if (ms === null) return '-';
  return ms >= 99.95 ? ms.toFixed(0) : ms.toFixed(1);
}

/** @param {number} ms 83000 → '00:01:23' */
export function formatElapsed(ms) {
  const seconds = Math.floor(ms / 1000);
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}

/** @param {number} ms 12345 → '12.3 s' */
export function formatSeconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`;
}

/** @param {string} text from elsewhere @returns {string} one line, safe to show in a terminal */
export function printable(text) {
  return text.replace(CONTROLS, ' ');
}

/** @param {number} n */
function trim(n) {
  return String(Number(n.toFixed(Math.abs(n) < 10 ? 1 : 0)));
}
