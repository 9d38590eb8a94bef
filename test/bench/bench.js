/*
 * npm run bench: what a stream costs in the native transport, in the plain one, and in a bare epoll loop, side by
 * side in one run, with the same client. Prints a table; writes docs/bench.md and docs/bench.json. Then the million run
 * with fewer streams, which writes docs/million-50000.md.
 */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exitWith, HoldfastError } from '../../lib/errors.js';
import { machineLine } from '../../lib/machine.js';
import { integer, option, optionLines, readOptions } from '../../lib/options.js';
import { native, problem } from '../../native/index.js';
import { medianOf, untilExit } from '../helpers/bench.js';
import { ROOT } from '../helpers/server.js';
import { until } from '../helpers/until.js';
import { buildBare, Client, cpuUs, Hiccups, pssBytes, startSubject } from './processes.js';
import { rowsOf, tableOf } from './report.js';

/** @typedef {import('./processes.js').Kind} Kind */
/** @typedef {import('./processes.js').Subject} Subject */

/** @type {Kind[]} */
const KINDS = ['floor', 'http', 'hold'];
const LOW = 5000;
const HIGH = 15_000;
const MANY = 60_000;
const CLIENTS_FOR_MANY = 4;
const MESSAGE = 'x'.repeat(64);
const FAN_OUTS = 10;
/** Climbs whose openings are measured, after as many that are not: code gets faster as it runs. */
const CLIMBS = 3;
/** Storms that count, and how many are tried. */
const STORMS = 4;
const MOST_STORMS = 12;
const PING_INTERVAL_MS = 500;
const PING_WINDOW_MS = 3000;
const PING_WINDOWS = 4;
const BUSY_PING_INTERVAL_MS = 5000;
const BUSY_S = 20;
const IDLE_MS = 6000;
const GC_INTERVAL_MS = 1000;
/** To ask for a frame is work for the server, too. */
const ASK_EVERY_MS = 250;
/** After a change, until memory and CPU are those of rest. */
const SETTLE_MS = 1500;
/** Until memory is that of rest: V8 gives back what it took to start, and to open streams. */
const REST_MS = 12_000;
const READINGS = 9;
const READ_EVERY_MS = 500;
/** Longer than this, and a second in which the machine itself stood still says nothing of ticks. */
const HICCUP_MS = 2;
/** The million run, scaled. */
const SCALED = 50_000;
const SCALED_HOLD_S = 60;
const SCALED_REPORT = 'docs/million-50000.md';
const MILLION = fileURLToPath(new URL('../../scripts/million.js', import.meta.url));
const REPORT = new URL('../../docs/bench.md', import.meta.url);
const FIGURES = new URL('../../docs/bench.json', import.meta.url);

const OPTIONS = [option('repeats', 'repeats', integer(1, 20), 3, 'runs of each server; medians are shown')];

/** @typedef {Record<string, number[]>} Figures by name, one of each run */

/** @param {Subject} subject @returns {Promise<number>} share of one core that it uses for itself */
async function idleShare({ pids }) {
  const before = cpuUs(pids);
  await after(IDLE_MS);
  return (cpuUs(pids) - before) / (IDLE_MS * 1000);
}

/**
 * @param {Subject} subject @param {number} idle share of one core
 * @param {() => Promise<unknown>} work
 * @returns {Promise<number>} µs of CPU that it took the server, beyond its own
 */
async function busyUs({ pids }, idle, work) {
  const [before, begunMs] = [cpuUs(pids), performance.now()];
  await work();
  return cpuUs(pids) - before - idle * (performance.now() - begunMs) * 1000;
}

/** @param {Client} client @param {number} bytes more than it has now */
async function untilRead(client, bytes) {
  const target = (await client.read()) + bytes;
  return () =>
    until(async () => (await client.read()) >= target, `the client has read ${target} bytes`, 60_000);
}

/** @param {Subject} subject @returns {Promise<number>} bytes, the median of some readings at rest */
async function memoryAtRest({ pids }) {
  await after(REST_MS);
  const readings = [];
  for (let i = 0; i < READINGS; i++) {
    readings.push(pssBytes(pids));
    await after(READ_EVERY_MS);
  }
  return medianOf(readings);
}

/**
 * Memory, while garbage is collected every second.
 * @param {import('node:test').TestContext} t @param {Kind} kind @param {(name: string, value: number) => void} note
 */
