/*
 * How many requests per second a server with one core answers on kept connections. The client is wrk, on the other core.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { pinned } from '../cores.js';
import { readProgram } from '../install.js';
import { cpuUs } from '../processes.js';
import { parseWrk } from '../requests/wrk.js';
import { kindOf, startSubject } from './subjects.js';

export const CONNECTIONS = 64;
const WARM_UP_S = 2;

/** @param {import('../experiment.js').Round} round @param {string} name */
export async function measureRate(round, name) {
  const { lab, plan, name: repeat } = round;
  lab.status = () => `[${repeat}] ${name}: requests`;
  const kind = kindOf(name);
  const subject = await startSubject(lab, kind, { name: `${name}-${repeat}-requests`, isPinned: true });
  const url = `http://127.0.0.1:${subject.port}${kind.path}`;
  await runWrk(lab, url, WARM_UP_S);
  const before = cpuUs(subject.pids());
  const { requests, perSecond, bytes, errors } = await runWrk(lab, url, plan.holdS);
  const us = cpuUs(subject.pids()) - before;
  await subject.stop();
  const { connect, read, write, timeout, status } = errors;
  const wrong = kind.name === 'refusal' ? requests - status : status;
  if (connect + read + write + timeout + wrong > 0)
    throw new HoldfastError('WRK', `${name}: wrk reports errors: ${JSON.stringify(errors)}`);
  round.record(name, { perSecond, requestUs: us / requests, answerBytes: bytes / requests });
}

/** @param {import('../lab.js').Lab} lab @param {string} url @param {number} seconds */
async function runWrk(lab, url, seconds) {
  const words = ['wrk', '-t1', `-c${CONNECTIONS}`, `-d${seconds}s`, '--latency', url];
  const [program, ...args] = [...pinned('client'), ...words];
  return parseWrk(await readProgram(lab, program, args));
}
