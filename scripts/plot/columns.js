/*
 * The columns of a run in bounded memory. Each row is a point, until there are too many; from then on a point is a bucket of
 * time, and the buckets double in length whenever there are too many again. A bucket keeps the mean of its rows, and their
 * maximum in columns whose worst value matters.
 */

const FIRST_WIDTH_MS = 1000;

/** @typedef {'mean' | 'max'} Keep what a bucket keeps of its rows */
/** @typedef {{ first: number, last: number, min: number, max: number }} Extent over all rows, not buckets */
/** @typedef {{ keep: Keep, sums: Float64Array, counts: Uint32Array, maxima: Float64Array, extent: Extent | null }} Column */

export class Columns {
  /** @param {Record<string, Keep>} keeps by name of the column @param {number} most points, at least 2 */
  constructor(keeps, most) {
    this.most = most;
    this.length = 0;
    /** Length of a bucket; 0 while each row is a point. */
    this.widthMs = 0;
    this.time = columnOf('mean', most);
    this.columns = Object.entries(keeps).map(([name, keep]) => ({ name, ...columnOf(keep, most) }));
  }

  /** @param {number} timeMs since the start, not before the last row @param {number[]} values in the order of the columns; NaN for none */
  add(timeMs, values) {
    const isNew = this.length === 0 || this.widthMs === 0 || !this.isInLast(timeMs);
    if (isNew && this.length === this.most) {
      this.compact();
      this.add(timeMs, values);
      return;
    }
    const at = isNew ? this.length++ : this.length - 1;
    put(this.time, at, timeMs, isNew);
    for (const [i, column] of this.columns.entries()) put(column, at, values[i], isNew);
  }

  /** @param {number} timeMs */
  isInLast(timeMs) {
    return this.bucketOf(this.length - 1) === Math.floor(timeMs / this.widthMs);
  }

  /** @param {number} at @returns {number} */
  bucketOf(at) {
    return Math.floor(this.time.sums[at] / this.time.counts[at] / this.widthMs);
  }

  /** Doubles the buckets until half of the points are free. */
  compact() {
    while (this.length > this.most / 2) {
      this.widthMs = this.widthMs === 0 ? FIRST_WIDTH_MS : this.widthMs * 2;
      this.merge();
    }
  }

  /** Merges points that fall into the same bucket. */
  merge() {
    let to = 0;
    for (let from = 1; from < this.length; from++) {
      const isSame = this.bucketOf(to) === this.bucketOf(from);
      if (!isSame) to++;
      for (const column of [this.time, ...this.columns]) move(column, from, to, isSame);
    }
    this.length = to + 1;
  }

  /** @returns {number[]} s since the start, per point */
  timesS() {
    return Array.from({ length: this.length }, (_, i) => this.time.sums[i] / this.time.counts[i] / 1000);
  }

  /**
   * @param {Keep} [keep] default: what the column keeps
   * @returns {Record<string, (number | null)[]>} a value per point, null for none; without columns that have no values at all
   */
  values(keep) {
    const filled = this.columns.filter(({ extent }) => extent);
    return Object.fromEntries(
      filled.map((column) => [column.name, pointsOf(column, this.length, keep ?? column.keep)]),
    );
  }

  /** @returns {Record<string, Extent>} */
  extents() {
    return Object.fromEntries(this.columns.flatMap(({ name, extent }) => (extent ? [[name, extent]] : [])));
  }
}

/** @param {Keep} keep @param {number} most @returns {Column} */
function columnOf(keep, most) {
  return {
    keep,
    sums: new Float64Array(most),
    counts: new Uint32Array(most),
    maxima: new Float64Array(keep === 'max' ? most : 0),
    extent: null,
  };
}

/** @param {Column} column @param {number} at @param {number} value @param {boolean} isNew whether it is the first value of the point */
function put(column, at, value, isNew) {
  if (isNew) clear(column, at);
  if (!Number.isFinite(value)) return;
  const { extent } = column;
  column.sums[at] += value;
  column.counts[at]++;
  if (column.keep === 'max') column.maxima[at] = Math.max(column.maxima[at], value);
  if (!extent) {
    column.extent = { first: value, last: value, min: value, max: value };
  } else {
    extent.last = value;
    extent.min = Math.min(extent.min, value);
    extent.max = Math.max(extent.max, value);
  }
}

/** @param {Column} column @param {number} at */
function clear(column, at) {
  column.sums[at] = 0;
  column.counts[at] = 0;
  if (column.keep === 'max') column.maxima[at] = Number.NEGATIVE_INFINITY;
}

/** @param {Column} column @param {number} from @param {number} to @param {boolean} isAdded to the values that are there */
function move(column, from, to, isAdded) {
  if (from === to) return;
  const { sums, counts, maxima } = column;
  sums[to] = isAdded ? sums[to] + sums[from] : sums[from];
  counts[to] = isAdded ? counts[to] + counts[from] : counts[from];
  if (column.keep === 'max') maxima[to] = isAdded ? Math.max(maxima[to], maxima[from]) : maxima[from];
}

/** @param {Column} column @param {number} length @param {Keep} keep @returns {(number | null)[]} */
function pointsOf({ sums, counts, maxima }, length, keep) {
  return Array.from({ length }, (_, i) =>
    counts[i] === 0 ? null : keep === 'max' ? maxima[i] : sums[i] / counts[i],
  );
}
