/*
 * One measurement: a server, its answers, a warm-up, and wrk.
 */
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../../../lib/errors.js';
import { freePort } from '../../../lib/port.js';
import { hasEnded } from '../clean.js';
import { cpuUs, familyOf, pssBytes } from '../processes.js';
import { environment } from '../server.js';
import { expectedAnswer, MEASURED, questions } from './answers.js';
import { checkAnswers } from './ask.js';
import { errorsText, parseWrk } from './wrk.js';

const HOST = '127.0.0.1';
const START_MS = 20_000;
const POLL_MS = 20;
export const WARM_UP_S = 2;
/** Shares of the time between which the CPU of client and server is compared: wrk's start and end are not typical. */
const WINDOW = [0.2, 0.8];
/** How far the bytes that wrk read may be from those of as many answers: it prints few digits. */
const BYTES_OFF = 0.02;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('./subjects.js').Subject} Subject */
/** @typedef {'one' | 'cores'} Mode one instance pinned to a core beside the client; one per core, which the client shares */
/** @typedef {{ name: string, port: number, pids: () => number[], stop: () => Promise<void> }} Server */

/**
 * @param {import('../experiment.js').Trial} trial @param {Subject} subject @param {Mode} mode
 * @returns {Promise<import('../experiment.js').Values>}
 */
export async function measureRequests({ lab, plan, name }, subject, mode) {
  lab.status = () => `[${name}] ${plan.streams} connections`;
  const server = await startSubject(lab, subject, mode);
  await checkAnswers(subject.name, server.port, subject.closes);
  const load = (/** @type {number} */ seconds) =>
    runWrk(lab, server, mode, { connections: plan.streams, seconds });
  await load(Math.min(WARM_UP_S, plan.holdS));
  const before = cpuUs(server.pids());
  const { figures, serverPercent, clientPercent } = await load(plan.holdS);
  const us = cpuUs(server.pids()) - before;
  const memoryBytes = pssBytes(server.pids());
  await checkAnswers(subject.name, server.port, subject.closes);
  await server.stop();
  checkFigures(lab, name, subject, figures);
  const { ms, errors, perSecond, requests } = figures;
  return {
    perSecond,
    avgMs: ms.avg,
    p50Ms: ms.p50,
    p99Ms: ms.p99,
    maxMs: ms.max,
    cpuUs: us / requests,
    memoryBytes,
    serverPercent,
    clientPercent,
    errors: errors.connect + errors.read + errors.write + errors.timeout,
  };
}

/**
 * @param {Lab} lab @param {string} name @param {Subject} subject @param {import('./wrk.js').WrkFigures} figures
 * @throws {HoldfastError} ANSWER if there were wrong answers
 */
function checkFigures(lab, name, { closes }, { requests, bytes, errors }) {
  if (errors.status > 0)
    throw new HoldfastError('ANSWER', `${errors.status} answers were neither 2xx nor 3xx`);
  const { bytes: size } = expectedAnswer(questions()[0], closes);
  const own = bytes / requests;
  if (Math.abs(own / size - 1) > BYTES_OFF)
    throw new HoldfastError('ANSWER', `an answer had ${own.toFixed(1)} bytes on average, not ${size}`);
  const text = errorsText(errors);
  if (text) lab.note(`${name}: wrk reports errors: ${text}`);
}

/** @param {Lab} lab @param {Subject} subject @param {Mode} mode @returns {Promise<Server>} once all its processes listen */
export async function startSubject(lab, { name, command }, mode) {
  const port = await freePort(0, HOST);
  const words = command(port, mode === 'one' ? 1 : allowedCores().length);
  const [program, ...args] = mode === 'one' ? pinned(0, words) : words;
  const child = lab.clean.spawn(program, args, { env: { ...environment(), NODE_ENV: 'production' } });
  let [said, lastWords] = ['', ''];
  child.stdout?.on('data', (data) => {
    said = (said + data).slice(-500);
  });
  child.stderr?.on('data', (data) => {
    lastWords = (lastWords + data).slice(-500);
  });
  const endMs = Date.now() + START_MS;
  while (!/^listening$/m.test(said)) {
    if (hasEnded(child))
      throw new HoldfastError('PEER', `${name} ended: ${lastWords.trim() || child.exitCode}`);
    if (Date.now() > endMs)
      throw new HoldfastError('PEER', `${name} did not start within ${START_MS / 1000} s: ${lastWords}`);
    await lab.sleep(POLL_MS);
  }
  return { name, port, pids: () => familyOf(child.pid ?? 0), stop: () => lab.clean.end(child) };
}

/**
 * @param {Lab} lab @param {Server} server @param {Mode} mode @param {{ connections: number, seconds: number }} how
 * @returns {Promise<{ figures: import('./wrk.js').WrkFigures, serverPercent: number, clientPercent: number }>} % of one core
 */
async function runWrk(lab, server, mode, { connections, seconds }) {
  const url = `http://${HOST}:${server.port}${MEASURED}`;
  const words = ['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', url];
  const [program, ...args] = mode === 'one' ? pinned(1, words) : words;
  const child = lab.clean.spawn(program, args);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data) => {
      output += data;
    });
  }
  const closed = new Promise((resolve) => child.once('close', resolve));
  const percents = await watchCpu(lab, [server.pids, () => [child.pid ?? 0]], seconds);
  await lab.unlessAborted(closed);
  if (child.exitCode !== 0) throw new HoldfastError('WRK', `wrk failed: ${output.trim()}`);
  return { figures: parseWrk(output), serverPercent: percents[0], clientPercent: percents[1] };
}

/** @param {Lab} lab @param {(() => number[])[]} families @param {number} seconds @returns {Promise<number[]>} % of one core */
async function watchCpu(lab, families, seconds) {
  const [start, end] = WINDOW.map((share) => share * seconds * 1000);
  await lab.sleep(start);
  const [before, begunMs] = [families.map((pids) => cpuUs(pids())), performance.now()];
  await lab.sleep(end - start);
  const us = (performance.now() - begunMs) * 1000;
  return families.map((pids, i) => (100 * (cpuUs(pids()) - before[i])) / us);
}

/** @param {0 | 1} index @param {string[]} words @returns {string[]} the command on one of the cores that we may use */
function pinned(index, words) {
  return ['taskset', '-c', String(allowedCores()[index]), ...words];
}

/** @returns {number[]} such as those in '0-1,4' */
export function allowedCores() {
  const list = /^Cpus_allowed_list:\s+(\S+)/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, i) => first + i);
  });
}
