/*
 * npm run million: checks whether the machine has room for so many streams, then opens, holds and closes them, and writes a
 * report. It runs the experiment of that name, or another of its runs.
 */
import { exitWith, HoldfastError } from '../lib/errors.js';
import { optionLines } from '../lib/help.js';
import { choice, FLAG, integer, option, readOptions, text } from '../lib/options.js';
import { readVersion } from '../lib/version.js';
import { readMachine } from '../limits/kernel.js';
import { native, problem } from '../native/index.js';
import { findExperiment } from './lab/experiment.js';
import { prepareMachine } from './lab/million/machine.js';
import { writeResults } from './lab/million/results.js';
import { mostInMemory } from './lab/million/room.js';
import { pageOf, RUNS } from './lab/million/runs.js';
import { hasOwnNetwork, ownNetworkProblem, runInOwnNetwork } from './lab/namespace.js';
import { planOf } from './lab/plan.js';
import { ROOT } from './lab/server.js';
import { pathIn, runExperiment } from './lab/session.js';

const MOST_STREAMS = 10_000_000;
const PING_INTERVAL_MS = 20_000;
const REFRESH_MS = 1000;

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  ...RUNS.filter(({ flag }) => flag).map(({ flag, help }) => option(flag, flag, FLAG, false, help)),
  option('streams', 'streams', integer(1, MOST_STREAMS), '', 'streams to hold (1000000, or what the run says); --ceiling begins with them'),
  option('most', 'most', integer(1, MOST_STREAMS), '', 'streams with which --ceiling stops (as many as fit)'),
  option('ramp', 'ramp', integer(1, 1_000_000), '', 'streams to open per second, at most (20000, or what the run says)'),
  option('hold', 'hold', integer(1, 86_400), '', 'seconds to hold them (600, or what the run says)'),
  option('small', 'isSmall', FLAG, false, 'fewer streams, for about a minute, as in npm run bench'),
  option('repeats', 'repeats', integer(1, 100), 1, 'how many times, one after the other'),
  option('apply', 'isApplied', FLAG, false, 'raise limits of the machine that are too low without asking, as tune apply does'),
  option('own-network', 'ownNetwork', choice('on', 'off'), 'on', 'a network namespace for server and clients, with a socket table of the right size; needs root'),
  option('dashboard', 'dashboard', choice('auto', 'off'), 'auto', 'show the dashboard of the server if stdout is a terminal'),
  option('out', 'out', text('DIR', 'a folder'), 'logs', 'where the run creates its own folder'),
  option('to', 'to', text('FILE', 'a file'), '', 'also write the report to this file, for example docs/million.md'),
];

async function main() {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more
  const { values, help, version } = readOptions(OPTIONS, process.argv.slice(2), {});
  if (help) return void process.stdout.write(helpText());
  if (version) return void process.stdout.write(`${readVersion()}\n`);
  const run = runIn(values);
  const experiment = await findExperiment(run.experiment);
  const given = sizedFor(experiment, /** @type {any} */ (values));
  const most = experiment.rises ? given.most || mostInMemory(readMachine()) : given.streams;
  if (!native) throw new HoldfastError('NO_NATIVE', `a million streams need the native core: ${problem}`);
  if (!hasOwnNetwork() && given.ownNetwork === 'on') {
    const why = ownNetworkProblem();
    if (!why)
      process.exit(await runInOwnNetwork(experiment.rises ? given.most || MOST_STREAMS : given.streams));
    process.stderr.write(`Using the network of the machine, where each packet takes longer: ${why}.\n`);
  }
  await prepareMachine({ ...given, most }, PING_INTERVAL_MS);
  const command = ['npm run million', ...(process.argv.length > 2 ? ['--', ...process.argv.slice(2)] : [])];
  const status = await runExperiment(experiment, given, {
    command: command.join(' '),
    openView: given.dashboard === 'auto' && process.stdout.isTTY ? openDashboard : undefined,
  });
  if (status === 0 && given.to && pathIn(given.to) === pathIn(pageOf(run, false))) await writeResults(ROOT);
  process.exit(status);
}

/** @param {Record<string, unknown>} values @throws {HoldfastError} BAD_OPTION */
function runIn(values) {
  const [run = RUNS[0], other] = RUNS.filter(({ flag }) => flag && values[flag]);
  if (other)
    throw new HoldfastError(
      'BAD_OPTION',
      `got --${run.flag} and --${other.flag}: expected one run; start them one after the other`,
    );
  return run;
}

/**
 * @template {{ streams: number, most: number, ramp: number, hold: number, repeats: number, isSmall: boolean }} Given 0 or '' for the usual
 * @param {import('./lab/experiment.js').Experiment} experiment @param {Given} given
 * @throws {HoldfastError} BAD_OPTION
 */
function sizedFor(experiment, given) {
  const { small, rises } = experiment;
  if (given.most && !rises)
    throw new HoldfastError(
      'BAD_OPTION',
      'got --most: expected it with --ceiling; other runs have --streams',
    );
  const none = { streams: 0, most: 0, ramp: 0, hold: 0 };
  const own = given.isSmall && small ? { ...none, ...small, hold: small.holdS } : none;
  const wish = {
    streams: given.streams || own.streams,
    most: given.most || own.most,
    ramp: given.ramp || own.ramp,
    hold: given.hold || own.hold,
    repeats: given.repeats,
    isLong: false,
  };
  const { streams, ramp } = planOf(experiment, wish);
  return { ...given, ...wish, streams, ramp };
}

/** @param {() => void} quit @returns {Promise<import('./lab/session.js').View>} */
async function openDashboard(quit) {
  const { Terminal } = await import('../monitor/terminal.js');
  return new Terminal({ quit, collectGarbage: () => {} }, REFRESH_MS);
}

function helpText() {
  return `Usage: npm run million -- [options]

Holds a million streams on this machine, clients included: checks whether there is room, opens them, holds them with a ping
every ${PING_INTERVAL_MS / 1000} s, closes all of them at once, does the same with bare epoll loops, and writes a report. Other runs do more with
them: choose one by its name, such as --tls.

${optionLines(OPTIONS)}

Ctrl-C stops it: no process is left running, and everything measured so far is kept.
`;
}

main().catch((error) => exitWith('million', error));
