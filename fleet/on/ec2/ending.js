/*
 * Ends instances of a fleet, and removes security groups that are no longer needed.
 */
import { setTimeout as pause } from 'node:timers/promises';
import { HoldfastError } from '../../../lib/errors.js';
import { removeGroup } from './firewall.js';

const POLL_MS = 3000;

/** @typedef {import('./region.js').Region} Region */
/** @typedef {import('./region.js').Instance} Instance */
/** @typedef {import('./launch.js').Found} Found */

/** @param {Found[]} found @returns {Map<Region, Instance[]>} */
function grouped(found) {
  /** @type {Map<Region, Instance[]>} */
  const groups = new Map();
  for (const { region, instance } of found) groups.set(region, [...(groups.get(region) ?? []), instance]);
  return groups;
}

/**
 * Chooses from the region that has most each time, so that the rest stays even.
 * @param {Found[]} found in the order in which they should end
 * @param {number} count
 * @returns {Found[]}
 */
export function choose(found, count) {
  const queues = [...grouped(found).keys()].map((region) => found.filter((one) => one.region === region));
  /** @type {Found[]} */
  const chosen = [];
  for (let i = 0; i < Math.min(count, found.length); i++) {
    const fullest = queues.reduce((best, queue) => (queue.length > best.length ? queue : best));
    chosen.push(...fullest.splice(0, 1));
  }
  return chosen;
}

/**
 * Ends these, and waits until all are shutting down.
 * @param {Found[]} chosen
 * @param {number} deadlineMs
 * @throws {HoldfastError} NOT_ENDED
 */
export async function endAll(chosen, deadlineMs) {
  const affected = grouped(chosen);
  await Promise.all([...affected].map(([region, instances]) => region.terminate(instances)));
  const ids = new Set(chosen.map(({ instance }) => instance.InstanceId));
  /** @type {(string | undefined)[]} */
  let left = [];
  const haveEnded = async () => {
    const living = await Promise.all([...affected.keys()].map((region) => region.instances()));
    left = living
      .flatMap((instances) => instances.map(({ InstanceId }) => InstanceId))
      .filter((id) => ids.has(id));
    return left.length === 0;
  };
  if (await within(deadlineMs, haveEnded)) return;
  throw new HoldfastError('NOT_ENDED', `these instances have not ended yet: ${left.join(', ')}; try again`);
}

/**
 * An instance keeps its group in use for the minute or two that it takes to end.
 * @param {Region[]} regions
 * @param {number} deadlineMs
 * @param {(line: string) => void} say
 */
export async function removeGroups(regions, deadlineMs, say) {
  let waiting = regions;
  const names = () => waiting.map(({ name }) => name).join(', ');
  const attempt = async () => {
    const gone = await Promise.all(waiting.map(removeGroup));
    waiting = waiting.filter((_, i) => !gone[i]);
    return waiting.length === 0;
  };
  if (await attempt()) return;
  say(`waiting until the security groups are no longer in use: ${names()}`);
  if (await within(deadlineMs, attempt)) return;
  say(`security groups still in use: ${names()}; run 'stop all' later to remove them`);
}

/** @param {number} deadlineMs @param {() => Promise<boolean>} condition @returns {Promise<boolean>} */
async function within(deadlineMs, condition) {
  const endMs = performance.now() + deadlineMs;
  while (!(await condition())) {
    if (performance.now() > endMs) return false;
    await pause(POLL_MS);
  }
  return true;
}
