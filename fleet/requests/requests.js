/*
 * `node fleet/cli.js requests URL`: loads a route that answers requests, and reports as Apache ab does.
 */
import { machineLine } from '../../lib/machine.js';
import {
  choice,
  FLAG,
  integer,
  option,
  optionLines,
  readOptions,
  repeated,
  text,
} from '../../lib/options.js';
import { abortOnSignals } from '../signals.js';
import { reportOf, reportText } from './ab.js';
import { HEADER, joinHeaders } from './headers.js';
import { Load } from './load.js';
import { targetOf } from './target.js';
import { watch } from './watch.js';

const DEFAULT_SECONDS = 10;
const DAY_SECONDS = 86_400;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

// biome-ignore format: a table reads best with a row a line
export const OPTIONS = [
  option('concurrency', 'concurrency', integer(1, 20_000), 10, 'connections, each with one request at a time', 'c'),
  option('requests', 'requests', integer(1, 1_000_000_000), '', 'total number of requests', 'n'),
  option('duration', 'seconds', integer(1, DAY_SECONDS), '', `seconds to run; ${DEFAULT_SECONDS} if neither this nor -n is given`, 'd'),
  option('rps', 'rps', integer(1, 1_000_000), '', 'requests per second, over all connections; without it, as fast as they are answered'),
  option('method', 'method', choice(...METHODS), '', 'method; default GET, or POST with a body', 'm'),
  option('header', 'headers', repeated(HEADER), [], 'request header; may be given more than once', 'H'),
  option('body', 'body', text('TEXT', 'a text'), '', 'request body', 'b'),
  option('timeout', 'timeout', integer(1, DAY_SECONDS), 10, 'seconds until an answer must be complete', 't'),
  option('keep-alive', 'keepAlive', FLAG, true, 'keep connections open; always on, accepted because ab has it', 'k'),
  option('json', 'json', FLAG, false, 'print the report as JSON'),
  option('quiet', 'quiet', FLAG, false, 'print no progress', 'q'),
];

/**
 * @typedef {object} Values
 * @property {number} concurrency
 * @property {number | ''} requests '' if it isn't given, as with the others
 * @property {number | ''} seconds
 * @property {number | ''} rps
 * @property {string} method
 * @property {[string, string][]} headers
 * @property {string} body
 * @property {number} timeout seconds
 * @property {boolean} json
 * @property {boolean} quiet
 */

/** @typedef {import('./load.js').Plan} Plan */
/** @typedef {import('./target.js').Target} Target */

/**
 * Sets the exit status: 1 if a request failed, 130 after Ctrl-C.
 * @param {string[]} args after the word `requests`
 * @throws {import('../../lib/errors.js').HoldfastError} BAD_OPTION, NO_HOST, NO_CONSENT
 */
export async function main(args) {
  const { values: read, words, help } = readOptions(OPTIONS, args, {}, 1);
  if (help) return void process.stdout.write(helpText());
  const values = /** @type {Values} */ (/** @type {unknown} */ (read));
  const target = await targetOf(words[0] ?? '');
  const plan = planOf(values, target);
  const load = new Load(plan);
  const watching = values.quiet ? null : watch(load);
  const { signal, status } = abortOnSignals();
  signal.addEventListener('abort', () => load.stop('stopped'));
  const measured = await load.run();
  watching?.close();
  const report = reportOf(askedOf(plan, target.shown), measured, machineLine());
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : reportText(report));
  process.exitCode = status() || (report.isOk ? 0 : 1);
}

/** @param {Values} values @param {Target} target @returns {Plan} */
function planOf(values, target) {
  const { concurrency, requests, rps, method, headers, body, timeout } = values;
  const limit = requests === '' ? Number.POSITIVE_INFINITY : requests;
  return {
    origin: target.origin,
    path: target.path,
    method: method || (body === '' ? 'GET' : 'POST'),
    headers: joinHeaders([...Object.entries(target.headers), ...headers]),
    body,
    servername: target.servername,
    connections: Math.min(concurrency, limit),
    requests: limit,
    durationMs: durationOf(values),
    rps: rps || 0,
    timeoutMs: timeout * 1000,
  };
}

/** @param {Values} values @returns {number} ms; Infinity if only the number of requests is limited */
function durationOf({ requests, seconds }) {
  if (seconds !== '') return seconds * 1000;
  return requests === '' ? DEFAULT_SECONDS * 1000 : Number.POSITIVE_INFINITY;
}

/** @param {Plan} plan @param {string} url @returns {import('./ab.js').Asked} */
function askedOf({ method, connections, requests, durationMs, rps, timeoutMs }, url) {
  const limit = (/** @type {number} */ value) => (Number.isFinite(value) ? value : null);
  return {
    url,
    method,
    concurrency: connections,
    requests: limit(requests),
    durationMs: limit(durationMs),
    rps: rps || null,
    timeoutMs,
  };
}

function helpText() {
  return `Usage: node fleet/cli.js requests URL [options]

Loads a route that answers requests, and reports as Apache ab does. It loads this machine, or a server started with
--accept-load. Certificates are not checked with https.

${optionLines(OPTIONS)}

With --rps, the latency of a request counts from when it was due, so a server that stalls is charged for every request
it delayed; without it, latency counts from when the request was sent. The exit status is 1 if a request failed: no
answer, or a status that is not 2xx or 3xx. Ctrl-C ends the run and prints what was measured.
`;
}
