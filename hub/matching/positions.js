/*
 * Sets of positions in a text: arrays with a 1 at each of them. They are reused, because matching is synchronous.
 */

/** @type {Uint8Array[]} by slot, longer than any text so far */
const sets = [];
/** Borders of the piece that was last searched for: see `mark`. */
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

/** @param {number} slot @returns {Uint8Array} the set that `blank` gave last for this slot */
export function saved(slot) {
  return sets[slot];
}

/**
 * Marks where a piece occurs, in time proportional to the sum of the lengths (Knuth, Morris and Pratt).
 * @param {string} piece
 * @param {string} text
 * @param {number} from
 * @param {Uint8Array} set empty, gets the positions where an occurrence starts
 * @returns {Uint8Array} the set
 */
export function mark(piece, text, from, set) {
  if (piece === '') return set.fill(1, from, text.length + 1);
  findBorders(piece);
  let matched = 0;
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    while (matched > 0 && code !== piece.charCodeAt(matched)) matched = borders[matched];
    if (code === piece.charCodeAt(matched)) matched++;
    if (matched < piece.length) continue;
    set[i + 1 - matched] = 1;
    matched = borders[matched];
  }
  return set;
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
