/*
 * What a process reports about itself: its ticks, its heap, its garbage collections.
 */
import { constants, PerformanceObserver, performance } from 'node:perf_hooks';
import { getHeapStatistics } from 'node:v8';
import { Histogram } from './histogram.js';
import { zeroes } from './reasons.js';

/** @typedef {'minor' | 'major' | 'incremental' | 'weakcb'} GcKind */

/** @type {readonly GcKind[]} */
export const GC_KINDS = ['minor', 'major', 'incremental', 'weakcb'];

/** @type {Record<number, GcKind>} */
const KIND_OF = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: 'minor',
  [constants.NODE_PERFORMANCE_GC_MAJOR]: 'major',
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: 'incremental',
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: 'weakcb',
};

/**
 * Counts are since the process started, ticks since the last sample.
 * @typedef {object} ProcessSample
 * @property {import('./histogram.js').EncodedHistogram} ticks
 * @property {number} heapUsedBytes
 * @property {number} heapTotalBytes
 * @property {number} heapPhysicalBytes the part of the total that is resident: V8 reserves its young generation
 *   all at once and fills it later, so the total can be tens of megabytes larger
 * @property {number} externalBytes buffers and other memory outside the heap that JS objects own
 * @property {Record<GcKind, number>} gcCount
 * @property {Record<GcKind, number>} gcMs
 */

export class Sampler {
  /**
   * @param {number} intervalMs between two ticks; 0 for none, because waking up a hundred times a second is most of what
   *   an idle process costs
   */
  constructor(intervalMs) {
    this.ticks = new Histogram('µs');
    this.gcCount = zeroes(GC_KINDS);
    this.gcMs = zeroes(GC_KINDS);
    this.lastMs = performance.now();
    this.timer = intervalMs > 0 ? setInterval(() => this.tick(), intervalMs) : undefined;
    this.observer = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) this.collected(entry);
    });
    this.observer.observe({ entryTypes: ['gc'] });
  }

  tick() {
    const nowMs = performance.now();
    this.ticks.record((nowMs - this.lastMs) * 1000);
    this.lastMs = nowMs;
  }

  /** @param {import('node:perf_hooks').PerformanceEntry & { detail?: unknown }} entry */
  collected(entry) {
    const kind = KIND_OF[/** @type {{ kind: number }} */ (entry.detail).kind];
    if (!kind) return;
    this.gcCount[kind]++;
    this.gcMs[kind] += entry.duration;
  }

  /** @returns {ProcessSample} */
  take() {
    // The same figures as process.memoryUsage(), which opens a file and throws when no file descriptor is left.
    const heap = getHeapStatistics();
    return {
      ticks: this.ticks.take(),
      heapUsedBytes: heap.used_heap_size,
      heapTotalBytes: heap.total_heap_size,
      heapPhysicalBytes: heap.total_physical_size,
      externalBytes: heap.external_memory,
      gcCount: { ...this.gcCount },
      gcMs: { ...this.gcMs },
    };
  }

  stop() {
    clearInterval(this.timer);
    this.observer.disconnect();
  }
}
