/*
 * One round: all servers run, and take turns at each cell. Those that are not asked use hardly any CPU.
 */
import { buildGenerator, generate } from '../../../fleet/requests/memcached/generator.js';
import { HoldfastError } from '../../../lib/errors.js';
import { pinned } from '../cores.js';
import { pssBytes } from '../processes.js';
import { CELLS, cellText, KEY_CONNECTIONS, keyCell, nameOf } from './cells.js';
import { measureProfile } from './profile.js';
import { countedBytes, cpuOf, startServer } from './server.js';
import { NAMES, subjectOf, subjects } from './subjects.js';

export const KEYS = 10_000;
export const VALUE_SIZE = 100;
/** Items whose memory is measured, and those that are there before. */
export const ITEMS = 100_000;
export const FEW_ITEMS = 1000;
const REST_MS = 500;
const TIMEOUT_MS = 5000;
const LONGER = 4;
/** How much longer or shorter than asked for. */
const KEY_SHARE = 1;
const OTHER_SHARE = 1 / 3;
const WARM_SHARE = 1 / 3;
/** Start, connections and end of a measurement. */
const AROUND_S = 0.15;
const START_S = 0.5;
const MEMORY_S = 2;
/** The first second of a profile is not read. */
const PROFILE_S = 1;
const PROFILES_S = 10;

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {import('./cells.js').Cell} Cell */
/** @typedef {import('./server.js').Server} Server */
/** @typedef {import('./subjects.js').Subject} Subject */

/** What JS gets faster with. @type {Cell[]} */
const WARM_UPS = [
  { op: 'get', batch: 16, connections: KEY_CONNECTIONS },
  { op: 'set', batch: 1, connections: KEY_CONNECTIONS },
  { op: 'get', batch: 1, connections: KEY_CONNECTIONS },
];

/** @param {import('../lab.js').Lab} lab @returns {Promise<string>} why nothing can be measured; '' on success */
export async function prepareGenerator(lab) {
  try {
    await buildGenerator({ signal: lab.signal });
    return '';
  } catch (error) {
    if (error instanceof HoldfastError) return error.message;
    throw error;
  }
}

/** @param {import('../plan.js').Plan} plan @returns {number} s */
export function roundSeconds({ holdS, repeats }) {
  const all = subjects().filter(({ missing }) => !missing);
  const cells = all.flatMap((subject) => CELLS.filter((cell) => isMeasured(subject, cell)));
  const seconds = cells.map((cell) => holdS * shareOf(cell) + AROUND_S).reduce((sum, one) => sum + one, 0);
  const before = all.length * (START_S + WARM_UPS.length * (holdS * WARM_SHARE + AROUND_S));
  const memory = all.filter(({ hasMemory }) => hasMemory).length * MEMORY_S;
  return seconds + before + (memory + PROFILES_S) / repeats;
}

/** @param {Round} round */
export async function measureRound(round) {
  const { lab, runs, name } = round;
  const names = runs.map((run) => run.name);
  const ready = subjects().filter((subject) => names.includes(subject.name));
  /** @type {Server[]} */
  const servers = [];
  for (const subject of ready) {
    lab.status = () => `[${name}] warm-up: ${subject.name}`;
    await orNote(round, subject, async () => void servers.push(await startWarm(round, subject)));
  }
  for (const cell of CELLS) {
    for (const server of servers.filter(({ subject }) => isMeasured(subject, cell))) {
      lab.status = () => `[${name}] ${cellText(cell)}: ${server.subject.name}`;
      await orNote(round, server.subject, () => measureCell(round, server, cell));
    }
  }
  for (const server of servers) await server.stop();
  if (name !== '1') return;
  if (names.includes(NAMES.nodecached))
    await orNote(round, subjectOf(NAMES.nodecached), () =>
      measureProfile(round, {
        start: (subject) => startWarm(round, subject),
        load: (server, op) => load(round, server, keyCell(op), (PROFILE_S + round.plan.holdS) * 1000),
      }),
    );
  for (const subject of ready.filter(({ hasMemory }) => hasMemory)) {
    lab.status = () => `[${name}] memory: ${subject.name}`;
    await orNote(round, subject, () => measureMemory(round, subject));
  }
}

/** A server that fails doesn't end the comparison of the others. @param {Round} round @param {Subject} subject @param {() => Promise<void>} act */
async function orNote({ lab }, { name }, act) {
  try {
    await act();
  } catch (error) {
    if (lab.signal.aborted || !(error instanceof HoldfastError)) throw error;
    lab.note(`figures of ${name} are missing: ${error.message}`);
  }
}

/** @param {Subject} subject @param {Cell} cell */
function isMeasured({ isWhole }, { connections }) {
  return isWhole || connections === KEY_CONNECTIONS;
}

