/*
 * Wrong values in error messages.
 */

/** Characters of a text that a message shows. */
const MOST_SHOWN = 100;

/** @param {unknown} value @returns {string} as it appears in a message of one line */
export function shown(value) {
  if (typeof value === 'string') return `'${JSON.stringify(value.slice(0, MOST_SHOWN)).slice(1, -1)}'`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'bigint') return `${value}n`;
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}
