/*
 * How publications are written: in messages between processes, and on disk. A block is a run of consecutive publications that
 * were stored at the same time; a row is what one of them does not share with the others. Pure.
 */

/** @typedef {import('./index.js').Draft} Draft */
/** @typedef {import('./index.js').Publication} Publication */

/**
 * What was not given is null, or missing at the end. A single topic is not in a list.
 * @typedef {[topics: string | readonly string[], data: string, isPrivate: 0 | 1, id?: string | null, type?: string | null,
 *   retry?: number | null]} Row
 *
 * @typedef {[sequence: number, at: number, rows: Row[]]} Block with the sequence of its first row
 */

/** @param {Draft} draft @returns {Row} */
export function rowOf({ topics, data, private: isPrivate, id, type, retry }) {
  const first = topics.length === 1 ? topics[0] : topics;
  const third = isPrivate ? 1 : 0;
  if (id === undefined && type === undefined && retry === undefined) return [first, data, third];
  return [first, data, third, id ?? null, type ?? null, retry ?? null];
}

/** @param {Row} row @returns {Draft} */
export function draftOf([topics, data, isPrivate, id, type, retry]) {
  return {
    topics: typeof topics === 'string' ? [topics] : topics,
    data,
    private: isPrivate === 1,
    id: id ?? undefined,
    type: type ?? undefined,
    retry: retry ?? undefined,
  };
}

/** @param {readonly Publication[]} publications in order @returns {Block[]} */
export function blocksOf(publications) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {Block | undefined} */
  let block;
  for (const publication of publications) {
    const { sequence, at } = publication;
    if (!block || block[0] + block[2].length !== sequence || block[1] !== at) {
      block = [sequence, at, []];
      blocks.push(block);
    }
    block[2].push(rowOf(publication));
  }
  return blocks;
}

/** @param {Block} block @returns {Publication[]} */
export function publicationsOf([first, at, rows]) {
  return rows.map((row, index) => publicationOf(row, first + index, at));
}

/** @param {Row} row @param {number} sequence @param {number} at @returns {Publication} */
function publicationOf([topics, data, isPrivate, id, type, retry], sequence, at) {
  return {
    sequence,
    at,
    topics: typeof topics === 'string' ? [topics] : topics,
    data,
    private: isPrivate === 1,
    id: id ?? undefined,
    type: type ?? undefined,
    retry: retry ?? undefined,
  };
}
