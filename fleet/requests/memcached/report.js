/*
 * What `requests` measured at a cache, in the shape of ab's report. Pure.
 */
import { formatCount, printable } from '../../../lib/format.js';
import { sumOf } from '../../drone/causes.js';
import { failedLines, KILOBYTE, line, percentileLines } from '../ab.js';

/** The client was the limit if it used so much of a core. */
const LIMIT = 0.9;
const OPERATIONS = { get: 'get', set: 'set', mixed: 'mixed (nine gets to one set)' };

/** @typedef {import('./generator.js').Counted} Counted */
/** @typedef {import('./generator.js').Job} Job */

/**
 * @typedef {object} Asked
 * @property {string} url
 * @property {string} op
 * @property {number} concurrency
 * @property {number | null} requests null for no limit
 * @property {number | null} durationMs null for no limit
 * @property {number} timeoutMs
 * @property {number} pipeline
 * @property {number} keys
 * @property {number} valueSize
 *
 * @typedef {object} Derived
 * @property {string} server what it says it is; '' if it doesn't
 * @property {number} requestsPerSecond answered
 * @property {number} timePerRequestMs the mean: as in ab, the time per connection
 * @property {number} timePerRequestAcrossMs between two answers, on any connection
 * @property {number} bytesPerSecond
 * @property {number} clientCores how much of a core the client used
 * @property {number} clientUs CPU of the client per request
 * @property {boolean} isClientLimit whether the client was the limit
 *
 * @typedef {{ asked: Asked, result: Counted & Derived, isOk: boolean, notes: string[], machine: string }} CacheReport
 */

/** @param {Job} job @param {Counted} counted @param {string} server @param {string} machine @returns {CacheReport} */
export function reportOf(job, counted, server, machine) {
  const { phase, complete, failed, misses, wrong, errors } = counted;
  const result = { ...counted, server, ...derived(job, counted) };
  return {
    asked: askedOf(job),
    result,
    isOk: phase === 'requests' && complete > 0 && sumOf(failed) + misses + wrong + errors === 0,
    notes: notesOf(job, result),
    machine,
  };
}

/** @param {Job} job @returns {Asked} */
function askedOf({ address, op, connections, requests, durationMs, timeoutMs, pipeline, keys, valueSize }) {
  const limit = (/** @type {number} */ value) => (Number.isFinite(value) ? value : null);
  return {
    url: address.shown,
    op,
    concurrency: connections,
    requests: limit(requests),
    durationMs: limit(durationMs),
    timeoutMs,
    pipeline,
    keys,
    valueSize,
  };
}

/** @param {Job} job @param {Counted} counted @returns {Omit<Derived, 'server'>} zeroes if nothing was answered */
function derived({ connections, pipeline }, { elapsedMs, complete, bytes, cpuMs }) {
  const isEmpty = complete === 0 || elapsedMs <= 0;
  const acrossMs = isEmpty ? 0 : elapsedMs / complete;
  const clientCores = isEmpty ? 0 : cpuMs / elapsedMs;
  return {
    requestsPerSecond: isEmpty ? 0 : 1000 / acrossMs,
    timePerRequestMs: acrossMs * connections * pipeline,
    timePerRequestAcrossMs: acrossMs,
    bytesPerSecond: isEmpty ? 0 : (bytes * 1000) / elapsedMs,
    clientCores,
    clientUs: isEmpty ? 0 : (cpuMs * 1000) / complete,
    isClientLimit: clientCores >= LIMIT,
  };
}

/** @param {Job} job @param {Counted & Derived} result @returns {string[]} what the figures alone don't tell */
function notesOf({ keys }, result) {
  const { phase, end, inFlight, misses, wrong, errors, lastError, failed, isClientLimit, clientCores } =
    result;
  const count = formatCount;
  const notes = [];
  if (phase === 'fill')
    notes.push(
      `Nothing was measured: the figures are those of setting the ${count(keys)} keys, which failed.`,
    );
  else notes.push('Latency counts from when a request, or the batch it belongs to, was sent.');
  if (isClientLimit)
    notes.push(
      `The client was the limit: it used ${(clientCores * 100).toFixed(0)} % of a core, so the server may be able to answer more.`,
    );
  if (end === 'stopped') notes.push('The run was stopped; the figures cover the time until then.');
  if (end === 'unanswered')
    notes.push(`The run ended early: none of the first ${count(sumOf(failed))} requests was answered.`);
  else if (inFlight > 0)
    notes.push(
      `${count(inFlight)} requests were in flight at the end: they are neither complete nor failed.`,
    );
  if (misses > 0)
    notes.push(
      `${count(misses)} gets found nothing although every key had been set: the server has too little memory for --keys and --value-size, or forgets.`,
    );
  if (wrong > 0) notes.push(`${count(wrong)} answers were wrong: another key, length or value.`);
  if (errors > 0) notes.push(`${count(errors)} answers were errors.`);
  if (lastError) notes.push(`The last error: ${lastError}`);
  return notes;
}

/** @param {CacheReport} report @param {import('./address.js').Address} address @returns {string} */
export function reportText({ asked, result, notes, machine }, { host, port, path, protocol }) {
  const where = path
    ? [line('Server Socket', path)]
    : [line('Server Hostname', host), line('Server Port', String(port))];
  const lines = [
    line('Server Software', result.server),
    ...where,
    '',
    line('Protocol', protocol),
    line('Operation', OPERATIONS[/** @type {keyof typeof OPERATIONS} */ (asked.op)]),
    line('Keys', String(asked.keys)),
    line('Value Length', `${asked.valueSize} bytes`),
    '',
    line('Concurrency Level', String(asked.concurrency)),
    ...(asked.pipeline > 1 ? [line('Pipelining', `${asked.pipeline} requests in a batch`)] : []),
    line('Time taken for tests', `${(result.elapsedMs / 1000).toFixed(3)} seconds`),
    line('Complete requests', String(result.complete)),
    ...failedLines(result.failed),
    ...answerLines(asked.op, result),
    line('Total transferred', `${result.bytes} bytes`),
    line('Requests per second', `${result.requestsPerSecond.toFixed(2)} [#/sec] (mean)`),
    line('Time per request', `${result.timePerRequestMs.toFixed(3)} [ms] (mean)`),
    line(
      'Time per request',
      `${result.timePerRequestAcrossMs.toFixed(6)} [ms] (mean, across all concurrent requests)`,
    ),
    line('Transfer rate', `${(result.bytesPerSecond / KILOBYTE).toFixed(2)} [Kbytes/sec] received`),
    line(
      'Client CPU',
      `${(result.clientCores * 100).toFixed(1)} % of a core, ${result.clientUs.toFixed(2)} us per request`,
    ),
    '',
    ...percentileLines(result.latencyMs),
    ...notes,
    `Machine: ${machine}`,
  ];
  return `${lines.map(printable).join('\n')}\n`;
}

/** @param {string} op @param {Counted} counted @returns {string[]} */
function answerLines(op, { phase, hits, misses, stored, wrong, errors }) {
  const hasGets = op !== 'set' && phase === 'requests';
  return [
    ...(hasGets ? [line('Hits', String(hits)), line('Misses', String(misses))] : []),
    ...(op === 'get' && phase === 'requests' ? [] : [line('Stored', String(stored))]),
    line('Wrong answers', String(wrong)),
    line('Error answers', String(errors)),
  ];
}
