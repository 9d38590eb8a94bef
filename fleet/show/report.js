/*
 * What came of a run: as JSON for scripts, and as text. Pure.
 */
import { formatBytes, formatCount, formatMs } from '../../lib/format.js';
import { printable } from '../ask.js';
import { sumOf } from '../drone/causes.js';
import { causesText, dronesText } from './table.js';

/**
 * What is known at the end of a run.
 * @typedef {object} Facts
 * @property {Date} startedAt
 * @property {number} asked
 * @property {string} target 'host:ports'
 * @property {string} place
 * @property {string} dialer
 * @property {import('../crew.js').Roll} roll
 * @property {{ elapsedMs: number, opened: number, isWhole: boolean }} ramp isWhole: all were open at once, at its end
 * @property {number} withinMs that the ramp could take
 * @property {number} heldMs
 * @property {{ sent: number, failed: number, problem: string } | null} publications
 * @property {boolean} isInterrupted
 * @property {string} machine
 */

/** @typedef {ReturnType<typeof reportOf>} Report */

/** @type {[string, string][]} */
const ROWS = [
  ['connectMs', 'connect'],
  ['firstByteMs', 'first byte'],
  ['latenessMs', 'ping lateness'],
  ['deliveryMs', 'delivery'],
];
const LABEL = 15;
const FIGURE = 12;

/** @param {Facts} facts */
export function reportOf(facts) {
  const { roll, ramp, asked, publications } = facts;
  const { counts, percentiles, samples } = roll;
  const failed = sumOf(counts.failed);
  const lost = sumOf(counts.lost);
  const problems = problemsOf(facts, failed, lost);
  return {
    isOk: problems.length === 0 && !facts.isInterrupted,
    isInterrupted: facts.isInterrupted,
    problems,
    startedAt: facts.startedAt.toISOString(),
    target: facts.target,
    place: facts.place,
    dialer: facts.dialer,
    drones: roll.drones,
    dronesDied: roll.died,
    dronesLate: roll.late,
    asked,
    opened: counts.opened,
    openAtEnd: counts.open,
    failed: { total: failed, byCause: some(counts.failed) },
    lost: { total: lost, byCause: some(counts.lost) },
    // Every try beyond the one that each stream needs.
    retried: Math.max(0, counts.opened + failed + counts.inFlight - asked),
    openAllMs: ramp.isWhole ? Math.round(ramp.elapsedMs) : null,
    openedPerSecond: ramp.elapsedMs > 0 ? Math.round((ramp.opened * 1000) / ramp.elapsedMs) : 0,
    heldMs: Math.round(facts.heldMs),
    pings: counts.pings,
    overdue: counts.overdue,
    messages: counts.messages,
    bytes: counts.bytes,
    publications,
    percentiles,
    samples,
    machine: facts.machine,
  };
}

/** @param {Facts} facts @param {number} failed @param {number} lost @returns {string[]} why the exit status is 1 */
function problemsOf({ roll, ramp, asked, withinMs, isInterrupted, publications }, failed, lost) {
  const problems = [];
  if (!ramp.isWhole && !isInterrupted) {
    const open = `${formatCount(roll.counts.open)} of ${formatCount(asked)} streams`;
    problems.push(`${open} were open when the ${seconds(withinMs)} were over that --within gives`);
  }
  if (failed > 0) problems.push(`${formatCount(failed)} tries to open a stream failed`);
  if (lost > 0) problems.push(`${formatCount(lost)} streams were lost`);
  if (publications && publications.failed > 0)
    problems.push(`${formatCount(publications.failed)} publications failed: ${publications.problem}`);
  return problems;
}

/** @param {Record<string, number>} causes */
function some(causes) {
  return Object.fromEntries(Object.entries(causes).filter(([, count]) => count > 0));
}

/** @param {Report} report @returns {string} lines for a person */
export function reportText(report) {
  const { asked, target, drones, place, dialer, dronesDied, dronesLate } = report;
  const died = dronesDied > 0 ? `, ${dronesDied} died` : '';
  const late = dronesLate > 0 ? `, ${dronesLate} late at the end: of them what they said last` : '';
  const kinds = [place, dialer].filter(Boolean).join(', ');
  const lines = [
    `${formatCount(asked)} streams to ${target}, ${dronesText(drones)} (${kinds})${died}${late}`,
    '',
    ...countLines(report),
    '',
    ...percentileLines(report),
    ...hints(report),
    ...sampleLines(report),
    '',
    verdict(report),
    report.machine,
  ];
  return `${lines.join('\n')}\n`;
}

