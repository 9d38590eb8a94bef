/*
 * One hour of points, one per frame. With more than one frame per second, those of about a second become one point, so there are
 * never more than 3,600. The primary keeps one, and the page its copy. Pure.
 *
 * A point takes 4 bytes for each of the 19 columns, and 8 for its time: 302 KB for the hour at one frame per second. Rings begin
 * with room for 4 minutes, and grow.
 */
import { COLUMNS } from './columns.js';

export const HOUR_MS = 3_600_000;
const POINT_MS = 1000;
const FIRST_ROOM = 240;

/**
 * Points as JSON: lists of the same length, oldest first.
 * @typedef {object} Points
 * @property {number[]} times ms since 1970
 * @property {(number | null)[][]} columns in the order of COLUMNS
 * @property {number} merged frames in the last point, which is not complete while they are fewer than `framesPerPoint`
 */

export class History {
  /** @param {number} refreshMs between two frames */
  constructor(refreshMs) {
    this.framesPerPoint = Math.ceil(POINT_MS / refreshMs);
    /** Between two points. */
    this.stepMs = refreshMs * this.framesPerPoint;
    this.most = Math.ceil(HOUR_MS / this.stepMs);
    this.room = Math.min(FIRST_ROOM, this.most);
    /** Points since it was cleared. Point number n is at n % room; only the last `room` are there. */
    this.count = 0;
    /** Frames in the last point. */
    this.merged = 0;
    this.times = new Float64Array(this.room);
    this.columns = COLUMNS.map(() => new Float32Array(this.room));
  }

  clear() {
    this.count = 0;
    this.merged = 0;
  }

  get length() {
    return Math.min(this.count, this.room);
  }

  /** Number of the oldest point. */
  get first() {
    return this.count - this.length;
  }

  /** @returns {number} time of the last point; 0 if there is none */
  get lastMs() {
    return this.count === 0 ? 0 : this.times[(this.count - 1) % this.room];
  }

  /** @param {number} timeMs @param {readonly (number | null)[]} values of COLUMNS */
  add(timeMs, values) {
    if (timeMs < this.lastMs) this.clear(); // the clock was set back: what was before can't be told from what comes
    if (this.isInLast(timeMs)) this.mergeIn(values);
    else this.push(timeMs, values);
  }

  /** The time of a point is that of its first frame. @param {number} timeMs */
  isInLast(timeMs) {
    return this.merged > 0 && this.merged < this.framesPerPoint && timeMs < this.lastMs + this.stepMs;
  }

  /** @param {number} timeMs @param {readonly (number | null)[]} values */
  push(timeMs, values) {
    if (this.count === this.room && this.room < this.most) this.grow();
    const at = this.count++ % this.room;
    this.times[at] = timeMs;
    for (let i = 0; i < values.length; i++) this.columns[i][at] = values[i] ?? Number.NaN;
    this.merged = 1;
  }

  /** @param {readonly (number | null)[]} values */
  mergeIn(values) {
    const at = (this.count - 1) % this.room;
    this.merged++;
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      const column = this.columns[i];
      if (value !== null) column[at] = mergedValue(COLUMNS[i].merge, column[at], value, this.merged);
    }
  }

  /** Only before it has begun to overwrite. */
  grow() {
    const { times, columns } = this;
    this.room = Math.min(2 * this.room, this.most);
    this.times = new Float64Array(this.room);
    this.times.set(times);
    this.columns = columns.map((column) => {
      const larger = new Float32Array(this.room);
      larger.set(column);
      return larger;
    });
  }

  /** @param {number} [afterMs] only points that are later @returns {Points} */
  points(afterMs = 0) {
    let from = this.first;
    while (from < this.count && this.times[from % this.room] <= afterMs) from++;
    const places = Array.from({ length: this.count - from }, (_, i) => (from + i) % this.room);
    return {
      times: places.map((at) => this.times[at]),
      columns: this.columns.map((column) => places.map((at) => shortened(column[at]))),
      merged: this.merged,
    };
  }

  /** Adds points that are later than those here. @param {Points} points */
  load({ times, columns, merged }) {
    for (let i = 0; i < times.length; i++)
      this.push(
        times[i],
        columns.map((column) => column[i]),
      );
    if (times.length > 0) this.merged = merged;
  }
}

/** @param {import('./columns.js').Column['merge']} merge @param {number} before @param {number} value @param {number} count with it */
function mergedValue(merge, before, value, count) {
  if (merge === 'last' || Number.isNaN(before)) return value;
  return merge === 'max' ? Math.max(before, value) : before + (value - before) / count;
}

/** @param {number} value of 32 bits @returns {number | null} as short as possible in JSON */
function shortened(value) {
  if (Number.isNaN(value)) return null;
  return Math.abs(value) >= 1000 ? Math.round(value) : Math.round(value * 1000) / 1000;
}
