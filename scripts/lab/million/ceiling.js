/*
 * The trial of the run with as many streams as possible.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { HoldfastError } from '../../../lib/errors.js';
import { formatCount } from '../../../lib/format.js';
import { mostStreams } from '../../../limits/index.js';
import { readMachine } from '../../../limits/kernel.js';
import { native } from '../../../native/index.js';
import { last } from '../phases.js';
import { change, rest } from '../steps.js';
import { Climb, reachedIn } from './climb.js';
import { mostInMemory, readMemory, roomIn, SPARE } from './room.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from './sockets.js';
import { onStage } from './stage.js';
import { cpuValues, latenessValues, memoryValues, pauseValues, tickValues } from './values.js';

export const PING_INTERVAL_MS = 20_000;
/** How long a number is held before the next one is tried, as a share of how long the last one is held. */
const STEP_SHARE = 0.1;
const MOST_STEP_S = 20;
/** What server and clients have room for, of the most streams that are asked for: shards do not get exactly the same number. */
const ROOM_SHARE = 1.04;

/** The names of their figures. @type {Record<import('./climb.js').Cause, string>} */
export const CAUSES = {
  memory: 'memory',
  'another limit': 'limit',
  CPU: 'cpu',
  lateness: 'lateness',
  ticks: 'ticks',
  streams: 'streams',
};
/** The figures of what a stream takes, in the kernel at each end, in the server and in the clients. */
export const MEMORY_PARTS = ['kernelBytes', 'userBytes', 'dronesBytes'];

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */

/** @param {Trial} trial @returns {Promise<Values>} @throws {HoldfastError} NO_ROOM */
export async function trialOfCeiling(trial) {
  const { lab, plan } = trial;
  const machine = readMachine();
  const wish = wishOf(plan);
  const most = mostPossible(machine, wish, plan);
  const wanted = Math.min(plan.streams, plan.most || Number.POSITIVE_INFINITY);
  const first = Math.min(wanted, mostStreams(machine, wish));
  if (first === 0) throw new HoldfastError('NO_ROOM', 'no stream fits here: node scripts/tune.js says why');
  if (first < wanted)
    lab.note(`it began with ${formatCount(first)} streams, because no more are known to fit`);
  /** @type {Climb | undefined} */
  let climb;
  /** @type {Values} */
  let room = {};
  let isGone = false;
  // Memory is watched here, and better than by an estimate.
  const how = { args: native ? ['--force'] : [], most };
  const { phases, watch } = await onStage(trial, how, async (watch) => {
    const { stage } = watch;
    await watch.during('idle', () => rest('idle', plan.idleS).run(stage));
    const sockets = socketsNow();
    const stepS = Math.min(MOST_STEP_S, Math.max(1, plan.holdS * STEP_SHARE));
    const way = { first, most: plan.most ?? 0, stepS, pingIntervalMs: PING_INTERVAL_MS, machine, wish };
    climb = new Climb(watch, way);
    await climb.run();
    if (climb.held > 0) {
      await climb.keep('held', plan.holdS);
      room = roomValues(climb);
    }
    await watch.during('down', async () => {
      await change(stage, 0);
      isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
    });
  });
  if (!climb) return {};
  const causes = Object.entries(CAUSES).map(([cause, name]) => [
    name,
    climb?.reached.has(/** @type {import('./climb.js').Cause} */ (cause)) ? 1 : null,
  ]);
  return {
    held: climb.held,
    limitAt: climb.limitAt,
    ...Object.fromEntries(causes),
    ...(climb.held > 0
      ? { ...heldValues(trial, climb, phases), ...room, ...pauseValues(phases.held, watch.pauses) }
      : {}),
    downS: isGone ? phases.down.tookMs / 1000 : null,
  };
}

/** @param {Trial} trial @param {Climb} climb @param {import('../phases.js').Phases} phases @returns {Values} */
function heldValues({ lab }, climb, phases) {
  const { counts } = phases.held.load;
  const lost = sumOf(phases[climb.last].load.counts.lost);
  const beyond = reachedIn(phases, 'held', { target: climb.held, lost });
  for (const [cause, how] of beyond) lab.note(`beyond its limit while they were held: ${cause} (${how})`);
  return {
    failed: sumOf(counts.failed),
    lost: sumOf(counts.lost),
    heldLost: sumOf(counts.lost) - lost,
    heldLimits: beyond.size,
    ...memoryValues(phases, climb.held),
    idleUsedBytes: last('idle', 'memoryUsedBytes')(phases),
    ...tickValues('held', phases.held),
    ...latenessValues(phases.held),
    ...cpuValues(phases, climb.last),
  };
}

/** @param {Climb} climb while its streams are open @returns {Values} */
function roomValues(climb) {
  const { idle, held, limitAt } = climb;
  const now = readMemory();
  const { freeBytes, usedBytes, streamBytes } = roomIn(idle, now, held);
  return {
    streamBytes: usedBytes / held,
    leftBytes: freeBytes,
    spareBytes: now.totalBytes * SPARE,
    nextBytes: limitAt === null ? null : (limitAt - held) * streamBytes,
  };
}

/** @param {import('../plan.js').Plan} plan @returns {import('../../../limits/index.js').Wish} */
function wishOf({ ramp }) {
  return {
    streams: 0,
    transport: native ? 'hold' : 'http',
    workers: native ? 1 : 'auto',
    pingIntervalMs: PING_INTERVAL_MS,
    openRate: ramp,
    isFleetHere: true,
  };
}

/**
 * How many streams server and clients are started for: so many that they are never the limit.
 * @param {import('../../../limits/kernel.js').Machine} machine @param {import('../../../limits/index.js').Wish} wish
 * @param {import('../plan.js').Plan} plan
 */
function mostPossible(machine, wish, { most }) {
  const wanted = most ? Math.ceil(most * ROOM_SHARE) : Number.POSITIVE_INFINITY;
  if (!native) return Math.min(wanted, mostStreams(machine, wish));
  const others = mostStreams(machine, wish, ({ name }) => !name.startsWith('memory'));
  return Math.min(wanted, mostInMemory(machine), others);
}
