/*
 * How big an experiment is: streams, seconds, repeats. The defaults fit the machine.
 */
import { mostStreams } from '../../limits/index.js';
import { readMachine } from '../../limits/kernel.js';

const USUAL_STREAMS = 15_000;
/** Per stream, both ends, in the transport that needs the most (docs/cost.md). */
const STREAM_BYTES = 20_000;
const LONG = 5;
const RAMP = 3000;
/** V8 gives back the memory it needed to start after some seconds; later it would be mistaken for the streams'. */
const IDLE_S = 10;
const LEAST_IDLE_S = 3;
/** Start and end of the server and the drones. */
const TRIAL_S = 4;

/**
 * @typedef {object} Plan
 * @property {number} streams
 * @property {number} holdS
 * @property {number} idleS rest after the start, before the first stream
 * @property {number} repeats
 * @property {number} ramp streams to open per second
 * @property {boolean} isLong
 * @property {number} [most] streams with which an experiment that rises has enough; 0 for as many as it can
 *
 * @typedef {{ streams: number, ramp?: number, hold: number, repeats: number, isLong: boolean, most?: number }} Wish 0 for the usual
 */

/** @param {import('./experiment.js').Experiment} experiment @param {Wish} wish @returns {Plan} */
export function planOf({ usual }, { streams, ramp, hold, repeats, isLong, most }) {
  const holdS = (hold || usual.holdS) * (isLong ? LONG : 1);
  return {
    streams: streams || usual.streams || defaultStreams(),
    holdS,
    idleS: Math.min(IDLE_S, Math.max(LEAST_IDLE_S, holdS)),
    repeats: repeats || usual.repeats,
    ramp: ramp || usual.ramp || RAMP,
    isLong,
    most: most || 0,
  };
}

/** @returns {number} 15,000, or what the limits and half of the free memory allow */
export function defaultStreams() {
  const machine = readMachine();
  const wish = /** @type {const} */ ({
    transport: 'http',
    pingIntervalMs: 5000,
    openRate: RAMP,
    isFleetHere: true,
  });
  const allowed = mostStreams(machine, { ...wish, streams: 0 });
  const free = Math.min(
    machine.memory.availableBytes,
    machine.group.memoryFreeBytes ?? Number.POSITIVE_INFINITY,
  );
  return Math.max(1, Math.floor(Math.min(USUAL_STREAMS, allowed, free / 2 / STREAM_BYTES)));
}

/** @param {import('./experiment.js').Experiment} experiment @param {Plan} plan @returns {number} about how many seconds it takes */
export function secondsOf(experiment, plan) {
  if (experiment.roundSeconds) return Math.ceil(plan.repeats * experiment.roundSeconds(plan));
  const trials = experiment.runs(plan).length * plan.repeats;
  return Math.ceil(trials * (trialSeconds(experiment, plan) + TRIAL_S));
}

/** @param {import('./experiment.js').Experiment} experiment @param {Plan} plan */
function trialSeconds({ steps, trialSeconds: own }, plan) {
  if (own) return own(plan);
  // Each phase lasts until the next row.
  return (steps?.(plan) ?? []).reduce((sum, { seconds }) => sum + seconds + 0.5, 0);
}
