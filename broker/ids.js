/*
 * Where a publisher's id is. In a copy, several publications may have the same id. The first of them counts: from there, a client
 * that has any of them misses nothing. Once it is gone, the id is unknown until the last of them is gone as well, because a
 * client that only has the first would miss what came between them. Pure.
 */

/** @typedef {number | [first: number, last: number]} Where a sequence, or those of several publications; `first` is 0 if it is gone */

/** @param {Where | undefined} where @returns {number | undefined} the sequence that the id stands for */
export function sequenceAt(where) {
  return (typeof where === 'object' ? where[0] : where) || undefined;
}

/** @param {Where | undefined} where @param {number} sequence of one more publication with the id @returns {Where} */
export function withSequence(where, sequence) {
  return where === undefined ? sequence : [sequenceAt(where) ?? 0, sequence];
}

/** @param {Where | undefined} where @param {number} sequence of a publication that is gone @returns {Where | undefined} undefined if the id is unknown */
export function withoutSequence(where, sequence) {
  if (typeof where !== 'object') return where === sequence ? undefined : where;
  const [first, last] = where;
  if (sequence === last) return first || undefined;
  return sequence === first ? [0, last] : where;
}
