/*
 * CPU and memory that a server uses for its streams, beyond what it uses for itself.
 */
import { medianOf } from './phases.js';
import { anonymousBytes, cpuUs, pssBytes } from './processes.js';

/** @typedef {import('./lab.js').Lab} Lab */
/** @typedef {{ pids: () => number[] }} Measured any server: the ids of all its processes */

/** @param {Lab} lab @param {Measured} server @param {number} ms how long to watch @returns {Promise<number>} share of one core */
export async function idleShare(lab, server, ms) {
  const before = cpuUs(server.pids());
  await lab.sleep(ms);
  return (cpuUs(server.pids()) - before) / (ms * 1000);
}

/**
 * @param {Measured} server @param {number} idle share of one core that it uses when idle
 * @param {() => Promise<unknown>} work
 * @returns {Promise<number>} µs of CPU that the work cost the server
 */
export async function busyUs(server, idle, work) {
  const [before, begunMs] = [cpuUs(server.pids()), performance.now()];
  await work();
  return cpuUs(server.pids()) - before - idle * (performance.now() - begunMs) * 1000;
}

/**
 * @param {Lab} lab @param {Record<string, Measured>} servers @param {number} ms how long to watch all of them
 * @returns {Promise<Record<string, number>>} shares of one core
 */
export async function idleShares(lab, servers, ms) {
  const shares = Object.values(servers).map((server) => idleShare(lab, server, ms));
  return named(servers, await Promise.all(shares));
}

/**
 * @param {Record<string, Measured>} servers @param {Record<string, number>} idle share of one core that each uses when idle
 * @param {() => Promise<unknown>} work
 * @returns {Promise<Record<string, number>>} µs of CPU that the work cost each of them
 */
export async function busyEach(servers, idle, work) {
  const done = work();
  const all = Object.entries(servers).map(([name, server]) => busyUs(server, idle[name], () => done));
  return named(servers, await Promise.all(all));
}

/** @param {Record<string, Measured>} servers @param {number[]} values */
function named(servers, values) {
  return Object.fromEntries(Object.keys(servers).map((name, i) => [name, values[i]]));
}

/**
 * @param {Lab} lab @param {Measured} server @param {{ readings: number, everyMs: number }} how
 * @returns {Promise<number>} bytes, the median of several readings of its PSS
 */
export async function medianPss(lab, server, { readings, everyMs }) {
  const values = [];
  for (let i = 0; i < readings; i++) {
    values.push(pssBytes(server.pids()));
    await lab.sleep(everyMs);
  }
  return medianOf(values);
}

/**
 * @param {Lab} lab @param {Measured} server @param {{ readings: number, everyMs: number }} how
 * @returns {Promise<number>} bytes, the median of several readings of the memory that nobody shares
 */
export async function medianAnonymous(lab, server, { readings, everyMs }) {
  const values = [];
  for (let i = 0; i < readings; i++) {
    values.push(anonymousBytes(server.pids()));
    await lab.sleep(everyMs);
  }
  return medianOf(values);
}
