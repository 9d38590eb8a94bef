/*
 * What `requests` measured, in the shape of the report of Apache ab (and of the npm tool loadtest). Pure.
 */
import { formatCount, printable } from '../../lib/format.js';
import { sumOf } from '../drone/causes.js';

/** ab's kilobyte. */
export const KILOBYTE = 1024;
/** The column where the figures begin. */
const COLUMN = 24;

/**
 * @typedef {object} Asked
 * @property {string} url without user and password
 * @property {string} method
 * @property {number} concurrency
 * @property {number | null} requests null for no limit
 * @property {number | null} durationMs null for no limit
 * @property {number | null} rps null for as fast as possible
 * @property {number} timeoutMs
 */

/**
 * @typedef {object} Rates
 * @property {number} requestsPerSecond answered
 * @property {number} timePerRequestMs the mean: as in ab, the time per connection; with a rate the mean of `latencyMs`
 * @property {number} timePerRequestAcrossMs between two answers, on any connection
 * @property {number} bytesPerSecond
 */

/** @typedef {import('./tally.js').Measured} Measured */
/** @typedef {{ asked: Asked, result: Measured & Rates, latencyFrom: 'due' | 'sent', isOk: boolean, notes: string[], machine: string }} Report */

/**
 * @param {Asked} asked @param {Measured} measured @param {string} machine from lib/machine.js
 * @returns {Report}
 */
export function reportOf(asked, measured, machine) {
  const { complete, statuses, failed } = measured;
  const bad = Object.keys(statuses).filter((status) => !/^[23]/.test(status));
  return {
    asked,
    result: { ...measured, ...ratesOf(asked, measured) },
    latencyFrom: asked.rps === null ? 'sent' : 'due',
    isOk: complete > 0 && sumOf(failed) === 0 && bad.length === 0,
    notes: notesOf(asked, measured),
    machine,
  };
}

/** @param {Asked} asked @param {Measured} measured @returns {Rates} zeroes if nothing was answered */
function ratesOf({ concurrency, rps }, { elapsedMs, complete, bytes, latencyMs }) {
  if (complete === 0 || elapsedMs <= 0) {
    return { requestsPerSecond: 0, timePerRequestMs: 0, timePerRequestAcrossMs: 0, bytesPerSecond: 0 };
  }
  const acrossMs = elapsedMs / complete;
  return {
    requestsPerSecond: 1000 / acrossMs,
    // With a rate, connections also wait for their turn, which is not time spent on a request.
    timePerRequestMs: rps === null ? acrossMs * concurrency : latencyMs.mean,
    timePerRequestAcrossMs: acrossMs,
    bytesPerSecond: (bytes * 1000) / elapsedMs,
  };
}

/** @param {Asked} asked @param {Measured} measured @returns {string[]} what the figures alone don't tell */
function notesOf(asked, measured) {
  const { end, endless, complete, inFlight, lastError, unsent } = measured;
  const count = formatCount;
  const notes = [latencyNote(asked, measured)];
  if (end === 'stopped') notes.push('The run was stopped; the figures cover the time until then.');
  if (end === 'unanswered')
    notes.push(
      `The run ended early: none of the first ${count(sumOf(measured.failed))} requests was answered.`,
    );
  if (unsent > 0)
    notes.push(
      `The rate was not reached: ${count(unsent)} requests were due at the end but had no free connection; the percentiles leave them out. Use more connections (-c) or a lower rate.`,
    );
  if (end !== 'unanswered' && inFlight > 0)
    notes.push(
      `${count(inFlight)} requests were in flight at the end: they are neither complete nor failed.`,
    );
  if (endless > 0)
    notes.push(
      `${count(endless)} answers began but did not end within ${asked.timeoutMs / 1000} s. ${STREAMS}`,
    );
  else if (complete === 0 && inFlight > 0 && end !== 'unanswered')
    notes.push(`No answer was completed. ${STREAMS}`);
  if (lastError) notes.push(`The last connection error: ${lastError}`);
  return notes;
}

const STREAMS =
  'This command is for routes that answer and finish; for streams that stay open use `node fleet/cli.js run`.';

