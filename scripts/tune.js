/*
 * Sets the limits of a machine for a run: `check` says what each is and what it has to be, `apply` raises what is
 * too low, `revert` puts all back. The judgement is limits/index.js, the same that the server says at its start.
 */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MOST_WORKERS } from '../lib/descriptors.js';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { choice, either, FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';
import { findLimits, mostStreams, streamsHere, verdictLine, verdictText } from '../limits/index.js';
import { readMachine, SYSCTLS } from '../limits/kernel.js';
import { planHere } from '../limits/needs.js';
import { revertSteps, runSteps, stepsOf } from './tune/apply.js';
import { renderVerdict } from './tune/table.js';

const ACTIONS = ['check', 'apply', 'revert'];
const DAY_MS = 86_400_000;
/** What else listens, as it comes: the control of a drone, the admin port of the server. */
const OTHER_PORTS = [8889, 8890];

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(0, 100_000_000), 0, 'streams to hold; 0 is what the server holds when it is told no number'),
  option('transport', 'transport', choice('auto', 'http', 'hold'), 'auto', 'as in server.js; auto is hold where it is built'),
  option('workers', 'workers', either('auto', integer(1, MOST_WORKERS)), 'auto', 'as in server.js'),
  option('port', 'port', integer(1, 65_535), 8888, 'as in server.js'),
  option('ping-interval', 'pingIntervalMs', integer(10, DAY_MS), 20_000, 'ms between two pings to a stream'),
  option('open-rate', 'openRate', integer(1, 1_000_000), 1000, 'streams that are opened a second'),
  option('fleet', 'isFleetHere', FLAG, false, 'the clients run on this machine too'),
  option('sources', 'sources', integer(0, 65_536), 0, 'addresses they dial from; 0 is as many as they need, as on loopback'),
  option('only', 'only', text('NAMES', 'names of limits, with commas'), '', 'look at these limits alone, as in net.core.somaxconn,nofile'),
  option('json', 'json', FLAG, false, 'check: print it as JSON, with the readings of the machine'),
  option('machine', 'machine', text('FILE', 'a file'), '', 'check: judge readings that --json has saved, of any machine'),
  option('dry-run', 'dryRun', FLAG, false, 'apply, revert: say what would be done, and change nothing'),
  option('root', 'root', text('DIR', 'a folder'), '/', 'the folder that stands for /, for a trial'),
];

/** @typedef {import('../limits/kernel.js').Machine} Machine */
/** @typedef {import('../limits/needs.js').Wish} Wish */
/** @typedef {import('./tune/table.js').Verdict} Verdict */

/**
 * @typedef {Omit<Wish, 'transport'> & { transport: 'auto' | 'http' | 'hold', port: number, only: string, json: boolean,
 *   machine: string, dryRun: boolean, root: string }} Config
 */

function main() {
  const { values, words, help, version } = readOptions(OPTIONS, process.argv.slice(2), process.env, 1);
  const config = /** @type {Config} */ (/** @type {unknown} */ (values));
  const action = words[0] ?? 'check';
  if (help) return void say(helpText());
  if (version) return void say(JSON.parse(readFileSync(pathOf('package.json'), 'utf8')).version);
  if (!ACTIONS.includes(action))
    throw new HoldfastError('BAD_OPTION', `there is no '${action}': there are ${ACTIONS.join(', ')}`);
  if (action !== 'check' && config.machine)
    throw new HoldfastError('BAD_OPTION', `--machine goes with check alone: ${action} changes this machine`);
  const isDone = action === 'check' ? check(config) : action === 'apply' ? apply(config) : revert(config);
  process.exitCode = isDone ? 0 : 1;
}

/** @param {string} line */
const say = (line) => process.stdout.write(`${line}\n`);

/** @param {string} path @returns {string} */
const pathOf = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

/** @param {Config} config @returns {Machine} */
function machineOf({ machine, root }) {
  if (machine === '') return readMachine(root);
  try {
    const saved = JSON.parse(readFileSync(machine, 'utf8'));
    return saved.machine ?? saved;
  } catch (error) {
    throw new HoldfastError('BAD_MACHINE', `${machine} has no readings of a machine: ${messageOf(error)}`);
  }
}

/** @param {Config} config @param {Machine} machine @returns {Wish} */
function wishOf(config, machine) {
  const { workers, pingIntervalMs, openRate, isFleetHere, sources, port } = config;
  const isBuilt = existsSync(pathOf('native/holdfast.node'));
  const transport = config.transport === 'auto' ? (isBuilt ? 'hold' : 'http') : config.transport;
  const ports = [port, ...OTHER_PORTS];
  const wish = { workers, pingIntervalMs, openRate, isFleetHere, sources, ports, transport };
  const streams = config.streams || streamsHere(machine, { ...wish, streams: 0 });
  return { ...wish, streams };
}

