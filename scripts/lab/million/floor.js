/*
 * The same streams and pings on bare epoll loops: what the kernel and the machine alone need.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { percentilesOf } from '../../../fleet/drone/histograms.js';
import { descriptorLimit, limitsOf } from '../../../lib/descriptors.js';
import { freePort } from '../../../lib/port.js';
import { startFloors } from '../floor.js';
import { startLoad } from '../load.js';
import { networkOfMany } from '../namespace.js';
import { cpuUs, pssBytes } from '../processes.js';
import { look } from './everyone.js';
import { OTHER_SOCKETS, socketsNow, untilGone } from './sockets.js';
import { latenessValues } from './values.js';

export const FLOOR = 'floor';
const REST_MS = 1000;
/** The kernel distributes connections at random, so each loop has some room to spare. */
const FILL = 0.95;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../floor.js').Floors} Floors */
/** @typedef {import('../load.js').Load} Load */

/**
 * @param {Trial} trial @param {number} pingIntervalMs @param {number} mostHoldS
 * @returns {Promise<import('../experiment.js').Values>}
 */
export async function trialOfFloor(trial, pingIntervalMs, mostHoldS) {
  const { lab, plan } = trial;
  const { streams } = plan;
  const { floors, load, sockets } = await openFloors(trial, pingIntervalMs, { expect: 'any' });
  const ownBytes = pssBytes(floors.pids());
  const { opened, ms } = await timed(() => reach(load, streams));
  await lab.sleep(REST_MS);
  const held = await hold(lab, floors, load, Math.min(plan.holdS, mostHoldS));
  const { counts } = load.total();
  const bytes = pssBytes(floors.pids());
  const down = await timed(() => closeStreams(lab, { load, sockets }));
  await endFloors({ floors, load });
  return {
    ...openedValues(counts, { opened, ms }),
    userBytes: (bytes - ownBytes) / streams,
    allUserBytes: bytes / streams,
    ...held,
    downS: down.isGone ? down.ms / 1000 : null,
  };
}

/**
 * @param {import('../../../fleet/ask.js').Counts} counts @param {{ opened: number, ms: number }} up how many were opened, and how long it took
 * @returns {import('../experiment.js').Values}
 */
export function openedValues({ failed, lost, open }, { opened, ms }) {
  return {
    open,
    failed: sumOf(failed),
    lost: sumOf(lost),
    upS: ms / 1000,
    openRate: (1000 * opened) / ms,
  };
}

/** Bare loops, and their clients. `sockets`: how many the machine had before. @typedef {{ floors: Floors, load: Load, sockets: number }} FloorStage */

/** @param {Trial} trial @param {number} pingIntervalMs @param {Record<string, string>} params of the drones @returns {Promise<FloorStage>} without streams */
export async function openFloors({ lab, plan, name }, pingIntervalMs, params) {
  const { streams, ramp } = plan;
  const port = await freePort(0, '127.0.0.1');
  const count = Math.ceil(streams / (limitsOf(descriptorLimit()).capacity * FILL));
  const floors = await startFloors(lab, port, pingIntervalMs, count);
  const load = await startLoad(lab, {
    port,
    most: streams,
    ramp,
    params: { interval: String(pingIntervalMs), host: networkOfMany().hosts, ...params },
  });
  lab.status = () => `[${name}] ${load.text()}`;
  return { floors, load, sockets: socketsNow() };
}

/**
 * @param {import('../lab.js').Lab} lab @param {Pick<FloorStage, 'load' | 'sockets'>} stage
 * @returns {Promise<{ isGone: boolean }>} whether the last socket was seen to close
 */
export async function closeStreams(lab, { load, sockets }) {
  await reach(load, 0);
  return { isGone: await untilGone(lab, sockets + OTHER_SOCKETS) };
}

/** @param {Pick<FloorStage, 'floors' | 'load'>} stage */
export async function endFloors({ floors, load }) {
  await load.close();
  await floors.stop();
}

/** @param {Load} load @param {number} streams @returns {Promise<{ opened: number }>} */
export async function reach(load, streams) {
  await load.set(streams);
  const { counts } = await load.untilThere();
  return { opened: counts.opened };
}

/** CPU, pings and their lateness while all streams are held. @param {import('../lab.js').Lab} lab @param {Floors} floors @param {Load} load @param {number} seconds */
export async function hold(lab, floors, load, seconds) {
  const cpu = () => ({ ours: cpuUs(floors.pids()), drones: cpuUs(load.pids()) });
  const [before, beginMs, first] = [cpu(), performance.now(), await look(load)];
  for (let second = 0; second < seconds; second++) {
    floors.check();
    await load.pollCounts();
    await lab.sleep(1000);
  }
  const [now, elapsedMs, last] = [cpu(), performance.now() - beginMs, await look(load)];
  const pings = (last.counts.pings - first.counts.pings) / (elapsedMs / 1000);
  const lateness = last.lateness.less(first.lateness);
  const cpuPercent = (now.ours - before.ours) / elapsedMs / 10;
  const dronesPercent = (now.drones - before.drones) / elapsedMs / 10;
  return {
    cpuPercent,
    dronesPercent,
    pings,
    pingUs: pings > 0 ? (cpuPercent * 1e4) / pings : null,
    ...latenessValues({ latenessMs: percentilesOf(lateness) }),
  };
}

/** @template {object} T @param {() => Promise<T>} act @returns {Promise<T & { ms: number }>} ms: how long it took */
export async function timed(act) {
  const beginMs = performance.now();
  const found = await act();
  return { ...found, ms: performance.now() - beginMs };
}