/** @param {Cell} cell @returns {number} of the time of a measurement */
function shareOf({ batch, connections }) {
  return batch === 1 && connections === KEY_CONNECTIONS ? KEY_SHARE : OTHER_SHARE;
}

/** @param {Round} round @param {Subject} subject @returns {Promise<Server>} with all keys, and code that has run */
async function startWarm(round, subject) {
  const server = await startServer(round.lab, subject);
  await fill(round, server, KEYS);
  for (const cell of WARM_UPS) await load(round, server, cell, round.plan.holdS * WARM_SHARE * 1000);
  return server;
}

/** @param {Round} round @param {Server} server @param {Cell} cell */
async function measureCell(round, server, cell) {
  const before = cpuOf(server.pids());
  const counted = await load(round, server, cell, round.plan.holdS * shareOf(cell) * 1000);
  const after = cpuOf(server.pids());
  const { complete, elapsedMs, cpuMs, latencyMs } = counted;
  const [us, user, system] = [after.us - before.us, after.user - before.user, after.system - before.system];
  const values = {
    rate: (complete * 1000) / elapsedMs,
    us: us / complete,
    kernelUs: user + system > 0 ? ((us / complete) * system) / (user + system) : null,
    p50: latencyMs.percentiles[50],
    p99: latencyMs.percentiles[99],
    server: us / 10 / elapsedMs,
    client: (100 * cpuMs) / elapsedMs,
    clientUs: (cpuMs * 1000) / complete,
  };
  const named = Object.entries(values).map(([part, value]) => [
    nameOf(cell, /** @type {import('./cells.js').Part} */ (part)),
    value,
  ]);
  round.record(server.subject.name, Object.fromEntries(named));
}

/**
 * How much memory the server needs for more items. Redis and nodecached count the memory of their tables too.
 * @param {Round} round @param {Subject} subject
 */
async function measureMemory(round, subject) {
  const server = await startServer(round.lab, subject);
  const read = async (/** @type {number} */ items) => {
    await fill(round, server, items);
    await round.lab.sleep(REST_MS);
    return pssBytes(server.pids());
  };
  const [few, all] = [await read(FEW_ITEMS), await read(ITEMS)];
  round.record(subject.name, {
    itemBytes: (all - few) / (ITEMS - FEW_ITEMS),
    statsBytes: await countedBytes(server),
  });
  await server.stop();
}

/** Sets so many keys. @param {Round} round @param {Server} server @param {number} keys */
async function fill(round, server, keys) {
  const cell = { op: /** @type {const} */ ('get'), batch: 1, connections: 1 };
  await run(round, server, { ...jobOf(server, cell), keys, requests: 1, isFilled: false });
}

/**
 * A busy machine may let a short measurement pass without an answer: then a longer one follows.
 * @param {Round} round @param {Server} server @param {Cell} cell @param {number} durationMs
 * @returns {Promise<import('../../../fleet/requests/memcached/generator.js').Counted>}
 */
async function load(round, server, cell, durationMs) {
  const counted = await run(round, server, { ...jobOf(server, cell), durationMs: Math.round(durationMs) });
  const isEmpty = counted.complete === 0 && durationMs < TIMEOUT_MS;
  return isEmpty ? load(round, server, cell, durationMs * LONGER) : counted;
}

/** @param {Server} server @param {Cell} cell @returns {import('../../../fleet/requests/memcached/generator.js').Job} */
function jobOf({ port, subject }, { op, batch, connections }) {
  const address = { protocol: subject.protocol, host: '127.0.0.1', port, path: '', shown: '' };
  return {
    address,
    op,
    connections,
    requests: Number.POSITIVE_INFINITY,
    durationMs: Number.POSITIVE_INFINITY,
    timeoutMs: TIMEOUT_MS,
    pipeline: batch,
    keys: KEYS,
    valueSize: VALUE_SIZE,
    isFilled: true,
  };
}

/**
 * @param {Round} round @param {Server} server @param {import('../../../fleet/requests/memcached/generator.js').Job} job
 * @throws {HoldfastError} ANSWER if not every answer was right
 */
async function run({ lab }, { subject }, job) {
  const command = subject.isPinned ? pinned('client') : [];
  const counted = await lab.unlessAborted(generate(job, { command, signal: lab.signal }));
  const { complete, end, phase, misses, wrong, errors, failed, lastError } = counted;
  const lost = Object.values(failed).reduce((sum, count) => sum + count, 0);
  const bad = subject.answersRight ? misses + wrong : 0;
  if ((complete === 0 && end !== 'duration') || phase === 'fill' || lost + errors + bad > 0) {
    const last = lastError ? `; the last error: ${lastError}` : '';
    throw new HoldfastError(
      'ANSWER',
      `${lost} requests without an answer, ${errors} errors, ${misses + wrong} wrong answers${last}`,
    );
  }
  return counted;
}