/** @param {Asked} asked @param {Measured} measured */
function latencyNote({ rps }, { serviceMs }) {
  if (rps === null)
    return 'Latency counts from when a request was sent; each connection sends its next request after the answer to the last.';
  const [half, most] = [serviceMs.percentiles[50], serviceMs.percentiles[99]].map((ms) => ms.toFixed(3));
  return `Latency counts from when a request was due by the rate, even if it was sent later (corrected for coordinated omission); counted from when it was sent: 50% ${half} ms, 99% ${most} ms.`;
}

/** @param {Report} report @returns {string} */
export function reportText({ asked, result, latencyFrom, notes, machine }) {
  const { hostname, port, protocol, pathname, search } = new URL(asked.url);
  const mean = latencyFrom === 'due' ? 'mean, from when it was due' : 'mean';
  const lines = [
    line('Server Software', result.server),
    line('Server Hostname', hostname),
    line('Server Port', port || (protocol === 'https:' ? '443' : '80')),
    '',
    line('Document Path', `${pathname}${search}`),
    line('Document Length', documentLength(result)),
    '',
    line('Concurrency Level', String(asked.concurrency)),
    ...(asked.rps === null ? [] : [line('Requested rate', `${asked.rps} [#/sec]`)]),
    line('Time taken for tests', `${(result.elapsedMs / 1000).toFixed(3)} seconds`),
    line('Complete requests', String(result.complete)),
    ...failedLines(result.failed),
    ...statusLines(result.statuses),
    line('Total transferred', `${result.bytes} bytes`),
    line('HTML transferred', `${result.bodyBytes} bytes`),
    line('Requests per second', `${result.requestsPerSecond.toFixed(2)} [#/sec] (mean)`),
    line('Time per request', `${result.timePerRequestMs.toFixed(3)} [ms] (${mean})`),
    line(
      'Time per request',
      `${result.timePerRequestAcrossMs.toFixed(3)} [ms] (mean, across all concurrent requests)`,
    ),
    line('Transfer rate', `${(result.bytesPerSecond / KILOBYTE).toFixed(2)} [Kbytes/sec] received`),
    '',
    ...percentileLines(result.latencyMs),
    ...notes,
    `Machine: ${machine}`,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

/** @param {string} name @param {string} value */
export function line(name, value) {
  return `${`${name}:`.padEnd(COLUMN)}${value}`.trimEnd();
}

/** @param {Measured} measured */
function documentLength({ documentBytes, lengthsVary }) {
  if (documentBytes === null) return 'unknown';
  return `${documentBytes} bytes${lengthsVary ? ' (the first; others differ)' : ''}`;
}

/** @param {Record<string, number>} failed @returns {string[]} */
export function failedLines(failed) {
  const kinds = Object.entries(failed).filter(([, count]) => count > 0);
  const all = line('Failed requests', String(sumOf(failed)));
  return kinds.length === 0 ? [all] : [all, `   (${listed(kinds)})`];
}

/** @param {Record<string, number>} statuses @returns {string[]} as in ab, only if there are some */
function statusLines(statuses) {
  const others = Object.entries(statuses).filter(([status]) => !status.startsWith('2'));
  if (others.length === 0) return [];
  const count = others.reduce((sum, [, one]) => sum + one, 0);
  return [line('Non-2xx responses', String(count)), `   (${listed(others)})`];
}

/** @param {[string, number][]} counts */
function listed(counts) {
  return counts.map(([name, count]) => `${name}: ${count}`).join(', ');
}

/** @param {import('./tally.js').Latency} latency @returns {string[]} none if nothing was answered */
export function percentileLines({ count, percentiles }) {
  if (count === 0) return [];
  const sorted = Object.entries(percentiles).sort(([one], [other]) => Number(one) - Number(other));
  const rows = sorted.map(([percent, ms]) => {
    const longest = percent === '100' ? ' (longest request)' : '';
    return `${percent.padStart(4)}%  ${ms.toFixed(3).padStart(10)}${longest}`;
  });
  return ['Percentage of the requests served within a certain time (ms)', ...rows, ''];
}
