/*
 * What a stream costs any kind of server, read from /proc: bytes, µs of CPU to open it, µs of CPU per ping.
 */
import { startLoad } from './load.js';
import { busyUs, idleShare, medianPss } from './usage.js';

/** Measured from this share of the streams to all of them, so that one-time costs are not counted. */
const LOW = 1 / 3;
const IDLE_MS = 1500;
/** By then the start no longer costs anything. */
const START_REST_MS = 2000;
const MEMORY = { readings: 5, everyMs: 200 };

/**
 * @typedef {object} Make
 * @property {(intervalMs: number) => Promise<import('./peers.js').Subject>} start interval 0 for no pings
 * @property {Record<string, string>} params for the drones
 * @property {number} pingIntervalMs
 */

/** @param {import('./experiment.js').Trial} trial @param {Make} make @returns {Promise<import('./experiment.js').Values>} */
export async function measure(trial, make) {
  const quiet = await measureQuiet(trial, make);
  return { ...quiet, ...(await measurePings(trial, make)) };
}

/** @param {import('./experiment.js').Trial} trial @param {Make} make @param {number} intervalMs */
async function open({ lab, plan }, make, intervalMs) {
  const subject = await make.start(intervalMs);
  const load = await startLoad(lab, {
    port: subject.port,
    most: plan.streams,
    ramp: plan.ramp,
    params: { ...make.params, interval: String(make.pingIntervalMs), timeout: '30000' },
  });
  const close = async () => {
    await load.close();
    await subject.stop();
  };
  return { subject, load, close };
}

/** Memory and openings. @param {import('./experiment.js').Trial} trial @param {Make} make */
export async function measureQuiet(trial, make) {
  const { lab, plan, name } = trial;
  const { subject, load, close } = await open(trial, make, 0);
  lab.status = () => `[${name}] opening: ${load.text()}`;
  await lab.sleep(plan.idleS * 1000);
  const settleMs = plan.holdS * 1000;
  const low = Math.max(1, Math.round(plan.streams * LOW));
  await reach(load, low);
  await lab.sleep(settleMs);
  const idle = await idleShare(lab, subject, IDLE_MS);
  const lowBytes = await medianPss(lab, subject, MEMORY);
  const us = await busyUs(subject, idle, () => reach(load, plan.streams));
  await lab.sleep(settleMs);
  const highBytes = await medianPss(lab, subject, MEMORY);
  subject.check();
  await close();
  const count = Math.max(1, plan.streams - low);
  return { bytes: (highBytes - lowBytes) / count, openUs: us / count };
}

/** @param {import('./experiment.js').Trial} trial @param {Make} make */
async function measurePings(trial, make) {
  const { lab, plan, name } = trial;
  const { subject, load, close } = await open(trial, make, make.pingIntervalMs);
  lab.status = () => `[${name}] pings: ${load.text()}`;
  await lab.sleep(START_REST_MS);
  const idle = await idleShare(lab, subject, IDLE_MS);
  await reach(load, plan.streams);
  await lab.sleep(make.pingIntervalMs);
  const before = (await load.poll()).counts.pings;
  const us = await busyUs(subject, idle, () => lab.sleep(plan.holdS * 1000));
  const pings = (await load.poll()).counts.pings - before;
  subject.check();
  await close();
  return { pingUs: pings > 0 ? us / pings : null, pings: pings / plan.holdS };
}

/** @param {import('./load.js').Load} load @param {number} streams */
async function reach(load, streams) {
  await load.set(streams);
  await load.untilThere();
}