/** @param {Report} report */
function countLines(report) {
  const { asked, opened, openAtEnd, failed, lost, retried, pings, messages, bytes, overdue } = report;
  const row = (/** @type {string} */ label, /** @type {number} */ n, note = '') =>
    `${label.padEnd(LABEL)}${formatCount(n).padStart(FIGURE)}${note ? `  ${note}` : ''}`;
  return [
    row('asked', asked),
    row('opened', opened, `${formatCount(openAtEnd)} open at the end`),
    row('failed', failed.total, causesText(failed.byCause)),
    row('lost', lost.total, causesText(lost.byCause)),
    row('retried', retried),
    timeLine(report),
    `${'held'.padEnd(LABEL)}${seconds(report.heldMs).padStart(FIGURE)}`,
    row('pings', pings, overdue > 0 ? `${formatCount(overdue)} streams wait for one that is overdue` : ''),
    row('messages', messages, publishedText(report)),
    `${'bytes'.padEnd(LABEL)}${formatBytes(bytes).padStart(FIGURE)}`,
  ];
}

/** @param {Report} report */
function timeLine({ openAllMs, openedPerSecond }) {
  const time = openAllMs === null ? '-' : seconds(openAllMs);
  const rate = `${formatCount(openedPerSecond)} opened a second`;
  return `${'all open after'.padEnd(LABEL)}${time.padStart(FIGURE)}  ${rate}`;
}

/** @param {Report} report */
function publishedText({ publications, openAtEnd }) {
  if (!publications) return '';
  const { sent } = publications;
  return `${formatCount(sent)} publications; to ${formatCount(openAtEnd)} streams that is ${formatCount(sent * openAtEnd)}`;
}

/** @param {Report} report */
function percentileLines({ percentiles }) {
  const names = /** @type {const} */ (['p50', 'p90', 'p99', 'max']);
  const heads = ['count', ...names.map((name) => `${name} ms`)].map((head) => head.padStart(FIGURE));
  const rows = ROWS.map(([key, label]) => {
    const found = percentiles[key];
    const figures = names.map((name) => (found.count > 0 ? formatMs(found[name]) : '-'));
    return [formatCount(found.count), ...figures]
      .map((text) => text.padStart(FIGURE))
      .join('')
      .replace(/^/, label.padEnd(LABEL));
  });
  return [' '.repeat(LABEL) + heads.join(''), ...rows];
}

/** @param {Report} report @returns {string[]} why a figure is missing, and what to do */
function hints({ opened, pings, percentiles, publications, messages }) {
  const lines = [];
  if (opened > 0 && percentiles.latenessMs.count === 0) {
    const why =
      pings === 0
        ? 'no ping came: hold for longer than two intervals of the server'
        : 'the server did not say its interval, or no stream was pinged twice: give --interval MS here or --accept-load to the server, and hold for two intervals';
    lines.push(`ping lateness is not known: ${why}`);
  }
  if (publications && messages > 0 && percentiles.deliveryMs.count === 0)
    lines.push('delivery is not known: no message carried its send time');
  return lines.length > 0 ? ['', ...lines] : [];
}

/** @param {Report} report */
function sampleLines({ samples }) {
  if (samples.length === 0) return [];
  const shown = new Set(samples.map(({ cause, text }) => `  ${cause}: ${printable(JSON.stringify(text))}`));
  return ['', 'what was not understood, the last of it:', ...shown];
}

/** @param {Report} report */
function verdict({ isOk, isInterrupted, problems }) {
  if (isOk) return 'ok: none failed, none was lost';
  const parts = [...(isInterrupted ? ['interrupted'] : []), ...problems];
  return `${problems.length > 0 ? 'NOT OK' : 'ended early'}: ${parts.join('; ')}`;
}

/** @param {number} ms */
function seconds(ms) {
  return `${ms < 9950 ? (ms / 1000).toFixed(1) : formatCount(ms / 1000)} s`;
}
