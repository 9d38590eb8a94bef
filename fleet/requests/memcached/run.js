/*
 * `node fleet/cli.js requests memcached://…`: loads a cache from the native generator, and reports as ab does.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { machineLine } from '../../../lib/machine.js';
import { abortOnSignals } from '../../signals.js';
import { durationOf } from '../options.js';
import { showProgress } from '../watch.js';
import { addressOf } from './address.js';
import { buildGenerator, generate } from './generator.js';
import { reportOf, reportText } from './report.js';
import { softwareOf } from './software.js';

/** Of values on their way at the same time. */
const MOST_GIGABYTES = 4;

/**
 * @typedef {object} Values
 * @property {number} concurrency
 * @property {number | ''} requests '' if it isn't given, as with the seconds
 * @property {number | ''} seconds
 * @property {number} timeout seconds
 * @property {'get' | 'set' | 'mixed'} op
 * @property {number} pipeline
 * @property {number} keys
 * @property {number} valueSize
 * @property {boolean} json
 * @property {boolean} quiet
 */

/**
 * Sets the exit status: 1 if a request failed or its answer was not right, 130 after Ctrl-C.
 * @param {string} url @param {Values} values
 * @throws {import('../../../lib/errors.js').HoldfastError} BAD_OPTION, NO_HOST, NOT_LOCAL, NO_GENERATOR
 */
export async function runCache(url, values) {
  checkSize(values);
  const address = await addressOf(url);
  const { signal, status } = abortOnSignals();
  const say = values.quiet
    ? undefined
    : (/** @type {string} */ line) => process.stderr.write(`requests: ${line}\n`);
  await buildGenerator({ say, signal });
  const server = await softwareOf(address);
  const job = jobOf(values, address);
  const progress = values.quiet ? null : showProgress(job.requests);
  const counted = await generate(job, { onProgress: progress?.show, signal });
  progress?.close();
  const report = reportOf(job, counted, server, machineLine());
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : reportText(report, address));
  process.exitCode = status() || (report.isOk ? 0 : 1);
}

/** Batches are put together in memory, and so are their answers. @param {Values} values @throws {HoldfastError} BAD_OPTION */
function checkSize({ concurrency, pipeline, valueSize }) {
  const gigabytes = (concurrency * pipeline * valueSize) / 2 ** 30;
  if (gigabytes <= MOST_GIGABYTES) return;
  const given = `got values of ${gigabytes.toFixed(1)} GB at once (--concurrency x --pipeline x --value-size)`;
  throw new HoldfastError('BAD_OPTION', `requests ${given}: expected at most ${MOST_GIGABYTES} GB`);
}

/** @param {Values} values @param {import('./address.js').Address} address @returns {import('./generator.js').Job} */
function jobOf({ concurrency, requests, seconds, timeout, op, pipeline, keys, valueSize }, address) {
  const limit = requests === '' ? Number.POSITIVE_INFINITY : requests;
  return {
    address,
    op,
    connections: Math.min(concurrency, limit),
    requests: limit,
    durationMs: durationOf(requests, seconds),
    timeoutMs: timeout * 1000,
    pipeline,
    keys,
    valueSize,
  };
}
