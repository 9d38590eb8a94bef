/*
 * The findings as text: a table, what to change, and what would fit. Pure; at most 100 columns wide.
 */
import { formatCount, formatNoun } from '../../lib/format.js';
import { formatValue, LIMITS_FILE, SYSCTL_FILE } from '../../limits/index.js';

const WIDTH = 100;
const INDENT = '         ';

/** @typedef {import('../../limits/finding.js').Finding} Finding */
/** @typedef {import('../../limits/needs.js').Wish} Wish */
/** @typedef {import('../../limits/plan.js').Plan} Plan */

/**
 * @typedef {object} Verdict
 * @property {Wish} wish
 * @property {Finding[]} findings
 * @property {Plan | null} plan null if no plan can hold the streams
 * @property {Fit} fit what the machine can hold without changes
 * @property {string[]} hidden sysctls that can't be read here
 * @property {boolean} isAsked whether the number of streams was given
 * @property {string} note describes the machine if it is not this one; '' for this one
 *
 * @typedef {object} Fit
 * @property {number} streams the most that no limit forbids
 * @property {number} byDescriptors the most that the descriptor limit allows
 * @property {number} byMemory the most that fit into memory
 * @property {Plan | null} plan for the most streams
 * @property {string[]} barriers names of the limits that forbid more
 */

/** @param {Verdict} verdict @param {string} line the one that the server prints at its start @returns {string} */
export function renderVerdict(verdict, line) {
  const { findings, wish, hidden } = verdict;
  const order = (/** @type {Finding} */ { isMet, isForbidding }) => (isMet ? 0 : isForbidding ? 2 : 1);
  const sorted = findings.toSorted((a, b) => order(a) - order(b));
  const seen = hidden.length > 0 ? [...wrap(`Not readable here: ${hidden.join(', ')}`, ''), ''] : [];
  return [
    ...wrap(titleOf(verdict), ''),
    '',
    row('', 'limit', 'now', 'needed'),
    ...sorted.flatMap(renderFinding),
    '',
    ...seen,
    ...renderFixes(findings, wish),
    ...renderPlan(verdict),
    ...wrap(line, ''),
  ].join('\n');
}

/** @param {Verdict} verdict */
function titleOf({ wish, isAsked, note }) {
  const { streams, transport, pingIntervalMs, openRate, isFleetHere } = wish;
  const many = `${formatNoun(streams, 'stream')}${isAsked ? '' : ' (the default of the server)'}`;
  const fleet = isFleetHere ? ', clients included' : '';
  return `Limits for ${many} on ${note || 'this machine'}${fleet}: ${transport} transport, a ping every ${pingIntervalMs / 1000} s, ${formatCount(openRate)} opened per second`;
}

/** @param {string} state @param {string} name @param {string} now @param {string} needed */
const row = (state, name, now, needed) =>
  `${state.padEnd(INDENT.length)}${name.padEnd(38)}${now.padStart(18)}${needed.padStart(18)}`;

/** @param {Finding} finding @returns {string[]} */
function renderFinding(finding) {
  const { name, now, needed, why, isMet, isForbidding } = finding;
  const state = isMet ? 'ok' : isForbidding ? 'FORBIDS' : 'advice';
  const line = row(state, name, formatValue(finding, now), formatValue(finding, needed));
  return [line, ...wrap(why, INDENT)];
}

/** @param {string} text @param {string} indent @returns {string[]} */
function wrap(text, indent) {
  const lines = [''];
  for (const word of text.split(' ')) {
    const last = lines[lines.length - 1];
    if (last !== '' && indent.length + last.length + 1 + word.length > WIDTH) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.map((line) => indent + line);
}

/** @param {Finding[]} findings @param {Wish} wish @returns {string[]} */
function renderFixes(findings, wish) {
  const unmet = findings.filter(({ isMet }) => !isMet);
  if (unmet.length === 0) return [];
  const files = [SYSCTL_FILE, LIMITS_FILE].filter((file) => unmet.some(({ fix }) => fix.file === file));
  const byHand = unmet.filter(({ fix }) => fix.file === '');
  const how = `As root, 'node scripts/tune.js apply --streams ${wish.streams}' with the same options writes and loads these; --dry-run only shows it, revert undoes it.`;
  return [
    'To change',
    ...files.flatMap((file) => [`  ${file}`, ...linesFor(unmet, file).map((line) => `    ${line}`)]),
    ...(files.length > 0 ? wrap(how, '  ') : []),
    ...byHand.flatMap(({ name, fix }) => wrap(`${name}: ${fix.line}`, '  ')),
    '',
  ];
}

/** @param {Finding[]} findings @param {string} file @returns {string[]} */
function linesFor(findings, file) {
  const lines = findings.filter(({ fix }) => fix.file === file).flatMap(({ fix }) => fix.line.split('\n'));
  if (file !== LIMITS_FILE) return lines;
  const nofile = lines[0].split(' ').at(-1);
  const unit = `for a systemd service: LimitNOFILE=${nofile} below [Service] in`;
  return [...lines, unit, '  /etc/systemd/system/NAME.service.d/90-holdfast.conf'];
}

/** @param {Verdict} verdict @returns {string[]} */
function renderPlan({ plan, fit, findings }) {
  const planned = plan ? [`Plan: ${planText(plan)}`] : [];
  const then = fit.barriers.length > 0 ? `; the limit is ${fit.barriers.join(' and ')}` : '';
  const room = `Without changes, this machine can hold up to ${formatNoun(fit.streams, 'stream')}${then}.`;
  const forbidden = findings.some(({ isForbidding }) => isForbidding);
  const instead =
    forbidden && fit.plan ? wrap(`What would fit: --streams ${fit.streams}: ${planText(fit.plan)}.`, '') : [];
  const parts = `Descriptors are enough for ${formatNoun(fit.byDescriptors, 'stream')}, memory for ${formatCount(fit.byMemory)}.`;
  return [...planned, ...wrap(room, ''), ...wrap(parts, ''), ...instead, ''];
}

/** @param {Plan} plan */
function planText({ workers, shards, capacity }) {
  const parts = shards > 1 ? ` of ${shards} shards, each shard` : ', each';
  return `${formatNoun(workers, 'worker')}${parts} with room for ${formatNoun(capacity, 'stream')}`;
}
