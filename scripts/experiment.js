/*
 * Repeats the experiments: server and fleet through a written scenario, and a report of what was found.
 */
import { mkdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { formatCount } from '../lib/format.js';
import { FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';
import { conduct } from './lab/conduct.js';
import { writeDocs } from './lab/docs.js';
import { experimentNames, findExperiment } from './lab/experiment.js';
import { Lab } from './lab/lab.js';
import { planOf, secondsOf } from './lab/plan.js';
import { ROOT } from './lab/server.js';

const MOST_STREAMS = 10_000_000;
const SIGNAL_STATUS = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(1, MOST_STREAMS), '', 'streams to hold (15000, or what the machine takes)'),
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
  await run(await findExperiment(name), given);
}

/** @param {any} given */
async function list(given) {
  const experiments = await Promise.all(experimentNames().map(findExperiment));
  const width = Math.max(...experiments.map(({ name }) => name.length)) + 2;
  for (const experiment of experiments) {
    const time = timeText(secondsOf(experiment, planOf(experiment, given)));
    process.stdout.write(`${experiment.name.padEnd(width)}${time.padEnd(16)}${experiment.question}\n`);
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
  const plan = planOf(experiment, given);
  const folder = makeFolder(outOf(given.out), experiment.name);
  const ending = new AbortController();
  let status = 0;
  for (const [signal, code] of Object.entries(SIGNAL_STATUS)) {
    process.on(signal, () => {
      if (status !== 0) process.exit(code); // a second time: at once
      status = code;
      ending.abort(new Error(signal));
    });
  }
  const lab = new Lab({ folder, signal: ending.signal });
  announce(experiment, plan, lab);
  const report = await conduct(experiment, plan, lab, commandText());
  for (const sentence of report.sentences) process.stdout.write(`- ${sentence}\n`);
  process.stdout.write(`report: ${shown(join(folder, 'report.md'))}\n`);
  if (report.problem) throw new HoldfastError('FAILED', `${experiment.name} failed: ${report.problem}`);
  process.exit(status);
}

/** Says what will happen. @param {Experiment} experiment @param {import('./lab/plan.js').Plan} plan @param {Lab} lab */
function announce(experiment, plan, lab) {
  const runs = experiment.runs(plan);
  lab.aboutS = secondsOf(experiment, plan);
  const names = runs.map(({ name }) => name).join(', ');
  const turns = plan.repeats > 1 ? ` ${plan.repeats} times in turn` : '';
  lab.say(`${experiment.name}: ${experiment.question}`);
  lab.say(
    `  ${formatCount(plan.streams)} streams, held for ${formatCount(plan.holdS)} s; ${names}${turns}: ${timeText(lab.aboutS)}`,
  );
  lab.say(`  into ${shown(lab.folder)}; Ctrl-C ends it and keeps what was measured`);
}

/** @param {string} out @param {string} name @returns {string} a new folder; a second one of a day gets a number */
function makeFolder(out, name) {
  const base = join(out, `${new Date().toISOString().slice(0, 10)}-${name}`);
  try {
    mkdirSync(out, { recursive: true });
    for (let i = 1; ; i++) {
      const folder = i === 1 ? base : `${base}-${i}`;
      if (tryFolder(folder)) return folder;
    }
  } catch (error) {
    throw new HoldfastError('BAD_FOLDER', `can't write to --out ${out}: ${messageOf(error)}; give another`);
  }
}

/** @param {string} folder @returns {boolean} false where there is one */
function tryFolder(folder) {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** @param {string} out @returns {string} the default is that of the project, wherever it is called from */
function outOf(out) {
  return out === 'logs' ? join(ROOT, 'logs') : resolve(out);
}

/** @param {string} path */
function shown(path) {
  const near = relative(process.cwd(), path);
  return near.startsWith('..') ? path : near;
}

function commandText() {
  return ['node', 'scripts/experiment.js', ...process.argv.slice(2)].join(' ');
}

/** @param {number} seconds */
function timeText(seconds) {
  return seconds < 90 ? `about ${seconds} s` : `about ${Math.round(seconds / 60)} minutes`;
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
