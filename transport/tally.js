/*
 * The counters of a `Hold`: what JS has counted, plus what the native core has.
 */
import { COUNTS, HISTOGRAMS, noCounters } from '../lib/counters.js';
import { Histogram } from '../lib/histogram.js';
import { CLOSE_REASONS, REFUSAL_STATUSES, zeroes } from '../lib/reasons.js';

/** @typedef {import('../lib/counters.js').TransportCounters} TransportCounters */
/** @typedef {import('../lib/counters.js').HistogramName} HistogramName */
/** @typedef {import('../native/types.js').CoreCounters} CoreCounters */

export class Tally {
  constructor() {
    /** Counted in JS. `backlogBytes` is measured on demand. */
    this.counts = noCounters();
    this.closed = zeroes(CLOSE_REASONS);
    /** Those of the table, and any other that an application refuses with. @type {Record<number, number>} */
    this.refused = zeroes(REFUSAL_STATUSES);
    const histograms = HISTOGRAMS.map(({ name, unit }) => [name, new Histogram(unit)]);
    /** From both, since the last reset. @type {Record<HistogramName, Histogram>} */
    this.histograms = Object.fromEntries(histograms);
  }

  /** Counts a request that was refused. @param {number} status */
  refuse(status) {
    this.refused[status] = (this.refused[status] ?? 0) + 1;
  }

  /**
   * @param {CoreCounters | undefined} core of the native core: counts since the start, histograms since the last call
   * @param {boolean} reset empties the histograms
   * @returns {TransportCounters}
   */
  read(core, reset) {
    const encoded = HISTOGRAMS.map(({ name, unit }, i) => {
      const recorded = core && encodedOf(unit, core.histograms[i]);
      return [name, takeHistogram(this.histograms[name], recorded, reset)];
    });
    return /** @type {TransportCounters} */ ({
      ...added(
        COUNTS.map(({ name }) => name),
        this.counts,
        core?.counts,
      ),
      closed: added(CLOSE_REASONS, this.closed, core?.closed),
      refused: { ...this.refused, ...added(REFUSAL_STATUSES, this.refused, core?.refused) },
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
 * @param {import('../lib/histogram.js').RecordedUnit} unit
 * @param {import('../native/types.js').RawHistogram} raw whose minimum is the largest number if it is empty
 * @returns {import('../lib/histogram.js').EncodedHistogram}
 */
function encodedOf(unit, raw) {
  return { unit, ...raw, min: raw.count === 0 ? 0 : raw.min };
}

/**
 * @param {Histogram} histogram kept here
 * @param {import('../lib/histogram.js').EncodedHistogram | undefined} recorded by native since the last call
 * @param {boolean} reset
 * @returns {import('../lib/histogram.js').EncodedHistogram}
 */
function takeHistogram(histogram, recorded, reset) {
  // The usual case, once a second: nothing to merge or keep.
  if (recorded && reset && histogram.count === 0) return recorded;
  if (recorded) histogram.merge(recorded);
  return reset ? histogram.take() : histogram.encode();
}
