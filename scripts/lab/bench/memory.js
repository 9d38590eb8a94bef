/*
 * Memory: per stream, and of a whole server with many streams.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { pssBytes } from '../processes.js';
import { medianPss } from '../usage.js';
import { sizesOf } from './sizes.js';
import { clientOf, nextTotals, startSubject, stopBoth } from './subjects.js';

/** Code that runs for the first time takes memory too, which is not the streams'. */
const WARM_UPS = 3;
const GC_INTERVAL_MS = 1000;
const READINGS = { readings: 9, everyMs: 500 };
const CLIENTS_FOR_MANY = 4;

/** @typedef {import('./subjects.js').Round} Round */

/** How much PSS grows from `low` to `high` streams, while garbage is collected every second. @param {Round} round @param {import('./subjects.js').Kind} kind */
export async function measureMemory(round, kind) {
  const { lab, plan, record } = round;
  const { low, high, settleMs, restMs } = sizesOf(plan);
  const subject = await startSubject(round, kind, { part: 'memory', gcIntervalMs: GC_INTERVAL_MS });
  const client = clientOf(round, subject);
  for (let i = 0; i < WARM_UPS; i++) {
    await client.open(low);
    await lab.sleep(settleMs);
    await client.close();
    await lab.sleep(settleMs);
  }
  const bytesAt = async (/** @type {number} */ streams) => {
    await client.open(streams);
    await lab.sleep(restMs);
    return medianPss(lab, subject, READINGS);
  };
  const lowBytes = await bytesAt(low);
  record(kind, { memoryBytes: ((await bytesAt(high)) - lowBytes) / (high - low) });
  await stopBoth(client, subject);
}

/** PSS of the whole server with many streams. @param {Round} round */
export async function measureMany(round) {
  const { lab, plan, record } = round;
  const { many, settleMs } = sizesOf(plan);
  const subject = await startSubject(round, 'hold', { part: 'many', streams: many });
  const clients = Array.from({ length: CLIENTS_FOR_MANY }, () => clientOf(round, subject));
  for (const client of clients) await client.open(many / CLIENTS_FOR_MANY);
  await lab.sleep(settleMs);
  const { streams } = await nextTotals(round, subject);
  if (streams !== many) throw new HoldfastError('NOT_OPEN', `${streams} streams are open instead of ${many}`);
  record('hold', { manyPssBytes: pssBytes(subject.pids()) });
  for (const client of clients) await client.stop();
  await subject.stop();
}
