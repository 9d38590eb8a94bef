/*
 * The report of a run: JSON for scripts, and text. Pure.
 */
import { formatBytes, formatCount, formatMs, formatNoun, printable } from '../../lib/format.js';
import { sumOf } from '../drone/causes.js';
import { faultsOf, outcomeLines, outcomeOf } from './publications.js';
import { causesText, dronesText } from './table.js';
import { hubLines, targetLines } from './targets.js';

/**
 * What is known at the end of a run.
 * @typedef {object} Facts
 * @property {Date} startedAt
 * @property {number} asked
 * @property {string} target 'host:ports', or several, separated by commas
 * @property {string} place
 * @property {string} dialer
 * @property {import('../crew.js').Summary} summary
 * @property {{ elapsedMs: number, opened: number, isComplete: boolean }} ramp isComplete: at its end all were open
 * @property {number} withinMs how long the ramp could take
 * @property {number} heldMs
 * @property {import('./publications.js').Published | null} publications
 * @property {boolean} [hasTopics] whether streams subscribe to topics of a hub
 * @property {boolean} [hasTls]
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
/** @type {[string, string]} */
const TLS_ROW = ['handshakeMs', 'TLS handshake'];
const LABEL = 15;
const FIGURE = 12;

/** @param {Facts} facts */
export function reportOf(facts) {
  const { summary, ramp, asked, publications, hasTopics = false } = facts;
  const { counts, percentiles, samples } = summary;
  const failed = sumOf(counts.failed);
  const lost = sumOf(counts.lost);
  const outcome = hasTopics ? outcomeOf(counts, publications) : null;
  const problems = [...problemsOf(facts, failed, lost), ...(outcome ? faultsOf(outcome) : [])];
  return {
    isOk: problems.length === 0 && !facts.isInterrupted,
    isInterrupted: facts.isInterrupted,
    problems,
    startedAt: facts.startedAt.toISOString(),
    target: facts.target,
    place: facts.place,
    dialer: facts.dialer,
    drones: summary.drones,
    dronesDied: summary.died,
    dronesLate: summary.late,
    asked,
    opened: counts.opened,
    openAtEnd: counts.open,
    failed: { total: failed, byCause: nonZero(counts.failed) },
    lost: { total: lost, byCause: nonZero(counts.lost) },
    // Every attempt beyond the first of each stream, unless it was closed on purpose.
    retried: Math.max(0, counts.opened + failed + counts.inFlight - counts.churned - asked),
    openAllMs: ramp.isComplete ? Math.round(ramp.elapsedMs) : null,
    openedPerSecond: ramp.elapsedMs > 0 ? Math.round((ramp.opened * 1000) / ramp.elapsedMs) : 0,
    heldMs: Math.round(facts.heldMs),
    pings: counts.pings,
    overdue: counts.overdue,
    moved: counts.moved,
    tls: facts.hasTls ? { handshakes: counts.handshakes, resumed: counts.resumptions } : null,
    targets: summary.servers,
    messages: counts.messages,
    bytes: counts.bytes,
    publications,
    outcome,
    percentiles,
    samples,
    machine: facts.machine,
  };
}

/** @param {Facts} facts @param {number} failed @param {number} lost @returns {string[]} why the exit status is 1 */
function problemsOf({ summary, ramp, asked, withinMs, isInterrupted, publications }, failed, lost) {
  const problems = [];
  if (!ramp.isComplete && !isInterrupted) {
    const open = `${formatCount(summary.counts.open)} of ${formatNoun(asked, 'stream')}`;
    problems.push(`only ${open} were open after ${seconds(withinMs)} (--within)`);
  }
  if (failed > 0) problems.push(`${formatCount(failed)} attempts to open a stream failed`);
  if (lost > 0) problems.push(`${formatNoun(lost, 'stream')} lost`);
  if (publications && publications.failed > 0)
    problems.push(`${formatNoun(publications.failed, 'publication')} failed: ${publications.problem}`);
  return problems;
}

/** @param {Record<string, number>} causes */
function nonZero(causes) {
  return Object.fromEntries(Object.entries(causes).filter(([, count]) => count > 0));
}