async function measureMemory(t, kind, note) {
  const subject = await startSubject(t, kind, { gcIntervalMs: GC_INTERVAL_MS });
  const client = new Client(subject.port);
  // Code that runs for the first time takes memory too, which is not that of streams.
  for (let climb = 0; climb < CLIMBS; climb++) {
    await client.open(LOW);
    await after(SETTLE_MS);
    await client.close();
    await after(SETTLE_MS);
  }
  await client.open(LOW);
  const low = await memoryAtRest(subject);
  await client.open(HIGH);
  note('memoryBytes', ((await memoryAtRest(subject)) - low) / (HIGH - LOW));
  await client.stop();
  await subject.stop();
}

/**
 * Openings and fan-out, while no ping is due; each kind has its turn, over and over, so that what drifts on the machine
 * meets all of them alike.
 * @param {import('node:test').TestContext} t @param {(kind: Kind) => (name: string, value: number) => void} noterOf
 */
async function measureQuiet(t, noterOf) {
  const stands = [];
  for (const kind of KINDS) {
    const subject = await startSubject(t, kind);
    const idle = await idleShare(subject);
    stands.push({ subject, idle, client: new Client(subject.port), note: noterOf(kind) });
  }
  for (let climb = -CLIMBS; climb < CLIMBS; climb++) {
    for (const { subject, idle, client, note } of stands) {
      await client.close();
      await after(SETTLE_MS);
      await client.open(LOW);
      await after(SETTLE_MS);
      const us = await busyUs(subject, idle, () => client.open(HIGH));
      if (climb >= 0) note('openUs', us / (HIGH - LOW));
    }
  }
  for (let round = 0; round < CLIMBS; round++) {
    for (const stand of stands) stand.note('deliveryUs', await deliveryUs(stand));
  }
  for (const { subject, client } of stands) {
    await client.stop();
    await subject.stop();
  }
}

/** @param {{ subject: Subject, idle: number, client: Client }} stand @returns {Promise<number>} µs of CPU a delivery */
async function deliveryUs({ subject, idle, client }) {
  const framed = `40\r\n${MESSAGE}\r\n`.length;
  const us = await busyUs(subject, idle, async () => {
    for (let i = 0; i < FAN_OUTS; i++) {
      const arrived = await untilRead(client, framed * HIGH);
      await subject.publish(MESSAGE);
      await arrived();
    }
  });
  return us / (HIGH * FAN_OUTS);
}

/** @param {Subject} subject @returns {Promise<Record<string, any>>} of the next second */
async function nextTotals(subject) {
  const { elapsedMs } = await subject.totals();
  for (;;) {
    await after(ASK_EVERY_MS);
    const totals = await subject.totals();
    if (totals.elapsedMs > elapsedMs) return totals;
  }
}

/** @param {import('node:test').TestContext} t @param {Kind} kind @param {(name: string, value: number) => void} note */
async function measurePings(t, kind, note) {
  const subject = await startSubject(t, kind, { pingIntervalMs: PING_INTERVAL_MS });
  const client = new Client(subject.port);
  await after(SETTLE_MS);
  const idle = await idleShare(subject);
  await client.open(HIGH);
  await after(IDLE_MS);
  for (let i = 0; i < PING_WINDOWS; i++) {
    const before = await client.read();
    const us = await busyUs(subject, idle, () => after(PING_WINDOW_MS));
    note('pingUs', us / (((await client.read()) - before) / '4\r\nping\r\n'.length));
  }
  await client.stop();
  await subject.stop();
}

/**
 * The ticks of JS while everything happens at once.
 * @param {import('node:test').TestContext} t @param {(name: string, value: number) => void} note
 */
async function measureTicks(t, note) {
  const subject = await startSubject(t, 'hold', { pingIntervalMs: BUSY_PING_INTERVAL_MS });
  const client = new Client(subject.port);
  const hiccups = new Hiccups();
  await hiccups.ready();
  await client.open(HIGH);
  await after(SETTLE_MS);
  await nextTotals(subject);
  let worst = 0;
  let before = await hiccups.take();
  for (let second = 0; second < BUSY_S; second++) {
    await subject.publish(MESSAGE);
    const { tickP99Ms, tickMaxMs } = await nextTotals(subject);
    const now = await hiccups.take();
    // The second of the server's frame began in the one before.
    const hiccup = Math.max(before, now);
    before = now;
    note('busyHiccupMs', hiccup);
    if (hiccup > HICCUP_MS) continue;
    note('busyTickP99Ms', tickP99Ms);
    worst = Math.max(worst, tickMaxMs);
  }
  if (worst > 0) note('busyTickMaxMs', worst);
  await hiccups.stop();
  await client.stop();
  await subject.stop();
}

