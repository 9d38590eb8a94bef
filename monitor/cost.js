/*
 * What a stream costs in memory, and how sure that is. Pure.
 *
 * A worker's heap and the rest of its memory are its own, but vary without any stream: the cost is their growth since the
 * baseline, give or take that variation. The kernel reports its memory only for the whole machine, other programs included.
 * But TCP sockets are all alike, they are counted, and many open within a second: the cost of one is the median of what each
 * added, over all frames in which sockets were added. What other programs do at other times does not matter, and the
 * deviations from the median show how reliable it is.
 */

/** With fewer streams, the server's own memory hides their cost. */
export const COST_FROM_STREAMS = 1000;
/** Memory does not shrink when streams leave, so its growth is meaningful only close to the peak. */
const COST_FROM_PEAK_SHARE = 0.9;
/** How far a worker without streams is from its average: V8's young generation and its collections; pages of code and malloc. */
const WORKER_NOISE = { heapBytes: 3e6, nativeBytes: 1.5e6 };
/** Steps and quiet frames to remember. */
const MOST_STEPS = 16;
const MOST_QUIET = 60;
/** With fewer of both together, it is unknown how much the memory of this machine varies. */
const FEWEST_FRAMES = 3;
/** From the median of absolute deviations to a standard deviation. */
const MEDIAN_TO_SIGMA = 1.48;

/** @typedef {import('./collect.js').Sample} Sample */

/**
 * The cost of one stream, in bytes.
 * @typedef {object} Cost
 * @property {number | null} bytes null if the noise exceeds it
 * @property {number} mostBytes upper bound
 *
 * @typedef {{ heap: Cost | null, native: Cost | null, kernel: Cost | null }} Costs null if unknown
 */

/** Memory of the workers at the last frame before the first stream. @typedef {{ heapBytes: number, nativeBytes: number }} Base */

/** New sockets, and the growth of memory with them. @typedef {{ sockets: number, bytes: number }} Step */

/**
 * What was learned about the sockets of the machine.
 * @typedef {object} Sockets
 * @property {number} tcp now
 * @property {number} peak the most so far; below it, the kernel reuses memory that it has kept
 * @property {number} kernelBytes now
 * @property {Step[]} grown what frames with new sockets have added
 * @property {number[]} quiet changes of memory in frames without new ones, in bytes
 */

/** @param {Sample} sample @returns {Base} */
export function memoryOf({ workers }) {
  let heapBytes = 0;
  let nativeBytes = 0;
  for (const { snapshot, usage } of workers) {
    heapBytes += snapshot?.heapPhysicalBytes ?? 0;
    nativeBytes += snapshot && usage ? usage.rssBytes - snapshot.heapPhysicalBytes : 0;
  }
  return { heapBytes, nativeBytes };
}

/**
 * @param {Sockets | null} before
 * @param {import('./host.js').Host | null} host
 * @returns {Sockets | null} null if there is no /proc
 */
export function watchSockets(before, host) {
  if (!host) return before;
  const tcp = host.sockets.tcp;
  const kernelBytes = host.memory.slabBytes + host.sockets.bufferBytes;
  if (!before) return { tcp, peak: tcp, kernelBytes, grown: [], quiet: [] };
  const bytes = kernelBytes - before.kernelBytes;
  const isGrown = tcp > before.peak && before.tcp === before.peak;
  return {
    tcp,
    peak: Math.max(before.peak, tcp),
    kernelBytes,
    grown: isGrown ? merged([...before.grown, { sockets: tcp - before.tcp, bytes }]) : before.grown,
    quiet: tcp === before.tcp ? [...before.quiet, bytes].slice(-MOST_QUIET) : before.quiet,
  };
}

/**
 * Many steps become half as many of twice the size: much of the noise comes and goes within seconds, and matters less in a
 * larger step.
 * @param {Step[]} steps @returns {Step[]}
 */
function merged(steps) {
  if (steps.length <= MOST_STEPS) return steps;
  const add = (/** @type {Step} */ one, /** @type {Step} */ other = { sockets: 0, bytes: 0 }) => ({
    sockets: one.sockets + other.sockets,
    bytes: one.bytes + other.bytes,
  });
  return steps.filter((_, i) => i % 2 === 0).map((step, i) => add(step, steps[2 * i + 1]));
}

/**
 * @param {object} now
 * @param {Sample} now.sample
 * @param {number} now.streams
 * @param {number} now.peakStreams
 * @param {Base} now.base
 * @param {Sockets | null} now.sockets
 * @returns {Costs}
 */
export function costsOf({ sample, streams, peakStreams, base, sockets }) {
  if (streams < COST_FROM_STREAMS) return { heap: null, native: null, kernel: null };
  const isNearPeak = streams >= COST_FROM_PEAK_SHARE * peakStreams;
  const now = memoryOf(sample);
  const growth = (/** @type {keyof Base} */ name) => {
    const noise = WORKER_NOISE[name] * sample.workers.length;
    return isNearPeak ? costOf((now[name] - base[name]) / streams, noise / streams) : null;
  };
  return { heap: growth('heapBytes'), native: growth('nativeBytes'), kernel: socketCost(sockets) };
}

/** @param {number} bytes @param {number} noise of it @returns {Cost | null} */
function costOf(bytes, noise) {
  if (bytes + noise <= 0) return null; // it shrank by more than the noise
  return { bytes: bytes > noise ? bytes : null, mostBytes: bytes + noise };
}

/** @param {Sockets | null} sockets @returns {Cost | null} */
function socketCost(sockets) {
  if (!sockets) return null;
  const { grown, quiet } = sockets;
  const added = grown.reduce((sum, one) => sum + one.sockets, 0);
  if (added < COST_FROM_STREAMS || grown.length + quiet.length < FEWEST_FRAMES) return null;
  const ratios = grown.map((one) => ({ value: one.bytes / one.sockets, weight: one.sockets }));
  const bytes = weightedMedian(ratios);
  const deviations = [...grown.map((one) => one.bytes - one.sockets * bytes), ...quiet].map(Math.abs);
  const sigma = MEDIAN_TO_SIGMA * weightedMedian(deviations.map((value) => ({ value, weight: 1 })));
  // As in a regression through the origin: a step counts by the square of its sockets.
  const weight = Math.sqrt(grown.reduce((sum, one) => sum + one.sockets ** 2, 0));
  return costOf(bytes, (2 * sigma) / weight);
}

/** @param {{ value: number, weight: number }[]} values @returns {number} */
function weightedMedian(values) {
  const sorted = values.toSorted((a, b) => a.value - b.value);
  const half = sorted.reduce((sum, { weight }) => sum + weight, 0) / 2;
  let seen = 0;
  for (const { value, weight } of sorted) {
    seen += weight;
    if (seen >= half) return value;
  }
  return 0;
}
