/*
 * What the channels of `/` and of the admin port may be called. Pure.
 */

const MOST_BYTES = 256;
/** The channels of the hub begin with one. */
const CONTROL = /\p{Cc}/u;

/** @param {string[]} names @returns {string} what is wrong with one of them; '' if nothing */
export function channelNameProblem(names) {
  if (names.includes('')) return 'a channel needs a name, as in /?channel=news';
  if (names.some((name) => CONTROL.test(name))) return 'the name of a channel can have no control characters';
  const longest = Math.max(0, ...names.map((name) => Buffer.byteLength(name)));
  if (longest <= MOST_BYTES) return '';
  return `the name of a channel can have at most ${MOST_BYTES} bytes, not ${longest}`;
}
