/*
 * The native program that loads a cache: fleet/generator, built with cargo when it is needed for the first time or has changed.
 */
import { spawn } from 'node:child_process';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../../lib/errors.js';

const FOLDER = fileURLToPath(new URL('../../generator/', import.meta.url));
export const PROGRAM = join(FOLDER, 'target/release/holdfast-generator');

/** @typedef {import('../tally.js').Latency} Latency */
/** @typedef {import('../tally.js').End} End */

/**
 * What is to be done. Requests or durationMs may be Infinity.
 * @typedef {object} Job
 * @property {import('./address.js').Address} address
 * @property {'get' | 'set' | 'mixed'} op
 * @property {number} connections
 * @property {number} requests
 * @property {number} durationMs
 * @property {number} timeoutMs
 * @property {number} pipeline
 * @property {number} keys
 * @property {number} valueSize
 * @property {boolean} [isFilled] the keys have been set before: don't do it again
 */

/**
 * What the program prints at the end.
 * @typedef {object} Counted
 * @property {'fill' | 'requests'} phase fill: all figures are those of setting the keys, which failed
 * @property {End} end
 * @property {number} elapsedMs from the first request to the last answer, or to the end of the run
 * @property {number} cpuMs of the program itself
 * @property {number} sent
 * @property {number} complete answered, in any way
 * @property {number} inFlight neither answered nor failed when the run ended
 * @property {number} hits
 * @property {number} misses
 * @property {number} stored
 * @property {number} wrong answers with another key, length or value
 * @property {number} errors answers that say there was an error
 * @property {number} bytes of all answers
 * @property {number} sentBytes
 * @property {string} lastError the last answer that says so, or the last error of a connection; '' for none
 * @property {Record<string, number>} failed without an answer, by cause
 * @property {Latency} latencyMs from when the batch of a request was sent
 */

/** @returns {boolean} whether the program is missing or older than its sources */
function isStale() {
  const builtMs = timeOf(PROGRAM);
  const sources = readdirSync(join(FOLDER, 'src')).map((name) => join(FOLDER, 'src', name));
  return [...sources, join(FOLDER, 'Cargo.lock')].some((path) => timeOf(path) > builtMs);
}

/** @param {string} path @returns {number} ms; -1 for a missing file */
function timeOf(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? -1;
}

/**
 * Builds the program if necessary.
 * @param {{ say?: (line: string) => void, signal?: AbortSignal, isNeeded?: boolean }} [how] say: told before it takes time
 * @throws {HoldfastError} NO_GENERATOR
 */
export async function buildGenerator({ say, signal, isNeeded = isStale() } = {}) {
  if (!isNeeded) return;
  say?.('building the load generator with cargo, which takes some seconds the first time');
  const args = ['build', '--release', '--locked', '--quiet', '--target-dir', join(FOLDER, 'target')];
  const child = spawn('cargo', args, { cwd: FOLDER, stdio: ['ignore', 'ignore', 'pipe'], signal });
  let output = '';
  child.stderr?.on('data', (data) => {
    output += data;
  });
  const problem = await new Promise((resolve) => {
    child.on('error', (error) => resolve(codeText(error)));
    child.on('close', (code) => resolve(code === 0 ? '' : firstError(output)));
  });
  if (problem) throw new HoldfastError('NO_GENERATOR', `can't build the load generator: ${problem}`);
}

/** @param {Error & { code?: string }} error @returns {string} */
function codeText({ code, message }) {
  return code === 'ENOENT' ? 'cargo is not installed (see https://rustup.rs)' : message;
}

/** @param {string} output of cargo @returns {string} */
function firstError(output) {
  return output.split('\n').find((line) => /error/i.test(line)) ?? 'cargo failed';
}

/** @param {Job} job @returns {string[]} */
export function argsOf(job) {
  const { address, op, connections, requests, durationMs, timeoutMs } = job;
  const { pipeline, keys, valueSize, isFilled = false } = job;
  const host = address.host.includes(':') ? `[${address.host}]` : address.host;
  const limit = (/** @type {number} */ value) => String(Number.isFinite(value) ? value : 0);
  // biome-ignore format: a name and its value a line
  return [
    ...(address.path ? ['--unix', address.path] : ['--tcp', `${host}:${address.port}`]),
    '--protocol', address.protocol,
    '--op', op,
    '--connections', String(connections),
    '--requests', limit(requests),
    '--duration-ms', limit(durationMs),
    '--timeout-ms', String(timeoutMs),
    '--pipeline', String(pipeline),
    '--keys', String(keys),
    '--value-size', String(valueSize),
    '--is-filled', isFilled ? 'yes' : 'no',
  ];
}

/**
 * @param {Job} job
 * @param {{ command?: string[], onProgress?: (complete: number, failed: number) => void, signal?: AbortSignal }} [how] command:
 *   what precedes the program, such as taskset; the signal ends the run, and what was measured is returned
 * @returns {Promise<Counted>}
 * @throws {HoldfastError} GENERATOR if the program itself failed
 */
export async function generate(job, { command = [], onProgress, signal } = {}) {
  const [program, ...args] = [...command, PROGRAM, ...argsOf(job)];
  // In its own process group: Ctrl-C in a terminal must not end it before it has printed what it measured. It ends with us because
  // its standard input does.
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  const stop = () => child.stdin.end();
  child.stdin.on('error', () => {}); // it has ended
  if (signal?.aborted) stop();
  signal?.addEventListener('abort', stop, { once: true });
  let [output, problem] = ['', ''];
  child.stdout.on('data', (data) => {
    output += data;
  });
  createInterface(child.stderr).on('line', (line) => {
    const [, complete, failed] = /^progress (\d+) (\d+)$/.exec(line) ?? [];
    if (complete) onProgress?.(Number(complete), Number(failed));
    else problem = line;
  });
  const code = await new Promise((resolve) => {
    child.on('error', (error) => resolve(error.message));
    child.on('close', resolve);
  });
  signal?.removeEventListener('abort', stop);
  if (code === 0) return JSON.parse(output);
  throw new HoldfastError('GENERATOR', `the load generator failed: ${problem || code}`);
}
