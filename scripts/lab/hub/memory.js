/*
 * Memory per stream of each kind.
 */
import { medianAnonymous } from '../usage.js';
import { sizesOf } from './sizes.js';
import { clientOf, startHub } from './subjects.js';

/** Code that runs for the first time takes memory too, which is not the streams'. */
const WARM_UPS = 3;
const GC_INTERVAL_MS = 1000;
const READINGS = { readings: 9, everyMs: 500 };
/** Clients of each server: the heap of a worker varies by hundreds of kilobytes, so few streams would tell little. */
const CLIENTS = 4;
const WORKERS = 4;
/** Young objects of V8 take up to 48 MB otherwise, at any time. */
const NODE_FLAGS = ['--expose-gc', '--max-semi-space-size=1'];

/** @typedef {import('./subjects.js').Round} Round */
/** @typedef {import('./subjects.js').Kind} Kind */
/** @typedef {{ server: import('./subjects.js').LabServer, clients: import('../client.js').Client[] }} Subject */

/**
 * How much the memory of a server grows from `low` to `high` streams of each client, while garbage is collected every second. The
 * kinds take turns, each in a server of its own.
 * @param {Round} round @param {Kind[]} kinds
 */
export async function measureMemory(round, kinds) {
  const { lab, name, record } = round;
  for (const kind of kinds) {
    lab.status = () => `[${name}] memory: ${kind}`;
    const subject = await startSubject(round, kind);
    record(kind, { memoryBytes: await memoryOf(round, subject) });
    for (const client of subject.clients) await client.stop();
    await subject.server.stop();
  }
}

/** @param {Round} round @param {Kind} kind @returns {Promise<Subject>} */
async function startSubject(round, kind) {
  const args = ['--gc-interval', String(GC_INTERVAL_MS)];
  const server = await startHub(round, {
    part: `memory-${kind}`,
    workers: WORKERS,
    args,
    nodeFlags: NODE_FLAGS,
  });
  const { streams } = round.plan;
  const clients = Array.from({ length: CLIENTS }, (_, i) =>
    clientOf(round, server, kind, { first: i * streams }),
  );
  return { server, clients };
}

/** @param {Round} round @param {Subject} subject @returns {Promise<number>} bytes per stream */
async function memoryOf({ lab, plan }, { server, clients }) {
  const { low, high, settleMs, restMs } = sizesOf(plan);
  const openAll = async (/** @type {number} */ streams) => {
    for (const client of clients) await client.open(streams);
  };
  for (let i = 0; i < WARM_UPS; i++) {
    await openAll(low);
    await lab.sleep(settleMs);
    for (const client of clients) await client.close();
    await lab.sleep(settleMs);
  }
  const read = async (/** @type {number} */ streams) => {
    await openAll(streams);
    await lab.sleep(restMs);
    return medianAnonymous(lab, server, READINGS);
  };
  const [before, after] = [await read(low), await read(high)];
  return (after - before) / (CLIENTS * (high - low));
}
