/*
 * npm run cost: holds 15,000 streams for a minute in the real server, with the http transport, checks that none is lost, that each
 * second has its row and each stream its pings, and writes what a stream costs to docs/cost.md.
 */
import { writeFileSync } from 'node:fs';
import { exitWith } from '../../lib/errors.js';
import { formatBytes, formatCount, formatMs } from '../../lib/format.js';
import { machineLine } from '../../lib/machine.js';
import { integer, option, optionLines, readOptions } from '../../lib/options.js';
import { busyUs, grown, idleShareOf, medianOf, progressUntil, untilExit } from '../helpers/bench.js';
import { run, startServer } from '../helpers/server.js';

const PING_INTERVAL_S = 20;
const RAMP = 2500;
/** Before the first stream: what the server uses for itself is taken off what it uses for streams. */
const IDLE_S = 10;
const REPORT = new URL('../../docs/cost.md', import.meta.url);

const OPTIONS = [
  option('streams', 'streams', integer(500, 18_000), 15_000, 'streams to hold'),
  option('hold', 'holdS', integer(20, 3600), 60, 'seconds to hold them'),
];

/** @typedef {import('../helpers/bench.js').Row} Row */

async function main() {
  const { values, help } = readOptions(OPTIONS, process.argv.slice(2), {});
  if (help)
    return void process.stdout.write(`Usage: node test/bench/cost.js [options]\n\n${optionLines(OPTIONS)}\n`);
  const { streams, holdS } = /** @type {{ streams: number, holdS: number }} */ (values);
  const t = untilExit();
  const args = ['--transport', 'http', '--refresh', '1000', '--streams', String(streams)];
  const server = await startServer(t, args);
  await progressUntil(server, 2 * IDLE_S, (totals) => Number(totals.elapsedMs) >= IDLE_S * 1000);
  run(t, process.execPath, [
    'fleet/drone.js',
    '--port',
    String(server.port),
    '--listen-port',
    '0',
    '--n',
    String(streams),
    '--ramp',
    String(RAMP),
  ]);
  const opened = await progressUntil(server, holdS + 60, (totals) => totals.streams === streams);
  await progressUntil(
    server,
    holdS + 60,
    (totals) => Number(totals.elapsedMs) > Number(opened.elapsedMs) + (holdS + 1) * 1000,
  );
  const rows = server.csv();
  const held = rows
    .filter(({ elapsedMs }) => Number(elapsedMs) > Number(opened.elapsedMs))
    .slice(1, holdS + 1);
  check(held, streams, holdS);
  const text = report(rows, held, streams);
  writeFileSync(REPORT, text);
  process.stdout.write(`\n${text}`);
  await server.stop();
  process.exit(0);
}

/**
 * @param {Row[]} held the rows of the time the streams were held
 * @param {number} streams @param {number} holdS
 */
function check(held, streams, holdS) {
  const pings = held.reduce((sum, { pingsPerSecond }) => sum + Number(pingsPerSecond), 0) / held.length;
  const due = streams / PING_INTERVAL_S;
  const gaps = held.slice(1).map((row, i) => Number(row.elapsedMs) - Number(held[i].elapsedMs));
  const failures = [
    held.length !== holdS && `${held.length} rows in ${holdS} seconds`,
    gaps.some((gap) => Math.abs(gap - 1000) > 250) &&
      `rows ${Math.min(...gaps)} to ${Math.max(...gaps)} ms apart`,
    held.some((row) => Number(row.streams) !== streams) && `a row whose streams are not ${streams}`,
    held.some((row) => Number(row.lost) + Number(row.closed) > 0) && 'streams were lost or closed',
    Math.abs(pings - due) > due * 0.02 && `${pings} pings a second instead of ${due}`,
  ].filter((failure) => failure !== false);
  if (failures.length > 0) throw new Error(failures.join('; '));
}

/** @param {Row[]} rows all @param {Row[]} held @param {number} streams @returns {string} in Markdown */
function report(rows, held, streams) {
  const idle = rows.filter(({ elapsedMs }) => Number(elapsedMs) < IDLE_S * 1000);
  const [idleEnd, first, last] = [idle[idle.length - 1], held[0], held[held.length - 1]];
  const idleShare = idleShareOf(idle.slice(1));
  const openUs = busyUs(idleEnd, first, idleShare) / streams;
  const pingUs = busyUs(first, last, idleShare) / grown('pings', first, last);
  const median = (/** @type {string} */ name) => medianOf(held.map((row) => Number(row[name])));
  const cost = (/** @type {string} */ kind) => formatBytes(median(`stream${kind}Bytes`));
  const worst = (/** @type {string} */ name) => formatMs(Math.max(...held.map((row) => Number(row[name]))));
  return `# What a stream costs in the http transport

${formatCount(streams)} streams, held for ${held.length} s, none lost, one CSV row each second; written by \`npm run cost\`.

${machineLine()}

| figure | here |
|---|---|
| JS heap a stream | ${cost('Heap')} |
| native memory a stream | ${cost('Native')} |
| kernel memory a socket | ${cost('Kernel')} |
| CPU to open a stream | ${openUs.toFixed(0)} µs |
| CPU of a ping | ${pingUs.toFixed(0)} µs |
| pings a second (due: ${formatCount(streams / PING_INTERVAL_S)}) | ${formatCount(grown('pings', first, last) / (grown('elapsedMs', first, last) / 1000))} |
| ticks avg / p90 / p99, medians of the seconds | ${['Avg', 'P90', 'P99'].map((figure) => formatMs(median(`tick${figure}Ms`))).join(' / ')} ms |
| tick, the worst | ${worst('tickMaxMs')} ms |
| lateness of pings, p99 of the worst second | ${worst('pingLatenessP99Ms')} ms |

Memory is what came since the second before the first stream, by streams (medians of the held seconds), so the
young generation that V8 grows once is in it. The kernel's is shared among all sockets that came, the clients' on the same machine included.
CPU is that of the primary and the workers, less what they used while idle (${(100 * idleShare).toFixed(1)} % of one core).
`;
}

main().catch((error) => exitWith('cost', error));
