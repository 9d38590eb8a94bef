/*
 * What a publisher sends: a form with one publication, as in Mercure, or a JSON array with several. Pure.
 */
import { RequestError } from '../../lib/router.js';
import { checkData, checkId, checkSizes, checkTopic, checkType } from '../matching/topics.js';
import { valueIn, valuesIn } from './query.js';

/** The most publications in one request. */
const MOST_IN_BATCH = 1000;
/** The most topics of all of them: each is parsed, and compared with each grant, in one turn of the event loop. */
const MOST_TOPICS_IN_BATCH = 10_000;
const FIELDS = ['topic', 'topics', 'data', 'private', 'id', 'type', 'retry'];
const DIGITS = /^[0-9]+$/;
const MOST_RETRY_MS = 0x7fffffff;

/** @typedef {import('../../broker/index.js').Draft} Draft */

/**
 * A publication as an application, or JSON, has it.
 * @typedef {object} Given
 * @property {string | readonly string[]} [topic] the first is canonical
 * @property {string | readonly string[]} [topics] another name for it
 * @property {string} [data]
 * @property {boolean} [private]
 * @property {string} [id]
 * @property {string} [type]
 * @property {number} [retry] ms
 */

/**
 * @typedef {object} Rules
 * @property {string} baseUrl of the hub
 * @property {import('../matching/topics.js').Limits} limits
 */

/**
 * @param {readonly import('./query.js').Pair[]} pairs of the form
 * @param {Rules} rules
 * @returns {Draft}
 * @throws {RequestError} 400, 413
 */
export function draftOfForm(pairs, rules) {
  const data = valueIn(pairs, 'data') ?? '';
  const isPrivate = valueIn(pairs, 'private') !== undefined; // whatever its value
  const [id, type] = ['id', 'type'].map((name) => valueIn(pairs, name) || undefined);
  const retry = retryOf(valueIn(pairs, 'retry') || undefined);
  return checked({ topics: valuesIn(pairs, 'topic'), data, private: isPrivate, id, type, retry }, rules);
}

/**
 * @param {string} text a JSON array of objects with the fields of the form; `topic` may be a list, and `data` is a string
 * @param {Rules} rules
 * @returns {Draft[]}
 * @throws {RequestError} 400, 413
 */
export function draftsOfJson(text, rules) {
  return draftsOf(parsed(text), rules);
}

/**
 * @param {unknown} list as parsed from JSON
 * @param {Rules} rules
 * @returns {Draft[]}
 * @throws {RequestError} 400, 413
 */
export function draftsOf(list, rules) {
  if (!Array.isArray(list))
    throw new RequestError(400, 'expected a JSON array of publications, such as [{"topic":"a","data":"b"}]');
  if (list.length === 0) throw new RequestError(400, 'there is no publication in the array');
  if (list.length > MOST_IN_BATCH)
    throw new RequestError(
      413,
      `a request can have at most ${MOST_IN_BATCH} publications, not ${list.length}`,
    );
  const topics = list.reduce((sum, given) => sum + topicCountIn(given), 0);
  if (topics > MOST_TOPICS_IN_BATCH)
    throw new RequestError(413, `a request can have at most ${MOST_TOPICS_IN_BATCH} topics, not ${topics}`);
  return list.map((given, i) => {
    try {
      return draftOf(given, rules);
    } catch (error) {
      if (!(error instanceof RequestError)) throw error;
      throw new RequestError(error.status, `publication ${i}: ${error.message}`);
    }
  });
}

/**
 * @param {unknown} given { topic or topics, data, private, id, type, retry }
 * @param {Rules} rules
 * @returns {Draft}
 * @throws {RequestError} 400, 413
 */
export function draftOf(given, rules) {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new RequestError(400, 'a publication is an object { topic, data }');
  const fields = /** @type {Record<string, unknown>} */ (given);
  const unknown = Object.keys(fields).find((name) => !FIELDS.includes(name));
  if (unknown !== undefined)
    throw new RequestError(400, `a publication has no field ${JSON.stringify(unknown).slice(0, 42)}`);
  const { data = '', private: isPrivate = false, retry } = fields;
  if (typeof data !== 'string')
    throw new RequestError(400, 'data must be a string; write other values as JSON');
  refuse(checkData(data));
  if (typeof isPrivate !== 'boolean') throw new RequestError(400, 'private must be true or false');
  const [id, type] = ['id', 'type'].map((name) => optionalText(name, fields[name]));
  if (!['undefined', 'number', 'string'].includes(typeof retry)) throw badRetry();
  const ms = retryOf(retry === undefined ? undefined : String(retry));
  return checked({ topics: topicsOf(fields), data, private: isPrivate, id, type, retry: ms }, rules);
}

/** @param {any} given not checked yet @returns {number} */
function topicCountIn(given) {
  const topics = given?.topic ?? given?.topics;
  return Array.isArray(topics) ? topics.length : 1;
}

/** @param {Record<string, unknown>} fields @returns {string[]} */
function topicsOf({ topic, topics }) {
  if (topic !== undefined && topics !== undefined)
    throw new RequestError(400, 'use either topic or topics, not both');
  const given = topic ?? topics ?? [];
  const list = Array.isArray(given) ? given : [given];
  if (list.every((one) => typeof one === 'string')) return list;
  throw new RequestError(400, 'a topic must be a string');
}

/** @param {string} name @param {unknown} value @returns {string | undefined} '' is none */
function optionalText(name, value) {
  if (value === undefined) return undefined;
  if (typeof value !== 'string') throw new RequestError(400, `${name} must be a string`);
  return value || undefined;
}

/**
 * @param {Omit<Draft, 'id' | 'type' | 'retry'> & { [K in 'id' | 'type']: string | undefined } & { retry: number | undefined }} draft
 * @param {Rules} rules @returns {Draft} without what is undefined
 */
function checked(draft, { baseUrl, limits }) {
  const { topics, data, id, type, retry } = draft;
  if (topics.length === 0) throw new RequestError(400, 'missing "topic" parameter');
  const tooLarge = checkSizes(draft, limits);
  if (tooLarge) throw new RequestError(413, tooLarge);
  for (const topic of topics) refuse(checkTopic(topic, baseUrl));
  if (id !== undefined) refuse(checkId(id));
  if (type !== undefined) refuse(checkType(type));
  return {
    topics: [...new Set(topics)],
    data,
    private: draft.private,
    ...(id === undefined ? {} : { id }),
    ...(type === undefined ? {} : { type }),
    ...(retry ? { retry } : {}),
  };
}

/** @param {string} problem '' if there is none */
function refuse(problem) {
  if (problem) throw new RequestError(400, problem);
}

/** @param {string | undefined} text @returns {number | undefined} ms */
function retryOf(text) {
  if (text === undefined) return undefined;
  const ms = Number(text);
  if (!DIGITS.test(text) || ms > MOST_RETRY_MS) throw badRetry();
  return ms;
}

function badRetry() {
  return new RequestError(400, `retry must be a whole number of milliseconds, at most ${MOST_RETRY_MS}`);
}

/** @param {string} text @returns {unknown} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'the body is not valid JSON');
  }
}
