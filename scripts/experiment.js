/*
 * Repeats the experiments: server and fleet through a written scenario, and a report of what was found.
 */
import { join, resolve } from 'node:path';
import { exitWith } from '../lib/errors.js';
import { FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';
import { writeDocs } from './lab/docs.js';
import { experimentNames, findExperiment } from './lab/experiment.js';
import { hasOwnNetwork, ownNetworkProblem, runInOwnNetwork } from './lab/namespace.js';
import { planOf, secondsOf } from './lab/plan.js';
import { ROOT } from './lab/server.js';
import { outOf, runExperiment, shown, timeText } from './lab/session.js';

const MOST_STREAMS = 10_000_000;

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(1, MOST_STREAMS), '', 'streams to hold (15000, or what the machine takes)'),
  option('ramp', 'ramp', integer(1, 1_000_000), '', 'streams to open a second (3000)'),
  option('hold', 'hold', integer(1, 86_400), '', 'seconds to hold them (each experiment has its own)'),
  option('repeats', 'repeats', integer(1, 100), '', 'trials of each run, in turn (each experiment has its own)'),
  option('long', 'isLong', FLAG, false, 'hold five times as long'),
  option('out', 'out', text('DIR', 'a folder'), 'logs', 'folder where each experiment makes its own'),
  option('to', 'to', text('FILE', 'a file'), 'docs/experiments.md', 'what `docs` writes'),
];

/** @typedef {import('./lab/experiment.js').Experiment} Experiment */

async function main() {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // whoever read it left
  const { values, words, help } = readOptions(OPTIONS, process.argv.slice(2), {}, 1);
  const [name] = words;
  if (help || !name) return void process.stdout.write(helpText());
  const given = /** @type {any} */ (values);
  if (name === 'list') return list(given);
  if (name === 'docs') return docs(given);
  const experiment = await findExperiment(name);
  if (experiment.hasOwnNetwork && !hasOwnNetwork() && !ownNetworkProblem())
    process.exit(await runInOwnNetwork(MOST_STREAMS));
  await run(experiment, given);
}

/** @param {any} given */
async function list(given) {
  const experiments = await Promise.all(experimentNames().map(findExperiment));
  const width = Math.max(...experiments.map(({ name }) => name.length)) + 2;
  for (const experiment of experiments) {
    const time = timeText(secondsOf(experiment, planOf(experiment, given)));
    process.stdout.write(`${experiment.name.padEnd(width)}${time.padEnd(18)}${experiment.question}\n`);
  }
}

/** @param {any} given */
function docs({ out, to }) {
  const file = to === 'docs/experiments.md' ? join(ROOT, to) : resolve(to);
  const count = writeDocs(outOf(out), file);
  process.stdout.write(`${shown(file)}: ${count} ${count === 1 ? 'experiment' : 'experiments'}\n`);
}

/** @param {Experiment} experiment @param {any} given */
async function run(experiment, given) {
  const command = ['node', 'scripts/experiment.js', ...process.argv.slice(2)].join(' ');
  const { status } = await runExperiment(experiment, given, { command });
  process.exit(status);
}

function helpText() {
  return `Usage: node scripts/experiment.js NAME [options]

Runs server and fleet through a written scenario, and leaves a folder with the CSVs, what the clients saw, charts, and a
report: the question, what was done, what was found, and how sure it is.

  list             which experiments there are, what each asks, and about how long it takes
  NAME             runs it
  docs             writes docs/experiments.md from the newest whole report of each

Options:
${optionLines(OPTIONS)}

Ctrl-C ends it: nothing is left running, and what was measured stays.
`;
}

main().catch((error) => exitWith('experiment', error));
