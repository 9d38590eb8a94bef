/*
 * Sets of positions in a text: arrays with a 1 at each of them. They are reused, because matching is synchronous.
 */

/** @type {Uint8Array[]} by slot, longer than any text so far */
const sets = [];
let codes = new Uint16Array(256);
/** Borders of the piece that was last searched for: see `follow`. */
let borders = new Uint32Array(256);

/**
 * @param {number} slot whoever needs several sets at a time takes them from different slots
 * @param {number} length
 * @returns {Uint8Array} an empty set of positions from 0 to `length`. It may be longer; what is behind that is arbitrary
 */
export function blank(slot, length) {
  if (!(sets[slot]?.length > length)) sets[slot] = new Uint8Array(Math.max(256, length * 2));
  return sets[slot].fill(0, 0, length + 1);
}

/** @param {string} text @returns {Uint16Array} its character codes, which are much faster to go through, until the next call */
export function codesOf(text) {
  if (codes.length < text.length) codes = new Uint16Array(text.length * 2);
  for (let i = 0; i < text.length; i++) codes[i] = text.charCodeAt(i);
  return codes.subarray(0, text.length);
}

/** @param {number} slot @returns {Uint8Array} the set that `blank` gave last for this slot */
export function saved(slot) {
  return sets[slot];
}

/**
 * Goes on from each position where a piece occurs to where it ends, in time proportional to the sum of the lengths of piece and
 * text (Knuth, Morris and Pratt).
 * @param {string} piece not empty
 * @param {Uint16Array} codes of the text
 * @param {number} from
 * @param {Uint8Array} now
 * @param {Uint8Array} then gets the ends. If it is the same as `now`, it goes on from those too
 * @returns {boolean} whether there are any
 */
export function follow(piece, codes, from, now, then) {
  if (piece.length === 1) return followOne(piece.charCodeAt(0), codes, from, now, then);
  findBorders(piece);
  let reached = 0;
  let matched = 0;
  for (let i = from; i < codes.length; i++) {
    const code = codes[i];
    while (matched > 0 && code !== piece.charCodeAt(matched)) matched = borders[matched];
    if (code === piece.charCodeAt(matched)) matched++;
    if (matched < piece.length) continue;
    if (now[i + 1 - matched] === 1) reached = then[i + 1] = 1;
    matched = borders[matched];
  }
  return reached === 1;
}

/** The same for a single character. @param {number} code @param {Uint16Array} codes @param {number} from @param {Uint8Array} now @param {Uint8Array} then */
function followOne(code, codes, from, now, then) {
  let reached = 0;
  for (let i = from; i < codes.length; i++) if (now[i] === 1 && codes[i] === code) reached = then[i + 1] = 1;
  return reached === 1;
}

/** For each beginning of the piece, the longest shorter beginning that it also ends with. @param {string} piece */
function findBorders(piece) {
  if (borders.length <= piece.length) borders = new Uint32Array(piece.length * 2);
  let border = 0;
  borders[1] = 0;
  for (let i = 1; i < piece.length; i++) {
    while (border > 0 && piece.charCodeAt(i) !== piece.charCodeAt(border)) border = borders[border];
    if (piece.charCodeAt(i) === piece.charCodeAt(border)) border++;
    borders[i + 1] = border;
  }
}
