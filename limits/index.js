/*
 * What a machine allows, set beside what streams need. Pure: a machine (limits/kernel.js) and a wish become findings.
 * scripts/tune.js shows them as a table, the server as one line.
 */
import { formatBytes, formatCount } from '../lib/format.js';
import { DESCRIPTOR_ROWS, HOST_ROWS } from './host.js';
import { needsOf, planHere } from './needs.js';
import { NETWORK_ROWS } from './network.js';

export { LIMITS_FILE, SYSCTL_FILE } from './finding.js';

const ROWS = [...DESCRIPTOR_ROWS, ...NETWORK_ROWS, ...HOST_ROWS];

/** As many as --streams takes. */
const MOST_STREAMS = 100_000_000;

/** @typedef {import('./kernel.js').Machine} Machine */
/** @typedef {import('./needs.js').Wish} Wish */
/** @typedef {import('./finding.js').Finding} Finding */

/**
 * @param {Machine} machine
 * @param {Wish} wish
 * @returns {Finding[]} limits that are not here, or can't be seen, are left out
 */
export function findLimits(machine, wish) {
  const needs = needsOf(machine, wish);
  return ROWS.map((row) => row(machine, needs)).filter((finding) => finding !== null);
}

/**
 * How many streams the machine takes as it is: the most that nothing forbids.
 * @param {Machine} machine
 * @param {Wish} wish its streams don't matter
 * @param {(finding: Finding) => boolean} [counts] which limits are looked at; all of them
 * @returns {number} rounded down to three digits, for much of it is an estimate
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
 * What a server that is asked for no number of streams holds here: what its plan has room for, or less where
 * memory, or another thing that no file changes, forbids so many.
 * @param {Machine} machine
 * @param {Wish} wish its streams don't matter
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
 * The findings in one line, for the start of the server, with what to do about them.
 * @param {Finding[]} findings
 * @param {number} streams that they are for
 * @returns {string}
 */
export function verdictLine(findings, streams) {
  const text = verdictText(findings, streams);
  const isFine = findings.every(({ isMet }) => isMet);
  return isFine ? text : `${text}: node scripts/tune.js check --streams ${streams}`;
}

/** The worst of the findings, and how many more there are. @param {Finding[]} findings @param {number} streams @returns {string} */
export function verdictText(findings, streams) {
  const [worst, ...others] = findings
    .filter(({ isMet }) => !isMet)
    .sort((a, b) => Number(b.isForbidding) - Number(a.isForbidding));
  if (!worst) return `limits: fine for ${formatCount(streams)} streams`;
  const { now, needed } = { now: plainValue(worst, worst.now), needed: plainValue(worst, worst.needed) };
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return `limits: ${worst.name} is ${now}, ${needed} ${worst.isForbidding ? 'needed' : 'wanted'}${more}`;
}

/** As the file of it has a number. @param {Finding} finding @param {number | string} value @returns {string} */
function plainValue({ unit }, value) {
  return unit === 'count' ? String(value) : formatValue({ unit }, value);
}

/** As a person reads it. @param {Pick<Finding, 'unit'>} finding @param {number | string} value @returns {string} */
export function formatValue({ unit }, value) {
  if (typeof value === 'string') return value;
  if (unit === 'bytes') return formatBytes(value);
  return unit === 'percent' ? `${formatCount(value)} %` : formatCount(value);
}
