/*
 * The command's requests to drones: HTTP to the control port of each, with a deadline, so that none delays the others.
 */
import { request } from 'node:http';
import { codeOf, HoldfastError, messageOf } from '../lib/errors.js';
import { printable } from '../lib/format.js';
import { isEncoded, MEASURES } from './drone/histograms.js';
import { pairsOf } from './texts.js';

/** A drone that takes longer to answer is late. */
const ANSWER_MS = 1000;
/** `set` and `restart` may have to ask the target for its consent first. */
const ACT_MS = 15_000;
const MOST_ANSWER_BYTES = 4_194_304;
const NO_DRONE = 'what answers there is not a drone of this version';

/**
 * A drone that can be asked at `${url}/`.
 * @typedef {object} Member
 * @property {string} name
 * @property {string} url
 * @property {string} token '' for none
 * @property {string} place
 * @property {string} [state] what is known before it answers, such as 'pending'
 */

/**
 * The answer of `GET /` of a drone.
 * @typedef {object} Stats
 * @property {{ pid: number, dialer: string, most: number, state: string, startedAt: string, elapsedMs: number, pingIntervalMs?: number }} drone
 * @property {Record<string, any>} params
 * @property {Counts} counts
 * @property {{ cause: string, text: string }[]} samples
 * @property {import('./drone/dial.js').ServerCounts[]} [servers] if there are several; not of drones on EC2
 * @property {Record<string, import('./drone/histograms.js').Percentiles>} percentiles
 * @property {Record<import('./drone/histograms.js').Measure, import('./drone/histograms.js').EncodedHistogram>} histograms
 */

/**
 * What a drone counts: `target` and `waiting` (to be tried again) of its own, and the rows of drone/counters.js.
 * @typedef {Record<import('./drone/counters.js').CountName | 'target' | 'waiting', number>
 *   & { failed: Record<string, number>, lost: Record<string, number> }} Counts
 */

/** @typedef {{ member: Member, stats: Stats | null, problem: '' | 'late' | 'gone' | string }} Answer */

/** @param {Member} member @param {number} [deadlineMs] @returns {Promise<Stats>} @throws {HoldfastError} LATE, GONE, REFUSED */
export async function askStats(member, deadlineMs = ANSWER_MS) {
  const said = await send(member, 'GET', '/', deadlineMs);
  const hasHistograms = MEASURES.every((name) => isEncoded(said?.histograms?.[name]));
  if (said?.drone?.pid && said.counts?.failed && said.counts.lost && said.percentiles && hasHistograms)
    return said;
  throw new HoldfastError('REFUSED', NO_DRONE);
}

/**
 * Only its counts, which cost it less.
 * @param {Member} member @param {number} [deadlineMs] @returns {Promise<Counts>} @throws {HoldfastError} LATE, GONE, REFUSED
 */
export async function askCounts(member, deadlineMs = ANSWER_MS) {
  const said = await send(member, 'GET', '/counts', deadlineMs);
  if (said?.counts?.failed && said.counts.lost) return said.counts;
  throw new HoldfastError('REFUSED', NO_DRONE);
}

/** @param {Member[]} members @param {number} [deadlineMs] @returns {Promise<Answer[]>} in their order */
export function askAll(members, deadlineMs = ANSWER_MS) {
  return Promise.all(
    members.map(async (member) => {
      try {
        return { member, stats: await askStats(member, deadlineMs), problem: '' };
      } catch (error) {
        return { member, stats: null, problem: problemOf(error) };
      }
    }),
  );
}

/** @param {unknown} error */
function problemOf(error) {
  const code = codeOf(error);
  return code === 'LATE' ? 'late' : code === 'GONE' ? 'gone' : messageOf(error);
}

/**
 * @param {Member} member @param {import('./texts.js').Texts} params
 * @returns {Promise<{ params: Record<string, any> }>}
 * @throws {HoldfastError} LATE, GONE, REFUSED with the answer of the drone
 */
export function setParams(member, params) {
  return send(member, 'POST', `/set?${new URLSearchParams(pairsOf(params))}`, ACT_MS);
}

/** @param {Member} member @param {'restart' | 'stop'} what @returns {Promise<void>} */
export async function tell(member, what) {
  await send(member, 'POST', `/${what}`, what === 'stop' ? ANSWER_MS : ACT_MS);
}

/**
 * Does the same to each, all at once.
 * @param {Member[]} members
 * @param {(member: Member, i: number) => Promise<unknown>} act
 * @throws {HoldfastError} DRONES: one line, with the first failure
 */
export async function each(members, act) {
  const outcomes = await Promise.allSettled(members.map(act));
  const failed = outcomes.flatMap((outcome, i) =>
    outcome.status === 'rejected' ? [{ name: members[i].name, why: messageOf(outcome.reason) }] : [],
  );
  if (failed.length === 0) return;
  const who = failed.length < members.length ? `${failed.length} of ${members.length} drones failed: ` : '';
  throw new HoldfastError('DRONES', `${who}drone ${failed[0].name}: ${failed[0].why}`);
}

/**
 * @param {Member} member @param {'GET' | 'POST'} method @param {string} path @param {number} deadlineMs
 * @returns {Promise<any>}
 */
function send({ url, token }, method, path, deadlineMs) {
  if (url === '') return Promise.reject(new HoldfastError('GONE', 'it has no address yet'));
  return new Promise((resolve, reject) => {
    const question = request(`${url}${path}`, {
      method,
      agent: false,
      headers: token ? { Authorization: `Bearer ${token}` } : {},
      signal: AbortSignal.timeout(deadlineMs),
    });
    const fail = (/** @type {Error} */ error) => reject(failureOf(error, url, deadlineMs));
    question.on('error', fail);
    question.on('response', (response) => {
      read(response)
        .then((text) => resolve(answerOf(response.statusCode ?? 0, text)))
        .catch(fail);
    });
    question.end();
  });
}

/** @param {import('node:http').IncomingMessage} response @returns {Promise<string>} */
async function read(response) {
  let text = '';
  response.setEncoding('utf8');
  for await (const data of response) {
    text += data;
    if (text.length > MOST_ANSWER_BYTES)
      throw new HoldfastError('REFUSED', `its answer is longer than ${MOST_ANSWER_BYTES} characters`);
  }
  return text;
}

/** @param {number} status @param {string} text @returns {any} */
function answerOf(status, text) {
  let said;
  try {
    said = JSON.parse(text);
  } catch {
    throw new HoldfastError('REFUSED', `${NO_DRONE} (status ${status})`);
  }
  if (status === 200) return said;
  throw new HoldfastError('REFUSED', printable(String(said?.error ?? `it answers with status ${status}`)));
}

/** @param {Error} error @param {string} url @param {number} deadlineMs */
function failureOf(error, url, deadlineMs) {
  if (error instanceof HoldfastError) return error;
  if (error.name === 'AbortError' || error.name === 'TimeoutError')
    return new HoldfastError('LATE', `${url} did not answer within ${deadlineMs / 1000} s`);
  return new HoldfastError('GONE', `${url} does not answer (${codeOf(error) || messageOf(error)})`);
}
