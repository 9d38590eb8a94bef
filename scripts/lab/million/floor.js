/*
 * The same streams and pings on bare epoll loops: what the kernel and the machine take by themselves.
 */

import { sumOf } from '../../../fleet/drone/causes.js';
import { descriptorLimit, limitsOf } from '../../../lib/descriptors.js';
import { freePort } from '../../../lib/port.js';
import { startBare } from '../bare.js';
import { startLoad } from '../load.js';
import { networkOfMany } from '../namespace.js';
import { cpuUs, pssBytes } from '../processes.js';
import { socketsNow, untilGone } from './sockets.js';

export const FLOOR = 'floor';
const REST_MS = 1000;
/** Connections come to them by lot, so each has room for some more than its share. */
const FILL = 0.95;
const OTHER_SOCKETS = 50;

/**
 * @param {import('../experiment.js').Trial} trial @param {number} pingIntervalMs @param {number} mostHoldS
 * @returns {Promise<import('../experiment.js').Values>}
 */
export async function trialOfFloor({ lab, plan, name }, pingIntervalMs, mostHoldS) {
  const { streams, ramp } = plan;
  const holdS = Math.min(plan.holdS, mostHoldS);
  const port = await freePort(0, '127.0.0.1');
  const count = Math.ceil(streams / (limitsOf(descriptorLimit()).capacity * FILL));
  const loops = await startBare(lab, port, pingIntervalMs, count);
  const load = await startLoad(lab, {
    port,
    most: streams,
    ramp,
    params: { interval: String(pingIntervalMs), expect: 'any', host: networkOfMany().hosts },
  });
  lab.status = () => `[${name}] ${load.text()}`;
  const sockets = socketsNow();
  const ownBytes = pssBytes(loops.pids());
  const begunMs = performance.now();
  await load.set(streams);
  const { counts } = await load.untilThere();
  const upS = (performance.now() - begunMs) / 1000;
  await lab.sleep(REST_MS);
  const before = { us: cpuUs(loops.pids()), dronesUs: cpuUs(load.pids()), ms: performance.now() };
  const pingsBefore = (await load.poll()).counts.pings;
  for (let second = 0; second < holdS; second++) {
    loops.check();
    await load.pollCounts();
    await lab.sleep(1000);
  }
  const elapsedMs = performance.now() - before.ms;
  const percent = (/** @type {number} */ now, /** @type {number} */ then) => (now - then) / elapsedMs / 10;
  const cpuPercent = percent(cpuUs(loops.pids()), before.us);
  const dronesPercent = percent(cpuUs(load.pids()), before.dronesUs);
  const end = await load.poll();
  const pings = ((end.counts.pings - pingsBefore) / elapsedMs) * 1000;
  const bytes = pssBytes(loops.pids());
  const closingMs = performance.now();
  await load.set(0);
  await load.untilThere();
  const isGone = await untilGone(lab, sockets + OTHER_SOCKETS);
  const downS = isGone ? (performance.now() - closingMs) / 1000 : null;
  await load.close();
  await loops.stop();
  return {
    open: end.counts.open,
    failed: sumOf(end.counts.failed),
    lost: sumOf(end.counts.lost),
    upS,
    openRate: counts.opened / upS,
    userBytes: (bytes - ownBytes) / streams,
    allUserBytes: bytes / streams,
    cpuPercent,
    dronesPercent,
    pings,
    pingUs: pings > 0 ? (cpuPercent * 1e4) / pings : null,
    downS,
  };
}
