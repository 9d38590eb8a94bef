/*
 * Runs the experiments: server and fleet through a written scenario, and a report of the results.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { exitWith } from '../lib/errors.js';
import { optionLines } from '../lib/help.js';
import { FLAG, integer, option, readOptions, text } from '../lib/options.js';
import { readVersion } from '../lib/version.js';
import { writeComparison } from './lab/comparison.js';
import { writeDocs } from './lab/docs.js';
import { experimentNames, findExperiment } from './lab/experiment.js';
import { hasOwnNetwork, ownNetworkProblem, runInOwnNetwork } from './lab/namespace.js';
import { rewritePages } from './lab/page.js';
import { planOf, secondsOf } from './lab/plan.js';
import { ROOT } from './lab/server.js';
import { outOf, pathIn, runExperiment, shown, timeText } from './lab/session.js';

const MOST_STREAMS = 10_000_000;
const DOCS = 'docs/experiments.md';

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(1, MOST_STREAMS), '', 'streams to hold (most experiments: 15000, or fewer if the machine has no room)'),
  option('most', 'most', integer(1, MOST_STREAMS), '', 'streams with which ceiling stops (as many as fit)'),
  option('ramp', 'ramp', integer(1, 1_000_000), '', 'streams to open per second (each experiment has its own default)'),
  option('hold', 'hold', integer(1, 86_400), '', 'seconds to hold them (each experiment has its own default)'),
  option('repeats', 'repeats', integer(1, 100), '', 'trials of each run, in turn (each experiment has its own default)'),
  option('long', 'isLong', FLAG, false, 'hold five times as long'),
  option('out', 'out', text('DIR', 'a folder'), 'logs', 'where each experiment creates its own folder'),
  option('to', 'to', text('FILE', 'a file'), '', `also write the report to this file, for example docs/bench.md (docs: ${DOCS})`),
];

/** @typedef {import('./lab/experiment.js').Experiment} Experiment */

async function main() {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more
  const { values, words, help, version } = readOptions(OPTIONS, process.argv.slice(2), {}, 1);
  const [name] = words;
  if (version) return void process.stdout.write(`${readVersion()}\n`);
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

/** Writes docs/ again, and the comparison in the README if it has a place for one. @param {any} given */
async function docs({ out, to }) {
  const file = pathIn(to || DOCS);
  const reports = await writeDocs(outOf(out), file);
  process.stdout.write(
    `${shown(file)}: ${reports.length} ${reports.length === 1 ? 'experiment' : 'experiments'}\n`,
  );
  if (to) return;
  for (const folder of ['docs', 'docs/million', 'docs/bench'])
    for (const page of await rewritePages(join(ROOT, folder))) process.stdout.write(`${shown(page)}\n`);
  const readme = join(ROOT, 'README.md');
  const technologies = reports.find(({ name }) => name === 'technologies');
  if (technologies && existsSync(readme) && writeComparison(readme, technologies))
    process.stdout.write(`${shown(readme)}: the comparison\n`);
}

/** @param {Experiment} experiment @param {any} given */
async function run(experiment, given) {
  const command = ['node', 'scripts/experiment.js', ...process.argv.slice(2)].join(' ');
  process.exit(await runExperiment(experiment, given, { command }));
}

function helpText() {
  return `Usage: node scripts/experiment.js NAME [options]

Runs server and fleet through a written scenario. Leaves a folder with the CSVs, the clients' figures, charts and a report:
the question, the method, the results, and how reliable they are.

  list             lists the experiments: the question of each, and about how long it takes
  NAME             runs one
  docs             writes ${DOCS} from the newest complete report of each, updates the other pages of docs/, and
                   the comparison in README.md

Options:
${optionLines(OPTIONS)}

Ctrl-C stops it: no process is left running, and everything measured so far is kept.
`;
}

main().catch((error) => exitWith('experiment', error));
