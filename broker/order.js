/*
 * Gives drafts their places in the order. Pure.
 */

/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Publication} Publication */
/** @typedef {import('./index.js').Receipt} Receipt */

/**
 * @param {readonly (readonly Draft[])[]} calls of `append`, in order
 * @param {object} place
 * @param {number} place.last sequence of the last publication
 * @param {number} place.at ms since 1970
 * @param {((id: string) => number | undefined) | null} place.find sequence of a stored publication by its publisher's id; null to store
 *   drafts whose id is known again
 * @returns {{ publications: Publication[], receipts: Receipt[][] }} what is new, and the receipts of each call
 */
export function putInOrder(calls, { last, at, find }) {
  /** @type {Publication[]} */
  const publications = [];
  /** @type {Map<string, number>} of those that are new */
  const ids = new Map();
  const receipts = calls.map((drafts) =>
    drafts.map((draft) => {
      const { id } = draft;
      const known = id === undefined || !find ? undefined : (ids.get(id) ?? find(id));
      if (known !== undefined) return { sequence: known, isNew: false };
      const sequence = last + publications.length + 1;
      if (id !== undefined) ids.set(id, sequence);
      publications.push(numbered(draft, sequence, at));
      return { sequence, isNew: true };
    }),
  );
  return { publications, receipts };
}

/** @param {Draft} draft @param {number} sequence @param {number} at @returns {Publication} always with the same keys in the same order */
export function numbered({ topics, data, private: isPrivate, id, type, retry }, sequence, at) {
  return { sequence, at, topics, data, private: isPrivate, id, type, retry };
}
