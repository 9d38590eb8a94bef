/*
 * What the benchmark measures: the server with each transport, and the floor. All streams are on one channel.
 */
import { Client } from '../client.js';
import { Floor } from '../floor.js';
import { startServer } from '../server.js';

const CHANNEL = 'all';
/** An interval so long that no ping is due during a measurement. */
const NEVER_MS = 3_600_000;
/** Without --anonymous, each stream on a channel is decided on in JS, because it depends on the client's address. */
const USUAL = ['--workers', '2', '--refresh', '1000', '--anonymous'];
/** Asking for a frame costs the server something, too. */
const ASK_EVERY_MS = 250;

/** @typedef {'floor' | 'http' | 'hold'} Kind */
/** @typedef {import('../experiment.js').Round} Round */

/**
 * @typedef {object} Subject a server under test
 * @property {number} port
 * @property {() => number[]} pids of all its processes
 * @property {() => void} check throws when it has ended
 * @property {(message: string) => Promise<void>} publish to all streams
 * @property {() => Promise<Record<string, any> | null>} totals of its last frame; null for the floor
 * @property {() => Promise<void>} stop
 *
 * @typedef {object} How
 * @property {string} part of the benchmark, for the name of the CSV
 * @property {number} [pingIntervalMs]
 * @property {number} [streams] to plan for
 * @property {number} [gcIntervalMs] 0 leaves garbage collection to V8
 */

/** @param {Round} round @param {Kind} kind @param {How} how @returns {Promise<Subject>} */
export async function startSubject(
  { lab, name },
  kind,
  { part, pingIntervalMs, streams = 0, gcIntervalMs = 0 },
) {
  lab.status = () => `[${name}] ${part}: ${kind}`;
  if (kind === 'floor') return startFloor(lab, pingIntervalMs ?? 0);
  const gc = gcIntervalMs ? ['--gc-interval', String(gcIntervalMs)] : [];
  const interval = ['--ping-interval', String(pingIntervalMs ?? NEVER_MS)];
  const server = await startServer(lab, {
    name: `${kind}-${name}-${part}`,
    host: '0.0.0.0', // the client spreads its streams over many loopback addresses
    args: ['--transport', kind, ...USUAL, ...interval, '--streams', String(streams), ...gc],
    nodeFlags: gcIntervalMs ? ['--expose-gc'] : [],
  });
  return {
    port: server.port,
    pids: () => server.pids(),
    check: () => server.check(),
    publish: (message) => server.publish(CHANNEL, message),
    totals: () => server.totals(),
    stop: () => server.stop(),
  };
}

/** @param {import('../lab.js').Lab} lab @param {number} intervalMs @returns {Promise<Subject>} */
async function startFloor(lab, intervalMs) {
  const floor = await new Floor(lab, { intervalMs }).listening();
  return {
    port: floor.port,
    pids: () => floor.pids(),
    check: () => floor.check(),
    publish: (message) => floor.publish(message),
    totals: async () => null,
    stop: () => floor.stop(),
  };
}

/** @param {Round} round @param {Subject} subject @returns {Client} */
export function clientOf({ lab }, { port }) {
  return new Client(lab, port, `/?channel=${CHANNEL}`);
}

/** @param {Client} client @param {Subject} subject */
export async function stopBoth(client, subject) {
  await client.stop();
  await subject.stop();
}

/** @param {Round} round @param {Subject} subject @returns {Promise<Record<string, any>>} the totals of its next frame */
export async function nextTotals({ lab }, subject) {
  const before = (await subject.totals())?.elapsedMs ?? -1;
  for (;;) {
    await lab.sleep(ASK_EVERY_MS);
    subject.check();
    const totals = await subject.totals();
    if (totals && totals.elapsedMs > before) return totals;
  }
}