/** @param {Report} report @returns {string} lines for a person */
export function reportText(report) {
  const { asked, target, drones, place, dialer, dronesDied, dronesLate } = report;
  const died = dronesDied > 0 ? `, ${dronesDied} died` : '';
  const late = dronesLate > 0 ? `, ${dronesLate} late at the end (counted with their last answer)` : '';
  const kinds = [place, dialer].filter(Boolean).join(', ');
  const lines = [
    `${formatNoun(asked, 'stream')} to ${target}, ${dronesText(drones)} (${kinds})${died}${late}`,
    '',
    ...countLines(report),
    ...targetLines(report),
    ...hubLines(report.publications),
    '',
    ...percentileLines(report),
    ...hints(report),
    ...sampleLines(report),
    '',
    verdict(report),
    report.machine,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

/** @param {Report} report */
function countLines(report) {
  const { asked, opened, openAtEnd, failed, lost, retried, pings, messages, bytes, overdue } = report;
  const { outcome, publications, tls } = report;
  const row = (/** @type {string} */ label, /** @type {number} */ n, note = '') =>
    `${label.padEnd(LABEL)}${formatCount(n).padStart(FIGURE)}${note ? `  ${note}` : ''}`;
  return [
    row('asked', asked),
    row('opened', opened, `${formatCount(openAtEnd)} open at the end`),
    row('failed', failed.total, causesText(failed.byCause)),
    row('lost', lost.total, causesText(lost.byCause)),
    row('retried', retried),
    ...(tls ? [row('handshakes', tls.handshakes, `${formatCount(tls.resumed)} with a ticket`)] : []),
    timeLine(report),
    `${'held'.padEnd(LABEL)}${seconds(report.heldMs).padStart(FIGURE)}`,
    row('pings', pings, overdue > 0 ? `${formatNoun(overdue, 'stream')} with an overdue ping` : ''),
    row('messages', messages, publishedText(report)),
    `${'bytes'.padEnd(LABEL)}${formatBytes(bytes).padStart(FIGURE)}`,
    ...(outcome ? ['', ...outcomeLines(outcome, publications, row)] : []),
  ];
}

/** @param {Report} report */
function timeLine({ openAllMs, openedPerSecond }) {
  const time = openAllMs === null ? '-' : seconds(openAllMs);
  const rate = `${formatCount(openedPerSecond)} opened per second`;
  return `${'all open after'.padEnd(LABEL)}${time.padStart(FIGURE)}  ${rate}`;
}

/** @param {Report} report */
function publishedText({ publications, openAtEnd, outcome }) {
  if (!publications || outcome) return '';
  const { sent } = publications;
  return `${formatNoun(sent, 'publication')} x ${formatNoun(openAtEnd, 'stream')} = ${formatCount(sent * openAtEnd)}`;
}

/** @param {Report} report */
function percentileLines({ percentiles, tls }) {
  const names = /** @type {const} */ (['p50', 'p90', 'p99', 'max']);
  const heads = ['count', ...names.map((name) => `${name} ms`)].map((head) => head.padStart(FIGURE));
  const rows = (tls ? [TLS_ROW, ...ROWS] : ROWS).map(([key, label]) => {
    const found = percentiles[key];
    const figures = names.map((name) => (found.count > 0 ? formatMs(found[name]) : '-'));
    return [formatCount(found.count), ...figures]
      .map((text) => text.padStart(FIGURE))
      .join('')
      .replace(/^/, label.padEnd(LABEL));
  });
  return [' '.repeat(LABEL) + heads.join(''), ...rows];
}

/** @param {Report} report @returns {string[]} why a figure is missing, and how to get it */
function hints({ opened, pings, percentiles, publications, messages }) {
  const lines = [];
  if (opened > 0 && percentiles.latenessMs.count === 0) {
    const why =
      pings === 0
        ? 'no ping came; hold for more than two ping intervals'
        : 'no stream was pinged twice, or the server does not say its ping interval; hold for more than two intervals, or give --interval MS';
    lines.push(`ping lateness is unknown: ${why}`);
  }
  if (publications && messages > 0 && percentiles.deliveryMs.count === 0)
    lines.push('delivery is unknown: no message contained its send time');
  return lines.length > 0 ? ['', ...lines] : [];
}

/** @param {Report} report */
function sampleLines({ samples }) {
  if (samples.length === 0) return [];
  const shown = new Set(samples.map(({ cause, text }) => `  ${cause}: ${JSON.stringify(text)}`));
  return ['', 'the last unexpected bytes:', ...shown];
}

/** @param {Report} report */
function verdict({ isOk, isInterrupted, problems, outcome }) {
  const checked = outcome && outcome.delivered > 0 ? ', and each publication arrived once and in order' : '';
  if (isOk) return `ok: no stream failed or was lost${checked}`;
  const parts = [...(isInterrupted ? ['interrupted'] : []), ...problems];
  return `${problems.length > 0 ? 'NOT OK' : 'ended early'}: ${parts.join('; ')}`;
}

/** @param {number} ms */
function seconds(ms) {
  return `${ms < 9950 ? (ms / 1000).toFixed(1) : formatCount(ms / 1000)} s`;
}
