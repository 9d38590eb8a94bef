/*
 * Sets the limits of a machine for a run: `check` shows what each is and what it has to be, `apply` raises those that are too
 * low, `revert` restores the old values. The rules are in limits/index.js; the server uses them at its start, too.
 */
import { readFileSync } from 'node:fs';
import { OPTIONS as SERVER_OPTIONS } from '../lib/config.js';
import { MOST_WORKERS } from '../lib/descriptors.js';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { optionLines } from '../lib/help.js';
import { nearest } from '../lib/nearest.js';
import { choice, either, FLAG, integer, option, readOptions, text } from '../lib/options.js';
import { warnAboutVariables } from '../lib/variables.js';
import { readVersion } from '../lib/version.js';
import { findLimits, mostStreams, streamsHere, verdictLine, verdictText } from '../limits/index.js';
import { readMachine, SYSCTLS } from '../limits/kernel.js';
import { planHere } from '../limits/needs.js';
import { native } from '../native/index.js';
import { revertSteps, runSteps, stepsOf } from './tune/apply.js';
import { renderVerdict } from './tune/table.js';

const ACTIONS = ['check', 'apply', 'revert'];
const DAY_MS = 86_400_000;
/** Other default ports: the control of a drone, the admin port of the server. */
const OTHER_PORTS = [8889, 8890];

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('streams', 'streams', integer(0, 100_000_000), 0, 'streams to hold; 0: as many as the server plans for by default'),
  option('transport', 'transport', choice('auto', 'http', 'hold'), 'auto', 'as in server.js; auto is hold if the native core is built'),
  option('workers', 'workers', either('auto', integer(1, MOST_WORKERS)), 'auto', 'as in server.js'),
  option('port', 'port', integer(1, 65_535), 8888, 'as in server.js'),
  option('ping-interval', 'pingIntervalMs', integer(10, DAY_MS), 20_000, 'ms between two pings of a stream'),
  option('open-rate', 'openRate', integer(1, 1_000_000), 1000, 'streams opened per second'),
  option('fleet', 'isFleetHere', FLAG, false, 'the clients run on this machine, too'),
  option('sources', 'sources', integer(0, 65_536), 0, 'addresses that the clients dial from; 0: as many as they need, as on loopback'),
  option('only', 'only', text('NAMES', 'names of limits, separated by commas'), '', 'consider only these limits, for example net.core.somaxconn,nofile'),
  option('json', 'json', FLAG, false, 'check: print JSON, including what was read from the machine'),
  option('machine', 'machine', text('FILE', 'a file'), '', 'check: use what --json printed, on this or another machine'),
  option('dry-run', 'dryRun', FLAG, false, 'apply, revert: show what would be done, and change nothing'),
  option('root', 'root', text('DIR', 'a folder'), '/', 'a folder to use instead of /, for a trial'),
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
  if (!help && !version) warnAboutVariables('tune', [...OPTIONS, ...SERVER_OPTIONS]);
  const config = /** @type {Config} */ (/** @type {unknown} */ (values));
  const action = words[0] ?? 'check';
  if (help) return void say(helpText());
  if (version) return void say(readVersion());
  if (!ACTIONS.includes(action)) throw unknownAction(action);
  if (action !== 'check' && config.machine)
    throw new HoldfastError('BAD_OPTION', `--machine works with check only: ${action} changes this machine`);
  const isDone = action === 'check' ? check(config) : action === 'apply' ? apply(config) : revert(config);
  process.exitCode = isDone ? 0 : 1;
}

/** @param {string} action */
function unknownAction(action) {
  const near = nearest(action, ACTIONS);
  const hint = near ? `did you mean ${near}? ` : '';
  return new HoldfastError(
    'BAD_OPTION',
    `unknown command '${action}': ${hint}expected ${ACTIONS.join(', ')}`,
  );
}

/** @param {string} line */
const say = (line) => process.stdout.write(`${line}\n`);

/** @param {Config} config @returns {Machine} */
function machineOf({ machine, root }) {
  if (machine === '') return readMachine(root);
  try {
    const saved = JSON.parse(readFileSync(machine, 'utf8'));
    return saved.machine ?? saved;
  } catch (error) {
    throw new HoldfastError('BAD_MACHINE', `${machine} was not written by check --json: ${messageOf(error)}`);
  }
}

/** @param {Config} config @param {Machine} machine @returns {Wish} */
function wishOf(config, machine) {
  const { workers, pingIntervalMs, openRate, isFleetHere, sources, port } = config;
  const transport = config.transport === 'auto' ? (native ? 'hold' : 'http') : config.transport;
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
  throw new HoldfastError(
    'BAD_OPTION',
    `--only got '${missing}', which is not a limit here; check lists them all`,
  );
}

/** @param {Config} config @returns {boolean} false if a limit forbids the run */
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

/** Without conntrack nobody misses its limits. @param {Machine} machine */
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

/** @param {Config} config @returns {boolean} false if some of it could not be done */
function apply(config) {
  const machine = machineOf(config);
  const wish = wishOf(config, machine);
  const findings = findingsOf(config, machine, wish);
  const steps = stepsOf(config.root, findings);
  if (steps.length === 0) say(`nothing to change for ${formatNoun(wish.streams, 'stream')}`);
  if (config.dryRun) {
    for (const { text: what } of steps) say(`would ${what}`);
    return true;
  }
  const failed = runSteps(steps, say);
  const after = findingsOf(config, readMachine(config.root), wish);
  // A limit on descriptors only takes effect at the next login.
  if (steps.some(({ text: what }) => what.includes('limits.d')))
    say('nofile takes effect at the next login: start the server from a new shell');
  if (steps.length > 0) say(`'node scripts/tune.js revert' restores the old values`);
  say(verdictLine(after, wish.streams));
  return failed === 0;
}

/** @param {Config} config @returns {boolean} false if some of it could not be done */
function revert({ root, dryRun }) {
  const { steps, end } = revertSteps(root);
  if (steps.length === 0) say('nothing to revert: nothing was applied here');
  if (dryRun) {
    for (const { text: what } of steps) say(`would ${what}`);
    return true;
  }
  const failed = runSteps(steps, say);
  if (failed === 0) end();
  else say('the old values are still saved: run revert again once this is possible');
  return failed === 0;
}

/** @returns {string} */
function helpText() {
  return `Usage: node scripts/tune.js [check|apply|revert] [options]

Shows which limits of this machine matter for a number of streams, and sets them.

  check    (default) prints a table: each limit, its value, the value needed and why, and what to change.
           Exit status 1 if a limit forbids the run; then it also says what would fit
  apply    as root: raises limits that are too low and lowers none. Writes /etc/sysctl.d/90-holdfast.conf and
           /etc/security/limits.d/90-holdfast.conf, and loads the first. The old values are saved
  revert   restores exactly what was there before the first apply

${optionLines(OPTIONS)}

Try: node scripts/tune.js check --streams 1000000 --fleet
     node scripts/tune.js apply --streams 1000000 --fleet --dry-run`;
}

try {
  main();
} catch (error) {
  exitWith('tune', error);
}
