/*
 * Decimal numbers in bytes, read and written without strings where they are short. Longer ones, signs and white space go
 * the slow way, with the rules of C's strtol family as memcached uses it.
 */
const ZERO = 48;
const SHORT = 9; // digits that always fit a small integer

/** White space, a sign, digits; then the end, white space or a zero byte, which ends a string in C. */
const INTEGER = /^[\t\n\v\f\r ]*([+-]?)(\d+)(?:[\t\n\v\f\r \0]|$)/;

/** @param {Uint8Array} bytes @param {number} start @param {number} end @returns {number} -1 if it is not short and plain */
function shortNumber(bytes, start, end) {
  if (end - start > SHORT || end === start) return -1;
  let value = 0;
  for (let i = start; i < end; i++) {
    const digit = bytes[i] - ZERO;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** @param {Buffer} bytes @param {number} start @param {number} end @returns {bigint | undefined} */
function longNumber(bytes, start, end) {
  const [, sign, digits] = INTEGER.exec(bytes.toString('latin1', start, end)) ?? [];
  return digits === undefined ? undefined : BigInt(sign === '-' ? -BigInt(digits) : digits);
}

const MOST_SIGNED = 2n ** 63n - 1n;
const MOST_UNSIGNED = 2n ** 64n - 1n;

/** A signed 32-bit number; as in memcached, one of 64 bits is cut. @param {Buffer} bytes @param {number} start @param {number} end @returns {number} NaN if it is none */
export function readInt(bytes, start, end) {
  const short = shortNumber(bytes, start, end);
  if (short >= 0) return short;
  const long = longNumber(bytes, start, end);
  if (long === undefined || long > MOST_SIGNED || long < -MOST_SIGNED - 1n) return Number.NaN;
  return Number(BigInt.asIntN(32, long));
}

/** An unsigned 64-bit number. @param {Buffer} bytes @param {number} start @param {number} end @returns {bigint | undefined} */
export function readBig(bytes, start, end) {
  const short = shortNumber(bytes, start, end);
  if (short >= 0) return BigInt(short);
  const long = longNumber(bytes, start, end);
  if (long === undefined || long > MOST_UNSIGNED || long < -MOST_UNSIGNED) return undefined;
  const isSmallNegative = long < 0n && -long > MOST_SIGNED; // strtoull turns it into a positive one
  return long < 0n && !isSmallNegative ? (long === 0n ? 0n : undefined) : BigInt.asUintN(64, long);
}

/** An unsigned 32-bit number; longer ones are cut. @param {Buffer} bytes @param {number} start @param {number} end @returns {number} NaN if it is none */
export function readUint(bytes, start, end) {
  const short = shortNumber(bytes, start, end);
  if (short >= 0) return short;
  const big = readBig(bytes, start, end);
  return big === undefined ? Number.NaN : Number(BigInt.asUintN(32, big));
}

/** A compare-and-swap number: those of items are doubles, and one that is larger matches none. @param {Buffer} bytes @param {number} start @param {number} end @returns {number} NaN if it is none */
export function readCas(bytes, start, end) {
  const short = shortNumber(bytes, start, end);
  if (short >= 0) return short;
  const big = readBig(bytes, start, end);
  return big === undefined ? Number.NaN : Number(big);
}

/** @param {number} value a whole number from 0 to 2^53 @returns {number} */
export function digitsOf(value) {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  return digits;
}

/** @param {Uint8Array} bytes @param {number} at @param {number} value a whole number from 0 to 2^53 @returns {number} where it ends */
export function writeNumber(bytes, at, value) {
  const end = at + digitsOf(value);
  let rest = value;
  for (let i = end - 1; i >= at; i--) {
    const tenth = Math.floor(rest / 10);
    bytes[i] = ZERO + (rest - tenth * 10);
    rest = tenth;
  }
  return end;
}

/** @param {string} text of a value @returns {bigint | undefined} what incr and decr can add to */
export function numberIn(text) {
  const bytes = Buffer.from(text, 'latin1');
  return readBig(bytes, 0, bytes.length);
}
