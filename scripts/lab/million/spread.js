/*
 * The floor of the rooms: bare epoll loops that send texts to streams that are far from each other, as the members of a room are. It
 * shows what the kernel and the clients alone need for each.
 */

import { coreCount } from '../cores.js';
import { figure } from '../figures.js';
import { cpuUs } from '../processes.js';
import { closeStreams, endFloors, openedValues, openFloors, reach, timed } from './floor.js';

/** On the wire, with the ends of a chunk, as many bytes as an event of the rooms. */
const TEXT_BYTES = 150;
/** What is due in this time is sent at once. */
const STEP_MS = 50;
/** Less than the machine can do, so that neither end has to wait. */
const RATE = 30_000;
/** Nobody announces these streams, so they need not open slowly. */
const RAMP = 20_000;
const US = 1e6;
/** The longest interval: nobody is pinged while this is measured. */
const NEVER_MS = 86_400_000;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */

export const SEND_FIGURES = [
  figure('sendUs', 'CPU of server and clients per delivery or ping', 'µs'),
  figure('mostSends', 'deliveries and pings per second for which all cores would be busy with that', '1/s'),
];

/** Pure. @param {number} percent CPU of server and clients, of one core @param {number} perSecond deliveries and pings @param {number} [cores] @returns {Values} */
export function sendValues(percent, perSecond, cores = coreCount()) {
  if (perSecond <= 0) return { sendUs: null, mostSends: null };
  const sendUs = (percent / 100) * (US / perSecond);
  return { sendUs, mostSends: (cores * US) / sendUs };
}

/** @param {Trial} trial @param {number} mostHoldS @returns {Promise<Values>} */
export async function trialOfSpread(trial, mostHoldS) {
  const { lab, name } = trial;
  const plan = { ...trial.plan, ramp: Math.max(RAMP, trial.plan.ramp) };
  const { floors, load, sockets } = await openFloors({ ...trial, plan }, NEVER_MS, { expect: 'any' });
  const { opened, ms } = await timed(() => reach(load, plan.streams));
  lab.status = () => `[${name}] sending: ${load.text()}`;
  const each = Math.round((RATE * STEP_MS) / 1000 / floors.pids().length);
  const cpu = () => ({ ours: cpuUs(floors.pids()), clients: cpuUs(load.pids()) });
  const [before, beginMs] = [cpu(), performance.now()];
  const endMs = beginMs + 1000 * Math.min(plan.holdS, mostHoldS);
  let steps = 0;
  while (performance.now() < endMs) {
    await floors.spread(TEXT_BYTES, each);
    floors.check();
    steps++;
    await lab.sleep(Math.max(0, beginMs + steps * STEP_MS - performance.now()));
  }
  const [now, tookMs] = [cpu(), performance.now() - beginMs];
  const rate = (1000 * steps * each * floors.pids().length) / tookMs;
  const cpuPercent = (now.ours - before.ours) / tookMs / 10;
  const dronesPercent = (now.clients - before.clients) / tookMs / 10;
  const { counts } = await load.pollCounts().then(() => load.total());
  await closeStreams(lab, { load, sockets });
  await endFloors({ floors, load });
  return {
    ...openedValues(counts, { opened, ms }),
    deliveryRate: rate,
    cpuPercent,
    dronesPercent,
    ...sendValues(cpuPercent + dronesPercent, rate),
  };
}
