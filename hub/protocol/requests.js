/*
 * What clients of WebSockets say: JSON objects, each a request that gets one answer. Pure.
 *
 *     {"subscribe":["topic",{"match":"https://x.example/:id","match_type":"urlpattern"}],"after":"CURSOR","ref":1}
 *     {"unsubscribe":["topic"],"ref":2}
 *     {"publish":{"topic":"topic","data":"…"},"ref":3}
 *
 * On a stream that was opened with the parameters of 0.x, a topic may be a URI template.
 */
import { RequestError } from '../../lib/router.js';
import { parseSelector, SelectorError } from '../matching/selectors.js';

const KINDS = /** @type {const} */ (['subscribe', 'unsubscribe', 'publish']);
const EXAMPLE = '{"subscribe":["topic"]} or {"publish":{"topic":"topic","data":"text"}}';
/** Members besides its kind. @type {Record<Kind, readonly string[]>} */
const MEMBERS = { subscribe: ['after', 'ref'], unsubscribe: ['ref'], publish: ['ref'] };
const MATCH_TYPES = /** @type {const} */ (['exact', 'urlpattern']);
const MOST_REF_CHARS = 256;
/** How much of an unknown message an error shows. */
const MOST_NAMES = 3;
const MOST_NAMES_CHARS = 80;
/** Made once: their stacks cost more than everything else that is done about nonsense. */
const NO_JSON = new RequestError(400, `the message is not valid JSON: send ${EXAMPLE}`);
const NO_OBJECT = new RequestError(400, `a message must be a JSON object: send ${EXAMPLE}`);

/** @typedef {typeof KINDS[number]} Kind */
/** @typedef {string | number | undefined} Ref */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('../access/grants.js').Dialect} Dialect */

/**
 * @typedef {object} Said
 * @property {Kind} kind
 * @property {unknown} what
 * @property {string | undefined} after
 */

/** @param {string} text @returns {Record<string, unknown>} @throws {RequestError} 400 */
export function objectIn(text) {
  let given;
  try {
    given = JSON.parse(text);
  } catch {
    throw NO_JSON;
  }
  if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given;
  throw NO_OBJECT;
}

/** @param {Record<string, unknown>} given @returns {Ref} what the answer repeats @throws {RequestError} 400 */
export function refOf({ ref }) {
  if (ref === undefined || typeof ref === 'number') return ref;
  if (typeof ref === 'string' && ref.length <= MOST_REF_CHARS) return ref;
  throw new RequestError(400, `ref must be a number, or a string of at most ${MOST_REF_CHARS} characters`);
}

/** @param {Record<string, unknown>} given @returns {Said} @throws {RequestError} 400 */
export function saidIn(given) {
  const kinds = KINDS.filter((kind) => given[kind] !== undefined);
  if (kinds.length !== 1) throw notOne(given);
  const [kind] = kinds;
  const unknown = Object.keys(given).find((name) => name !== kind && !MEMBERS[kind].includes(name));
  if (unknown !== undefined)
    throw new RequestError(
      400,
      `a message with ${kind} has no member ${JSON.stringify(unknown).slice(0, 42)}`,
    );
  const { after } = given;
  if (after !== undefined && (typeof after !== 'string' || !after.isWellFormed()))
    throw new RequestError(400, 'after must be a string: the id of a publication, a cursor, or "earliest"');
  return { kind, what: given[kind], after };
}

/** @param {Record<string, unknown>} given */
function notOne(given) {
  const names =
    JSON.stringify(Object.keys(given).slice(0, MOST_NAMES)).slice(1, -1).slice(0, MOST_NAMES_CHARS) ||
    'nothing';
  return new RequestError(
    400,
    `a message must have one of subscribe, unsubscribe and publish, not ${names}: send ${EXAMPLE}`,
  );
}

/**
 * @param {unknown} given one topic, or a list @param {Dialect} dialect of the stream
 * @param {{ baseUrl: string, mostSelectors: number }} rules
 * @returns {Selector[]} each once
 * @throws {RequestError} 400
 */
export function selectorsIn(given, dialect, { baseUrl, mostSelectors }) {
  const list = Array.isArray(given) ? given : [given];
  if (list.length === 0) throw new RequestError(400, 'the list of topics is empty');
  if (list.length > mostSelectors)
    throw new RequestError(400, `a message can have at most ${mostSelectors} topics, not ${list.length}`);
  const selectors = list.map((one) => selectorOf(one, dialect, baseUrl));
  return [...new Map(selectors.map((one) => [one.key, one])).values()];
}

/** @param {unknown} given @param {Dialect} dialect @param {string} baseUrl @returns {Selector} */
function selectorOf(given, dialect, baseUrl) {
  const { kind, value } = wantedIn(given, dialect);
  try {
    return parseSelector(kind, value, baseUrl);
  } catch (error) {
    throw error instanceof SelectorError ? new RequestError(400, error.message) : error;
  }
}

/** @param {unknown} given @param {Dialect} dialect @returns {{ kind: import('../matching/selectors.js').SelectorKind, value: string }} */
function wantedIn(given, dialect) {
  if (typeof given === 'string') return { kind: dialect === 'legacy' ? 'template' : 'exact', value: given };
  if (typeof given !== 'object' || given === null)
    throw new RequestError(400, 'a topic must be a string, or an object { match, match_type }');
  if (dialect === 'legacy') throw new RequestError(400, 'use either "match" or the older "topic", not both');
  const { match, match_type: type = 'exact', ...others } = /** @type {Record<string, unknown>} */ (given);
  const kind = MATCH_TYPES.find((one) => one === type);
  if (!kind) throw new RequestError(400, 'this match type is unknown: use exact or urlpattern');
  if (typeof match !== 'string' || Object.keys(others).length > 0)
    throw new RequestError(400, 'a topic must be a string, or an object { match, match_type }');
  return { kind, value: match };
}
