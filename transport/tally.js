/*
 * What a `Hold` has counted: here what is done in JS, and what the native core counted added to it.
 */
import { COUNTS, HISTOGRAMS, noCounters } from '../lib/counters.js';
import { Histogram } from '../lib/histogram.js';
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from '../lib/reasons.js';

/** @typedef {import('../lib/counters.js').TransportCounters} TransportCounters */
/** @typedef {import('../lib/counters.js').HistogramName} HistogramName */
/** @typedef {import('../native/types.js').CoreCounters} CoreCounters */

export class Tally {
  constructor() {
    /** Done in JS. `backlogBytes` is measured when it is asked for. */
    this.counts = noCounters();
    this.closed = zeroes(CLOSE_REASONS);
    this.refused = zeroes(REFUSAL_STATUSES);
    const histograms = HISTOGRAMS.map(({ name, unit }) => [name, new Histogram(unit)]);
    /** Of both since they were last reset. @type {Record<HistogramName, Histogram>} */
    this.histograms = Object.fromEntries(histograms);
  }

  /**
   * @param {CoreCounters | undefined} core what the native core counted since it began; its histograms since the last time
   * @param {boolean} reset empties the histograms
   * @returns {TransportCounters}
   */
  read(core, reset) {
    const encoded = HISTOGRAMS.map(({ name, unit }, i) => {
      const recorded = core && { unit, ...core.histograms[i] };
      return [name, takeHistogram(this.histograms[name], recorded, reset)];
    });
    return /** @type {TransportCounters} */ ({
      ...added(
        COUNTS.map(({ name }) => name),
        this.counts,
        core?.counts,
      ),
      closed: added(CLOSE_REASONS, this.closed, core?.closed),
      refused: added(REFUSAL_STATUSES, this.refused, core?.refused),
      ...Object.fromEntries(encoded),
    });
  }
}

/**
 * @template {string | number} Name
 * @param {readonly Name[]} names
 * @param {Record<Name, number>} own
 * @param {ArrayLike<number> | undefined} native in the order of the names
 * @returns {Record<Name, number>}
 */
function added(names, own, native) {
  const pairs = names.map((name, i) => [name, own[name] + (native?.[i] ?? 0)]);
  return /** @type {Record<Name, number>} */ (Object.fromEntries(pairs));
}

/**
 * @param {Histogram} histogram what is kept here
 * @param {import('../lib/histogram.js').EncodedHistogram | undefined} recorded natively since the last time
 * @param {boolean} reset
 * @returns {import('../lib/histogram.js').EncodedHistogram}
 */
function takeHistogram(histogram, recorded, reset) {
  // The usual case, once a second: nothing has to be merged or kept.
  if (recorded && reset && histogram.count === 0) return recorded;
  if (recorded) histogram.merge(recorded);
  return reset ? histogram.take() : histogram.encode();
}
