/*
 * Compares what a machine allows with what streams need. Pure: a machine (limits/kernel.js) and a wish become findings.
 * scripts/tune.js shows them as a table, the server as one line.
 */
import { formatBytes, formatCount, formatNoun } from '../lib/format.js';
import { DESCRIPTOR_ROWS, HOST_ROWS, MEMORY_ROWS } from './host.js';
import { needsOf, planHere } from './needs.js';
import { NETWORK_ROWS } from './network.js';

export { LIMITS_FILE, SYSCTL_FILE } from './finding.js';

const ROWS = [...DESCRIPTOR_ROWS, ...NETWORK_ROWS, ...HOST_ROWS];

/** The most that --streams accepts. */
const MOST_STREAMS = 100_000_000;

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Wish} Wish */
/** @typedef {import('./finding.js').Finding} Finding */

/**
 * @param {Machine} machine
 * @param {Wish} wish
 * @returns {Finding[]} without limits that don't exist here or can't be read
 */
export function findLimits(machine, wish) {
  const needs = needsOf(machine, wish);
  return ROWS.map((row) => row(machine, needs)).filter((finding) => finding !== null);
}

/**
 * How many streams the machine can hold as it is: the most that no finding forbids.
 * @param {Machine} machine
 * @param {Wish} wish its `streams` is ignored
 * @param {(finding: Finding) => boolean} [counts] which limits count, by default all
 * @returns {number} rounded down to three digits, because much of it is an estimate
 */
export function mostStreams(machine, wish, counts = () => true) {
  let low = 0;
  let high = MOST_STREAMS;
  while (low < high) {
    const streams = Math.ceil((low + high) / 2);
    const findings = findLimits(machine, { ...wish, streams });
    if (findings.some((finding) => finding.isForbidding && counts(finding))) high = streams - 1;
    else low = streams;
  }
  const step = 10 ** Math.max(0, String(low).length - 3);
  return Math.floor(low / step) * step;
}

/**
 * How many streams a server without --streams can hold here: the room of its plan, or less if memory or another limit that
 * can't be configured forbids that many.
 * @param {Machine} machine
 * @param {Wish} wish its `streams` is ignored
 * @returns {number}
 */
export function streamsHere(machine, wish) {
  const plan = planHere(machine, { ...wish, streams: 0 });
  const room = plan ? plan.workers * plan.shards * plan.capacity : 0;
  return Math.min(
    room,
    mostStreams(machine, wish, ({ fix }) => fix.file === ''),
  );
}

/**
 * Whether memory forbids the server that was asked for: starting it would only take the machine down with it.
 * @param {Machine} machine
 * @param {Wish} wish
 * @returns {string} one line with what fits; '' if memory allows it, or if nothing was asked for
 */
export function memoryRefusal(machine, wish) {
  const { streams, workers = 'auto', transport } = wish;
  if (streams === 0 && workers === 'auto') return '';
  const finding = findLimits(machine, wish).find((one) => one.isForbidding && isMemory(one));
  if (!finding) return '';
  const [needed, free] = [finding.needed, finding.now].map((bytes) => formatValue(finding, bytes));
  const most = mostStreams(machine, wish, isMemory);
  const isTooMany = streams > 0 && most > 0;
  const what = streams > 0 ? `--streams ${streams}` : `--workers ${workers}`;
  const fits = isTooMany ? `, enough for about ${formatNoun(most, 'stream')}` : '';
  const fewer = isTooMany ? `--streams ${most} or fewer` : 'fewer --workers';
  return `${what} needs ${needed} of memory with the ${transport} transport, but ${finding.name} is ${free}${fits}: use ${fewer}, or --force to start anyway`;
}

/** @param {Finding} finding */
const isMemory = ({ name }) => MEMORY_ROWS.includes(name);

/**
 * The findings in one line, with what to do about them.
 * @param {Finding[]} findings
 * @param {number} streams that they were computed for
 * @param {{ hasTune?: boolean }} [how] whether scripts/tune.js is there; the installed package does not have it
 * @returns {string}
 */
export function verdictLine(findings, streams, { hasTune = true } = {}) {
  const text = verdictText(findings, streams);
  const [worst] = unmet(findings);
  if (!worst) return text;
  const { file, line } = worst.fix;
  const byHand = file === '' ? line : `set ${line.replace('\n', ' and ')} in ${file}`;
  return `${text}: ${hasTune ? `run node scripts/tune.js check --streams ${streams}` : byHand}`;
}

/** The worst finding, and how many more there are. @param {Finding[]} findings @param {number} streams @returns {string} */
export function verdictText(findings, streams) {
  const [worst, ...others] = unmet(findings);
  if (!worst) return `limits: fine for ${formatNoun(streams, 'stream')}`;
  const { now, needed } = { now: plainValue(worst, worst.now), needed: plainValue(worst, worst.needed) };
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return `limits: ${worst.name} is ${now}, ${worst.isForbidding ? 'must' : 'should'} be ${needed}${more}`;
}

/** @param {Finding[]} findings @returns {Finding[]} those that forbid the run first */
function unmet(findings) {
  const found = findings.filter(({ isMet }) => !isMet);
  return found.sort((a, b) => Number(b.isForbidding) - Number(a.isForbidding));
}

/** A number as it is written in its file. @param {Finding} finding @param {number | string} value @returns {string} */
function plainValue({ unit }, value) {
  return unit === 'count' ? String(value) : formatValue({ unit }, value);
}

/** A number for people. @param {Pick<Finding, 'unit'>} finding @param {number | string} value @returns {string} */
export function formatValue({ unit }, value) {
  if (typeof value === 'string') return value;
  if (unit === 'bytes') return formatBytes(value);
  return unit === 'percent' ? `${formatCount(value)} %` : formatCount(value);
}
