/*
 * npm run bench:accept: what it costs to open a stream when the workers accept on one shared socket, and when
 * the primary hands connections round. The real server, the two in turn, several times; writes docs/accept.md.
 */
import { writeFileSync } from 'node:fs';
import { exitWith } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { machineLine } from '../../lib/machine.js';
import { busyUs, idleShareOf, medianOf, progressUntil, untilExit } from '../helpers/bench.js';
import { run, startServer } from '../helpers/server.js';

const STREAMS = 10_000;
const RAMPS = [1500, 6000];
const REPEATS = 3;
const IDLE_S = 3;
const REPORT = new URL('../../docs/accept.md', import.meta.url);
/** Streams planned for: above half of what two workers hold, the primary hands connections round. */
const PLANS = { shared: '0', 'round-robin': '20000' };

/** @typedef {keyof typeof PLANS} Scheduling */
/** @typedef {{ openUs: number, fewest: number }} Result fewest: the streams of the worker that got the least, as a share of an even one */

/** @param {import('node:test').TestContext} t @param {Scheduling} scheduling @param {number} ramp @returns {Promise<Result>} */
async function measure(t, scheduling, ramp) {
  process.stdout.write(`${scheduling}, ${ramp} a second\n`);
  const server = await startServer(t, [
    '--transport',
    'http',
    '--refresh',
    '1000',
    '--workers',
    '2',
    '--streams',
    PLANS[scheduling],
    '--drain',
    '500',
  ]);
  await progressUntil(server, 2 * IDLE_S, ({ elapsedMs }) => Number(elapsedMs) >= IDLE_S * 1000);
  const drone = run(t, process.execPath, [
    'fleet/drone.js',
    '--port',
    String(server.port),
    '--listen-port',
    '0',
    '--n',
    String(STREAMS),
    '--ramp',
    String(ramp),
  ]);
  await progressUntil(server, 60, ({ streams }) => streams === STREAMS);
  const { workers } = await server.frame();
  drone.child.kill('SIGTERM');
  await drone.exit;
  const rows = server.csv();
  await server.stop();
  const idle = rows.filter(({ elapsedMs }) => Number(elapsedMs) < IDLE_S * 1000);
  const full = rows.find(({ streams }) => Number(streams) === STREAMS);
  if (!full) throw new Error('no row has all streams');
  const fewest =
    (Math.min(...workers.map(({ values }) => Number(values.streams))) * workers.length) / STREAMS;
  return { openUs: busyUs(idle[idle.length - 1], full, idleShareOf(idle.slice(1))) / STREAMS, fewest };
}

async function main() {
  const t = untilExit();
  const lines = [];
  for (const ramp of RAMPS) {
    /** @type {Record<Scheduling, Result[]>} */
    const results = { shared: [], 'round-robin': [] };
    for (let i = 0; i < REPEATS; i++) {
      for (const scheduling of /** @type {Scheduling[]} */ (Object.keys(PLANS)))
        results[scheduling].push(await measure(t, scheduling, ramp));
    }
    const [shared, round] = [results.shared, results['round-robin']].map((list) =>
      medianOf(list.map(({ openUs }) => openUs)),
    );
    const fewest = medianOf(results.shared.map((one) => one.fewest));
    lines.push(
      `| ${formatCount(ramp)} | ${shared.toFixed(0)} µs | ${round.toFixed(0)} µs | ${(round / shared).toFixed(2)} | ${(100 * fewest).toFixed(0)} % |`,
    );
  }
  const text = `# Who accepts

CPU of primary and workers to open a stream, ${formatCount(STREAMS)} streams on two workers; medians of ${REPEATS} runs each, in
turn; written by \`npm run bench:accept\`.

${machineLine()}

| streams opened a second | workers accept on one socket | primary hands them round | ratio | least of two workers, of an even share |
|---|---|---|---|---|
${lines.join('\n')}
`;
  writeFileSync(REPORT, text);
  process.stdout.write(`\n${text}`);
  process.exit(0);
}

main().catch((error) => exitWith('accept', error));
