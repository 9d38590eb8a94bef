/*
 * Texts and buffers that the cases work on: sixteen of each, used in turn, so that nothing can be computed once and reused. What a
 * case returns is checked, so nothing can be left out either.
 */

/** Inputs of each kind; `i & MASK` is the one for call `i`. */
export const MASK = 15;
const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789';

/** Methods of buffers that Node's types leave out. */
/** @typedef {Buffer & { latin1Slice: (start?: number, end?: number) => string, utf8Slice: (start?: number, end?: number) => string, latin1Write: (text: string, start: number, length: number) => number }} Bytes */

/** @template T @param {(i: number) => T} make @returns {T[]} */
export function sixteen(make) {
  return Array.from({ length: MASK + 1 }, (_, i) => make(i));
}

/** @param {string | number} content a text of single bytes, or a length @returns {Bytes} */
export function bytesOf(content) {
  const bytes = typeof content === 'number' ? Buffer.alloc(content) : Buffer.from(content, 'latin1');
  return /** @type {Bytes} */ (bytes);
}

/** @param {number} length @param {number} seed @returns {string} flat, and not shared with equal texts */
export function textOf(length, seed) {
  const bytes = bytesOf(length);
  for (let i = 0; i < length; i++) bytes[i] = LETTERS.charCodeAt((i * 7 + seed * 13) % LETTERS.length);
  return bytes.latin1Slice(0, length);
}

/** @param {number} n @param {readonly number[]} each what the sixteen calls in turn return @returns {number} the sum of n calls */
export function sumOf(n, each) {
  const round = each.reduce((sum, value) => sum + value, 0);
  const rest = each.slice(0, n % each.length).reduce((sum, value) => sum + value, 0);
  return Math.floor(n / each.length) * round + rest;
}

/**
 * A case whose loop is compiled for it alone. V8 keeps what it learns about the calls in a function for all closures of that function,
 * so cases with a loop in common would spoil each other.
 * @param {string} name @param {string} text
 * @param {(i: number) => number} call gets numbers from 0 to 15 in turn: which of the inputs
 * @param {readonly number[]} [each] what the sixteen return: 1 unless it is given
 * @returns {import('../micro.js').Case}
 */
export function loop(name, text, call, each = ONES) {
  const source = `/* ${name} */ return (n) => { let sum = 0; for (let i = 0; i < n; i++) sum += call(i & ${MASK}); return sum; };`;
  return { name, text, run: new Function('call', source)(call), expected: (n) => sumOf(n, each) };
}

const ONES = sixteen(() => 1);
