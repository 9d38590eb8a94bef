/*
 * What a request wants to be revoked. Pure but for reading its body.
 *
 *     subject=ann&subject=bob&token=jti-7&topic=https://example.com/rooms/1
 *     [{ "subject": "ann" }, { "token": "jti-7" }]      or one object
 */
import { RequestError } from '../lib/router.js';
import { checkSelector } from './matching/topics.js';
import { bodyIn } from './protocol/bodies.js';

const NAMES = /** @type {const} */ (['subject', 'token', 'topic']);
/** The most bytes of a body, and the most that it may name. */
const MOST_BYTES = 1_048_576;
const MOST = 10_000;

/** One of them. @typedef {{ subject?: string, token?: string, topic?: string }} Revocation */

/**
 * @param {import('node:http').IncomingMessage} incoming
 * @returns {Promise<Revocation[]>} at least one
 * @throws {RequestError} 400, 413, 415
 */
export async function revocationsIn(incoming) {
  const { pairs, json } = await bodyIn(incoming, MOST_BYTES);
  const list = pairs
    ? pairs.map(([name, value]) => ({ [name]: value }))
    : Array.isArray(json)
      ? json
      : [json];
  const revocations = checkedRevocations(list);
  if (revocations.length > MOST)
    throw new RequestError(413, `at most ${MOST} can be revoked at once, not ${revocations.length}`);
  return revocations;
}

/** @param {readonly unknown[]} list @returns {Revocation[]} at least one @throws {RequestError} 400 */
export function checkedRevocations(list) {
  const revocations = list.flatMap(revocationsOf);
  if (revocations.length === 0)
    throw new RequestError(400, 'nothing to revoke: give subject, token (its jti) or topic');
  return revocations;
}

/** @param {unknown} given @returns {Revocation[]} */
function revocationsOf(given) {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new RequestError(400, 'what to revoke is an object such as {"subject":"ann"}, or an array of them');
  const named = Object.entries(given).filter(([, value]) => value !== undefined);
  return named.map(([name, value]) => {
    const known = NAMES.find((one) => one === name);
    if (!known) throw new RequestError(400, `"${shown(name)}" can't be revoked: use subject, token or topic`);
    if (typeof value !== 'string' || value === '')
      throw new RequestError(400, `${known} must be a text; for several, send an array of objects`);
    if (known === 'topic') checkTopic(value);
    return { [known]: value };
  });
}

/** @param {string} topic */
function checkTopic(topic) {
  const wrong = topic === '*' ? 'revoke the topics one by one: * is no topic' : checkSelector(topic);
  if (wrong) throw new RequestError(400, wrong);
}

/** @param {string} name @returns {string} safe to show */
function shown(name) {
  return name.slice(0, 40).replace(/[^\w.-]/g, '?');
}
