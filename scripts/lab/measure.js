/*
 * What a stream costs a server of any make, from /proc: bytes, µs to open, µs a ping.
 */
import { startLoad } from './load.js';
import { medianOf } from './phases.js';
import { cpuUs, pssBytes } from './processes.js';

/** From this share of the streams to all of them: what the first ones bring with them is not counted. */
const LOW = 1 / 3;
const IDLE_MS = 1500;
/** What it takes to start is over by then. */
const START_REST_MS = 2000;
const READINGS = 5;
const READ_EVERY_MS = 200;

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
  const idle = await idleShare(lab, subject);
  const lowBytes = await memory(lab, subject);
  const us = await busyUs(subject, idle, () => reach(load, plan.streams));
  await lab.sleep(settleMs);
  const highBytes = await memory(lab, subject);
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
  const idle = await idleShare(lab, subject);
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

/** @param {import('./lab.js').Lab} lab @param {import('./peers.js').Subject} subject @returns {Promise<number>} share of one core */
async function idleShare(lab, subject) {
  const before = cpuUs(subject.pids());
  await lab.sleep(IDLE_MS);
  return (cpuUs(subject.pids()) - before) / (IDLE_MS * 1000);
}

/**
 * @param {import('./peers.js').Subject} subject @param {number} idle @param {() => Promise<unknown>} work
 * @returns {Promise<number>} µs of CPU beyond what it takes idle
 */
async function busyUs(subject, idle, work) {
  const [before, begunMs] = [cpuUs(subject.pids()), performance.now()];
  await work();
  return cpuUs(subject.pids()) - before - idle * (performance.now() - begunMs) * 1000;
}

/** @param {import('./lab.js').Lab} lab @param {import('./peers.js').Subject} subject @returns {Promise<number>} */
async function memory(lab, subject) {
  const readings = [];
  for (let i = 0; i < READINGS; i++) {
    readings.push(pssBytes(subject.pids()));
    await lab.sleep(READ_EVERY_MS);
  }
  return medianOf(readings);
}
