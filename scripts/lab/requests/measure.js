/*
 * One measurement: a server, its answers, a warm-up, and wrk.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { cpuUs, pssBytes } from '../processes.js';
import { expectedAnswer, questions } from './answers.js';
import { checkAnswers } from './ask.js';
import { runWrk } from './load.js';
import { startSubject } from './start.js';
import { errorsText } from './wrk.js';

export const WARM_UP_S = 2;
/** How long a single connection asks. */
export const ALONE_S = 1;
/** How far the bytes that wrk read may be from those of as many answers: it prints few digits. */
const BYTES_OFF = 0.02;

/** @typedef {import('./subjects.js').Subject} Subject */
/** @typedef {import('../experiment.js').Values} Values */

/**
 * @param {import('../experiment.js').Trial} trial @param {Subject} subject @param {import('./start.js').Mode} mode
 * @returns {Promise<Values>}
 * @throws {HoldfastError} ANSWER if any answer was wrong
 */
export async function measureRequests({ lab, plan, name }, subject, mode) {
  lab.status = () => `[${name}] ${plan.streams} connections`;
  const server = await startSubject(lab, subject, mode);
  const load = (/** @type {number} */ connections, /** @type {number} */ seconds) =>
    runWrk(lab, server, mode, { connections, seconds });
  await checkAnswers(subject.name, server.port, subject.closes, subject.isSilent);
  await load(plan.streams, Math.min(WARM_UP_S, plan.holdS));
  const alone = mode === 'one' ? await load(1, ALONE_S) : null;
  const before = cpuUs(server.pids());
  const { figures, seen } = await load(plan.streams, plan.holdS);
  const us = cpuUs(server.pids()) - before;
  const memoryBytes = pssBytes(server.pids());
  await checkAnswers(subject.name, server.port, subject.closes, subject.isSilent);
  await server.stop();
  checkFigures(subject, figures);
  const text = errorsText(figures.errors);
  if (text) lab.note(`${name}: wrk reports errors: ${text}`);
  const { serverPercent, clientPercent } = seen;
  return {
    ...valuesOf(figures),
    cpuUs: us / figures.requests,
    memoryBytes,
    serverPercent,
    clientPercent,
    aloneUs: alone ? 1000 * alone.figures.ms.p50 : null,
    waiting: subject.closes ? null : seen.waiting,
  };
}

/** @param {import('./wrk.js').WrkFigures} figures @returns {Values} */
function valuesOf({ perSecond, ms, errors }) {
  const { connect, read, write, timeout } = errors;
  return {
    perSecond,
    avgMs: ms.avg,
    p50Ms: ms.p50,
    p99Ms: ms.p99,
    maxMs: ms.max,
    errors: connect + read + write + timeout,
  };
}

/** @param {Subject} subject @param {import('./wrk.js').WrkFigures} figures @throws {HoldfastError} ANSWER if there were wrong answers */
export function checkFigures({ closes, isSilent }, { requests, bytes, errors }) {
  if (errors.status > 0)
    throw new HoldfastError('ANSWER', `${errors.status} answers were neither 2xx nor 3xx`);
  const { bytes: size } = expectedAnswer(questions()[0], closes, isSilent);
  const own = bytes / requests;
  if (Math.abs(own / size - 1) > BYTES_OFF)
    throw new HoldfastError('ANSWER', `an answer had ${own.toFixed(1)} bytes on average, not ${size}`);
}
