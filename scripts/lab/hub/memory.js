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

/** @typedef {import('./subjects.js').Round} Round */
/** @typedef {import('./subjects.js').Kind} Kind */

/**
 * How much the memory of a server grows from `low` to `high` streams, while garbage is collected every second. All kinds are
 * measured at the same time, each in a server of its own.
 * @param {Round} round @param {Kind[]} kinds @param {string[]} [args] of the servers
 * @returns {Promise<Map<Kind, number>>} bytes
 */
export async function memoryOf(round, kinds, args = []) {
  const { lab, plan } = round;
  const { low, high, settleMs, restMs } = sizesOf(plan);
  /** @type {{ kind: Kind, server: import('./subjects.js').LabServer, client: import('../client.js').Client }[]} */
  const all = [];
  for (const kind of kinds) {
    const gc = ['--gc-interval', String(GC_INTERVAL_MS), ...args];
    const server = await startHub(round, { part: `memory-${kind}`, args: gc, nodeFlags: ['--expose-gc'] });
    all.push({ kind, server, client: clientOf(round, server, kind) });
  }
  const openAll = async (/** @type {number} */ streams) => {
    for (const { client } of all) await client.open(streams);
  };
  for (let i = 0; i < WARM_UPS; i++) {
    await openAll(low);
    await lab.sleep(settleMs);
    for (const { client } of all) await client.close();
    await lab.sleep(settleMs);
  }
  const read = async (/** @type {number} */ streams) => {
    await openAll(streams);
    await lab.sleep(restMs);
    return Promise.all(all.map(({ server }) => medianAnonymous(lab, server, READINGS)));
  };
  const [lows, highs] = [await read(low), await read(high)];
  for (const { client, server } of all) {
    await client.stop();
    await server.stop();
  }
  return new Map(all.map(({ kind }, i) => [kind, (highs[i] - lows[i]) / (high - low)]));
}

/** @param {Round} round @param {Kind[]} kinds */
export async function measureMemory(round, kinds) {
  round.lab.status = () => `[${round.name}] memory`;
  for (const [kind, memoryBytes] of await memoryOf(round, kinds)) round.record(kind, { memoryBytes });
}