/**
 * The ticks of JS while streams open as fast as they can, over and over.
 * @param {import('node:test').TestContext} t @param {Kind} kind @param {(name: string, value: number) => void} note
 */
async function measureStorm(t, kind, note) {
  const subject = await startSubject(t, kind);
  const client = new Client(subject.port);
  const hiccups = new Hiccups();
  await hiccups.ready();
  await nextTotals(subject);
  let counted = 0;
  for (let climb = 0; climb < MOST_STORMS && counted < STORMS; climb++) {
    await hiccups.take();
    const frame = nextTotals(subject);
    await client.open(HIGH);
    const { tickP99Ms } = await frame;
    if (climb >= CLIMBS && (await hiccups.take()) <= HICCUP_MS) {
      note('stormTickP99Ms', tickP99Ms);
      counted++;
    }
    await client.close();
    await after(SETTLE_MS);
  }
  await hiccups.stop();
  await client.stop();
  await subject.stop();
}

/** @param {import('node:test').TestContext} t @param {(name: string, value: number) => void} note */
async function measureMany(t, note) {
  const subject = await startSubject(t, 'hold', { streams: MANY });
  const clients = Array.from({ length: CLIENTS_FOR_MANY }, () => new Client(subject.port));
  for (const client of clients) await client.open(MANY / CLIENTS_FOR_MANY);
  await after(SETTLE_MS);
  const { streams } = await nextTotals(subject);
  if (streams !== MANY) throw new Error(`${streams} streams are open instead of ${MANY}`);
  note('manyPssBytes', pssBytes(subject.pids));
  for (const client of clients) await client.stop();
  await subject.stop();
}

/** The million run with fewer streams, so that what it would show is seen without it. @returns {number} its status */
function runScaled() {
  const words = [
    '--streams',
    String(SCALED),
    '--hold',
    String(SCALED_HOLD_S),
    '--dashboard',
    'off',
    '--to',
    SCALED_REPORT,
  ];
  return spawnSync(process.execPath, [MILLION, ...words], { stdio: 'inherit', cwd: ROOT }).status ?? 1;
}

async function main() {
  const { values, help } = readOptions(OPTIONS, process.argv.slice(2), {});
  if (help)
    return void process.stdout.write(
      `Usage: node test/bench/bench.js [options]\n\n${optionLines(OPTIONS)}\n`,
    );
  if (!native) throw new HoldfastError('NO_NATIVE', `there is nothing to measure: ${problem}`);
  buildBare();
  const t = untilExit();
  /** @type {Record<Kind, Figures>} */
  const figures = { floor: {}, http: {}, hold: {} };
  const noterOf = (/** @type {Kind} */ kind) => (/** @type {string} */ name, /** @type {number} */ value) => {
    figures[kind][name] = [...(figures[kind][name] ?? []), value];
    process.stdout.write(`${kind} ${name} ${Number(value.toPrecision(4))}\n`);
  };
  const { repeats } = /** @type {{ repeats: number }} */ (values);
  for (let repeat = 0; repeat < repeats; repeat++) {
    for (const kind of KINDS) await measureMemory(t, kind, noterOf(kind));
    await measureQuiet(t, noterOf);
    for (const kind of KINDS) await measurePings(t, kind, noterOf(kind));
    for (const kind of /** @type {Kind[]} */ (['http', 'hold'])) await measureStorm(t, kind, noterOf(kind));
    await measureTicks(t, noterOf('hold'));
    await measureMany(t, noterOf('hold'));
  }
  const rows = rowsOf(figures, medianOf);
  const machine = machineLine();
  const seconds = figures.hold.busyHiccupMs;
  const disturbed = `${seconds.filter((ms) => ms > HICCUP_MS).length} of ${seconds.length} busy ones`;
  const text = tableOf(rows, { machine, repeats, high: HIGH, low: LOW, disturbed });
  writeFileSync(REPORT, text);
  writeFileSync(FIGURES, `${JSON.stringify({ machine, repeats, rows, figures }, null, 2)}\n`);
  process.stdout.write(`\n${text}\n`);
  process.exit(runScaled());
}

main().catch((error) => exitWith('bench', error));