/** @param {Config} config @param {Machine} machine @param {Wish} wish */
function findingsOf({ only }, machine, wish) {
  const findings = findLimits(machine, wish);
  if (only === '') return findings;
  const names = only.split(',');
  const chosen = findings.filter(({ name }) => names.includes(name) || names.includes(name.split(' ')[0]));
  const missing = names.find((one) => !chosen.some(({ name }) => name.startsWith(one)));
  if (missing === undefined) return chosen;
  throw new HoldfastError('BAD_OPTION', `--only got '${missing}', which is no limit here; check lists them`);
}

/** @param {Config} config @returns {boolean} false where something forbids the run */
function check(config) {
  const machine = machineOf(config);
  const wish = wishOf(config, machine);
  const findings = findingsOf(config, machine, wish);
  const line = verdictText(findings, wish.streams);
  const isAsked = config.streams > 0;
  const verdict = { wish, findings, plan: planHere(machine, wish), fit: fitOf(machine, wish) };
  const hidden = config.only ? [] : hiddenOf(machine);
  if (config.json) say(JSON.stringify({ verdict: line, ...verdict, machine }, null, 2));
  else say(renderVerdict({ ...verdict, isAsked, note: machine.note, hidden }, line));
  return !findings.some(({ isForbidding }) => isForbidding);
}

/** Where conntrack is off, its limits are not missed. @param {Machine} machine */
function hiddenOf({ sysctls }) {
  return SYSCTLS.filter((name) => !(name in sysctls) && !name.includes('conntrack') && name !== 'fs.file-nr');
}

/** @param {Machine} machine @param {Wish} wish @returns {Verdict['fit']} */
function fitOf(machine, wish) {
  const streams = mostStreams(machine, wish);
  const past = findLimits(machine, { ...wish, streams: Math.ceil(streams * 1.02) + 1 });
  return {
    streams,
    byDescriptors: mostStreams(machine, wish, ({ name }) => name.startsWith('nofile')),
    byMemory: mostStreams(machine, wish, ({ name }) => name.startsWith('memory')),
    plan: planHere(machine, { ...wish, streams }),
    barriers: past.filter(({ isForbidding }) => isForbidding).map(({ name }) => name),
  };
}

/** @param {Config} config @returns {boolean} false where a part of it could not be done */
function apply(config) {
  const machine = machineOf(config);
  const wish = wishOf(config, machine);
  const findings = findingsOf(config, machine, wish);
  const steps = stepsOf(config.root, findings);
  if (steps.length === 0) say(`nothing to change for ${wish.streams} streams`);
  if (config.dryRun) {
    for (const { text: what } of steps) say(`would: ${what}`);
    return true;
  }
  const failed = runSteps(steps, say);
  const after = findingsOf(config, readMachine(config.root), wish);
  // What is of no avail here was said already; a limit of descriptors counts from the next login on.
  if (steps.some(({ text: what }) => what.includes('limits.d')))
    say('nofile counts from the next login on; see that the shell that starts the server is a new one');
  if (steps.length > 0) say(`'node scripts/tune.js revert' puts all back as it was`);
  say(verdictLine(after, wish.streams));
  return failed === 0;
}

/** @param {Config} config @returns {boolean} false where a part of it could not be done */
function revert({ root, dryRun }) {
  const { steps, end } = revertSteps(root);
  if (steps.length === 0) say('nothing to revert: nothing was applied here');
  if (dryRun) {
    for (const { text: what } of steps) say(`would: ${what}`);
    return true;
  }
  const failed = runSteps(steps, say);
  if (failed === 0) end();
  else say('what was there is still kept: revert again where it can be done');
  return failed === 0;
}

/** @returns {string} */
function helpText() {
  return `Usage: node scripts/tune.js [check|apply|revert] [options]

Says which limits of this machine so many streams meet, and sets them.

  check    a table: each limit, what it is, what is needed and why, and the line to change; the default.
           Exit status 1 where something forbids the run, with what would fit
  apply    as root: raises what is too low, lowers no limit. It writes /etc/sysctl.d/90-holdfast.conf and
           /etc/security/limits.d/90-holdfast.conf, and loads the first. What was there is kept
  revert   puts back what was there before the first apply, exactly

${optionLines(OPTIONS)}

Try: node scripts/tune.js check --streams 1000000 --fleet
     node scripts/tune.js apply --streams 1000000 --fleet --dry-run`;
}

try {
  main();
} catch (error) {
  exitWith('tune', error);
}
