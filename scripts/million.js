/*
 * npm run million: looks whether the machine takes so many streams, opens, holds and closes them, and writes what came
 * of it. What it runs is the experiment of that name.
 */
import { spawnSync } from 'node:child_process';
import { copyFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { makeFolder } from '../lib/folder.js';
import { formatCount } from '../lib/format.js';
import { choice, FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';
import { findLimits, formatValue, mostStreams } from '../limits/index.js';
import { pathOfSysctl, readMachine } from '../limits/kernel.js';
import { native, problem } from '../native/index.js';
import { findExperiment } from './lab/experiment.js';
import { hasOwnNetwork, ownNetworkProblem, runInOwnNetwork } from './lab/namespace.js';
import { reportText } from './lab/report.js';
import { ROOT } from './lab/server.js';
import { runExperiment, shown } from './lab/session.js';

const MOST_STREAMS = 10_000_000;
const PING_INTERVAL_MS = 20_000;

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(1, MOST_STREAMS), 1_000_000, 'streams to hold'),
  option('ramp', 'ramp', integer(1, 1_000_000), 20_000, 'streams to open a second, at the most'),
  option('hold', 'hold', integer(1, 86_400), 600, 'seconds to hold them'),
  option('repeats', 'repeats', integer(1, 100), 1, 'how often, one after the other'),
  option('apply', 'isApplied', FLAG, false, 'raise the limits of the machine that are too low without asking, as tune apply does'),
  option('own-network', 'ownNetwork', choice('on', 'off'), 'on', 'a network namespace for server and clients, with a table of sockets of that size; as root'),
  option('dashboard', 'dashboard', choice('auto', 'off'), 'auto', 'the dashboard of the server, where stdout is a terminal'),
  option('out', 'out', text('DIR', 'a folder'), 'logs', 'folder where the run makes its own'),
  option('to', 'to', text('FILE', 'a file'), '', 'write the report there too, as in docs/million.md'),
];

/** @typedef {import('../limits/finding.js').Finding} Finding */

async function main() {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // whoever read it left
  const { values, help } = readOptions(OPTIONS, process.argv.slice(2), {});
  if (help) return void process.stdout.write(helpText());
  const given = /** @type {any} */ ({ ...values, isLong: false });
  if (!native) throw new HoldfastError('NO_NATIVE', `so many streams need the hold transport: ${problem}`);
  if (!hasOwnNetwork() && given.ownNetwork === 'on') {
    const why = ownNetworkProblem();
    if (!why) process.exit(await runInOwnNetwork(given.streams));
    process.stderr.write(`Going on in the network of the machine, where each packet takes longer: ${why}.\n`);
  }
  await prepare(given);
  const command = ['npm run million', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])];
  const { report, folder, status } = await runExperiment(await findExperiment('million'), given, {
    command: command.join(' '),
    openView: given.dashboard === 'auto' && process.stdout.isTTY ? openDashboard : undefined,
  });
  if (given.to && report.end === 'whole') copyReport(report, folder, resolve(given.to));
  process.exit(status);
}

/**
 * Says what the machine lacks, and offers to change what can be changed.
 * @param {{ streams: number, ramp: number, isApplied: boolean }} given
 * @throws {HoldfastError} NO_ROOM, with what fits
 */
async function prepare({ streams, ramp, isApplied }) {
  const wish = {
    streams,
    transport: /** @type {const} */ ('hold'),
    pingIntervalMs: PING_INTERVAL_MS,
    openRate: ramp,
    isFleetHere: true,
  };
  let findings = tuneOwnNetwork(findLimits(readMachine(), wish));
  const low = findings.filter(({ isMet, fix }) => !isMet && fix.file !== '');
  if (low.length > 0) {
    process.stderr.write(`For ${formatCount(streams)} streams this machine has to be tuned:\n`);
    for (const finding of low) process.stderr.write(`  ${lineOf(finding)}\n`);
    const tune = [
      'scripts/tune.js',
      'apply',
      '--streams',
      String(streams),
      '--fleet',
      '--open-rate',
      String(ramp),
    ];
    if (isApplied || (await isWanted(tune))) {
      spawnSync(process.execPath, tune, { cwd: ROOT, stdio: 'inherit' });
      findings = findLimits(readMachine(), wish);
    }
  }
  const forbidding = findings.filter(({ isForbidding }) => isForbidding);
  if (forbidding.length === 0) return;
  const most = mostStreams(readMachine(), wish);
  const fits =
    most > 0 ? `${formatCount(most)} fit: npm run million -- --streams ${most}` : 'no number of streams fits';
  throw new HoldfastError(
    'NO_ROOM',
    `${formatCount(streams)} streams do not fit here: ${forbidding.map(lineOf).join('; ')}; ${fits}`,
  );
}

/**
 * What is low in a network of our own is set at once: it ends with the run.
 * @param {Finding[]} findings @returns {Finding[]} those that are left
 */
function tuneOwnNetwork(findings) {
  if (!hasOwnNetwork()) return findings;
  return findings.filter(
    ({ isMet, fix }) => isMet || !fix.line.startsWith('net.') || !fix.line.split('\n').every(isSet),
  );
}

/** @param {string} line as /etc/sysctl.d has them @returns {boolean} */
function isSet(line) {
  const [name, value] = line.split(' = ');
  try {
    writeFileSync(`/${pathOfSysctl(name)}`, value);
    return true;
  } catch {
    return false; // it is none of the network's, and read-only there
  }
}

/** @param {Finding} finding @returns {string} */
function lineOf(finding) {
  const { name, now, needed, why } = finding;
  return `${name} is ${formatValue(finding, now)}, ${formatValue(finding, needed)} wanted: ${why}`;
}

/** Asks who is there; where nobody is, it says what to do and goes on. @param {string[]} tune */
async function isWanted(tune) {
  const command = ['node', ...tune].join(' ');
  if (!process.stdin.isTTY || !process.stderr.isTTY) {
    process.stderr.write(`Going on as it is; '${command}' sets it, and so does --apply.\n`);
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  terminal.on('SIGINT', () => process.exit(130));
  const answer = await terminal.question(`Set it now with '${command}' ('revert' undoes it)? [y/N] `);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** @param {() => void} quit @returns {Promise<import('./lab/session.js').View>} */
async function openDashboard(quit) {
  const { Terminal } = await import('../monitor/terminal.js');
  return new Terminal({ quit, collectGarbage: () => {} });
}

/**
 * The report, and its charts in a folder beside it.
 * @param {import('./lab/report.js').Report} report @param {string} folder @param {string} file
 */
function copyReport(report, folder, file) {
  const name = basename(file).replace(/\.md$/, '');
  const charts = join(dirname(file), name);
  try {
    makeFolder(charts);
    for (const chart of report.charts) copyFileSync(join(folder, chart), join(charts, chart));
    writeFileSync(file, reportText({ ...report, charts: report.charts.map((chart) => `${name}/${chart}`) }));
  } catch (error) {
    throw new HoldfastError('BAD_FILE', `can't write --to ${file}: ${messageOf(error)}; give another`);
  }
  process.stdout.write(`report: ${shown(file)}\n`);
}

function helpText() {
  return `Usage: npm run million -- [options]

Holds a million streams on this machine, clients with it: looks whether the machine takes them, opens them, holds them
while each is pinged every ${PING_INTERVAL_MS / 1000} s, closes all at once, does the same with a bare epoll loop, and writes a report.

${optionLines(OPTIONS)}

Ctrl-C ends it: nothing is left running, and what was measured stays.
`;
}

main().catch((error) => exitWith('million', error));
