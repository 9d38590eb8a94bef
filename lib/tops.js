/*
 * The largest of many counts, in little memory: lists that may be cut off, and a sketch that counts whatever comes. Both know how
 * far they may be wrong. Pure.
 */

/** The true count is from `count` to `count + over`. @typedef {[name: string, count: number, over: number]} Row */
/**
 * The largest counts of something.
 * @typedef {object} Top
 * @property {Row[]} rows largest first
 * @property {number} missing the most that a name may have that is not listed; 0 if all are
 */

/** @type {Top} */
export const NOTHING = { rows: [], missing: 0 };

/**
 * @param {Iterable<[string, number]>} counts @param {number} most rows
 * @returns {Top} exact, and cut off
 */
export function topOf(counts, most) {
  /** @type {Row[]} */
  const rows = [];
  let missing = 0;
  for (const [name, count] of counts) {
    const least = rows.at(-1)?.[1] ?? 0;
    if (rows.length === most && count <= least) {
      missing = Math.max(missing, count);
      continue;
    }
    if (rows.length === most) missing = Math.max(missing, /** @type {Row} */ (rows.pop())[1]);
    const at = rows.findIndex((row) => row[1] < count);
    rows.splice(at === -1 ? rows.length : at, 0, [name, count, 0]);
  }
  return { rows, missing };
}

/**
 * Adds up lists of different parts.
 * @param {readonly Top[]} tops @param {number} most rows
 * @returns {Top} a name that is missing in one of them may have had a count there: that is in `over`
 */
export function mergeTops(tops, most) {
  const missing = tops.reduce((sum, top) => sum + top.missing, 0);
  /** @type {Map<string, Row>} */
  const sums = new Map();
  for (const top of tops)
    for (const [name, count, over] of top.rows) {
      const sum = sums.get(name) ?? [name, 0, missing];
      sums.set(name, [name, sum[1] + count, sum[2] + over - top.missing]);
    }
  return cutOff([...sums.values()], missing, most);
}

/** @param {Row[]} rows in any order @param {number} missing @param {number} most rows @returns {Top} */
export function cutOff(rows, missing, most) {
  const sorted = rows.toSorted((a, b) => b[1] - a[1]);
  const cut = sorted.slice(most).map(([, count, over]) => count + over);
  return { rows: sorted.slice(0, most), missing: Math.max(missing, ...cut) };
}

/**
 * Counts names, however many there are (Misra and Gries, 1982; merged as in Agarwal et al., Mergeable Summaries, 2012): a name with
 * more than 1 / `most` of all counts is always there.
 */
export class Sketch {
  /** @param {number} most names; up to twice as many are kept */
  constructor(most) {
    this.most = most;
    /** @type {Map<string, number>} */
    this.counts = new Map();
    /** How much may be missing of each count. */
    this.over = 0;
  }

  /** @param {string} name */
  add(name) {
    this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
    if (this.counts.size > 2 * this.most) this.shrink();
  }

  /** What the first name that has to go has is taken from all. */
  shrink() {
    const cut = [...this.counts.values()].sort((a, b) => b - a)[this.most];
    this.over += cut;
    for (const [name, count] of this.counts)
      if (count > cut) this.counts.set(name, count - cut);
      else this.counts.delete(name);
  }

  /** @param {number} most rows @returns {Top} */
  top(most) {
    const { rows, missing } = topOf(this.counts, most);
    return { rows: rows.map(([name, count]) => [name, count, this.over]), missing: missing + this.over };
  }
}
