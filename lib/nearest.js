/*
 * Finds the word that was probably meant. Pure.
 */

/** How many letters may differ, and at most half of them: otherwise a short word would be near any other. */
const MOST_DIFFERENT = 2;

/** @param {string} given @param {string[]} words @returns {string} '' if none is near */
export function nearest(given, words) {
  const begun = words.find((word) => given !== '' && (word.startsWith(given) || given.startsWith(word)));
  const distances = words.map((word) => distanceOf(given, word));
  const least = Math.min(...distances);
  const most = Math.min(MOST_DIFFERENT, Math.floor(given.length / 2));
  return begun ?? (least <= most ? words[distances.indexOf(least)] : '');
}

/** Letters to insert, remove or change (Levenshtein). @param {string} one @param {string} other @returns {number} */
function distanceOf(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, i) => i);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const changed = row[j - 1] + (one[i - 1] === other[j - 1] ? 0 : 1);
      next[j] = Math.min(changed, row[j] + 1, next[j - 1] + 1);
    }
    row = next;
  }
  return row[other.length];
}
