/*
 * `node fleet/cli.js requests URL`: loads a route that answers requests, or a cache, and reports as Apache ab does.
 */
import { machineLine } from '../../lib/machine.js';
import { abortOnSignals } from '../signals.js';
import { reportOf, reportText } from './ab.js';
import { joinHeaders } from './headers.js';
import { Load } from './load.js';
import { runCache } from './memcached/run.js';
import { durationOf, helpText, readValues } from './options.js';
import { targetOf } from './target.js';
import { watch } from './watch.js';

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
  const { values: read, url, isCache, help } = readValues(args);
  if (help) return void process.stdout.write(helpText());
  if (isCache) return runCache(url, /** @type {any} */ (read));
  const values = /** @type {Values} */ (/** @type {unknown} */ (read));
  const target = await targetOf(url);
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
  const { concurrency, requests, seconds, rps, method, headers, body, timeout } = values;
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
    durationMs: durationOf(requests, seconds),
    rps: rps || 0,
    timeoutMs: timeout * 1000,
  };
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
