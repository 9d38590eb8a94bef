/*
 * Counts the streams of channels: every shard reports its largest ones, within a deadline.
 */

/** Shards that have not reported their channels by then are left out. */
const COUNT_MS = 2000;

/** @typedef {import('../lib/tops.js').Top} Top */
/** @typedef {{ tops: Top[], resolve: (tops: Top[]) => void, timer: NodeJS.Timeout }} Count */

export class Census {
  /** @param {number} shards how many report */
  constructor(shards) {
    this.shards = shards;
    /** Those in progress. @type {Map<number, Count>} by token */
    this.counts = new Map();
  }

  /** @param {number} token @param {() => void} ask @returns {Promise<Top[]>} of each shard that reports in time */
  begin(token, ask) {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finish(token), COUNT_MS).unref();
      this.counts.set(token, { tops: [], resolve, timer });
      ask();
    });
  }

  /** @param {{ token: number, names: string[], streams: number[], leftOut: number }} report of one more shard */
  reported({ token, names, streams, leftOut }) {
    const count = this.counts.get(token);
    const rows = names.map((name, i) => /** @type {[string, number, number]} */ ([name, streams[i], 0]));
    count?.tops.push({ rows, missing: leftOut });
    if (count?.tops.length === this.shards) this.finish(token);
  }

  /** @param {number} token */
  finish(token) {
    const { tops = [], resolve, timer } = this.counts.get(token) ?? {};
    this.counts.delete(token);
    clearTimeout(timer);
    resolve?.(tops);
  }

  /** No shard reports any more. */
  stop() {
    for (const token of this.counts.keys()) this.finish(token);
  }
}
