/*
 * The publications in the body of a request, which a framework may have read already.
 */
import { RequestError, readBody } from '../../lib/router.js';
import { draftOfForm, draftsOf, draftsOfJson } from './drafts.js';
import { pairsOf } from './query.js';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';

const strict = new TextDecoder('utf-8', { fatal: true });

/** @typedef {import('node:http').IncomingMessage & { body?: unknown }} IncomingMessage */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {import('./query.js').Pair} Pair */

/**
 * @param {IncomingMessage} incoming
 * @param {import('./drafts.js').Rules & { mostBodyBytes: number }} rules
 * @returns {Promise<{ drafts: Draft[], isList: boolean }>} `isList`: the answer is a list too
 * @throws {RequestError}
 */
export async function draftsIn(incoming, rules) {
  const isList = typeOf(incoming.headers) === JSON_TYPE;
  const body = await bodyOf(incoming, rules.mostBodyBytes);
  if (isList)
    return {
      drafts: typeof body === 'string' ? draftsOfJson(utf8(body), rules) : draftsOf(body, rules),
      isList,
    };
  const pairs = typeof body === 'string' ? pairsOf(body) : pairsIn(body);
  return { drafts: [draftOfForm(pairs, rules)], isList };
}

/**
 * @param {IncomingMessage} incoming
 * @param {number} mostBytes
 * @returns {Promise<{ pairs: Pair[], json?: undefined } | { pairs?: undefined, json: unknown }>} a form, or what the JSON is
 * @throws {RequestError}
 */
export async function bodyIn(incoming, mostBytes) {
  const isJson = typeOf(incoming.headers) === JSON_TYPE;
  const body = await readPlain(incoming, mostBytes);
  return isJson ? { json: parsed(utf8(body)) } : { pairs: pairsOf(body) };
}

/**
 * @param {IncomingMessage} incoming a QUERY
 * @param {number} mostBytes
 * @returns {Promise<Pair[]>}
 * @throws {RequestError}
 */
export async function parametersIn(incoming, mostBytes) {
  const body = await bodyOf(incoming, mostBytes);
  if (body !== '' && typeOf(incoming.headers) !== FORM)
    throw wrongType(`the parameters of a QUERY are sent as ${FORM}`);
  return typeof body === 'string' ? pairsOf(body) : pairsIn(body);
}

/** @param {import('node:http').IncomingHttpHeaders} headers @returns {typeof FORM | typeof JSON_TYPE} */
function typeOf(headers) {
  const type = (headers['content-type'] ?? FORM).split(';')[0].trim().toLowerCase();
  if (type === FORM || type === JSON_TYPE) return type;
  throw wrongType(`the body must be ${FORM} or ${JSON_TYPE}`);
}

/** @param {string} message */
function wrongType(message) {
  return new RequestError(415, message);
}

/**
 * @param {IncomingMessage} incoming
 * @param {number} mostBytes
 * @returns {Promise<string | object>} a text in which each character is a byte, or an object if a framework has parsed it
 * @throws {RequestError}
 */
async function bodyOf(incoming, mostBytes) {
  const { body, readableDidRead: isRead } = incoming;
  if (typeof body === 'string' && (isRead || body !== '')) return Buffer.from(body).toString('latin1');
  if (body instanceof Uint8Array && (isRead || body.length > 0)) return Buffer.from(body).toString('latin1');
  // Express 4 sets {} if it has read nothing.
  if (typeof body === 'object' && body !== null && (isRead || Object.keys(body).length > 0)) return body;
  if (!isRead) return readPlain(incoming, mostBytes);
  throw new RequestError(
    500,
    'something has read the body before the hub could: put the hub before body parsers',
  );
}

/** @param {IncomingMessage} incoming @param {number} mostBytes @returns {Promise<string>} */
function readPlain(incoming, mostBytes) {
  const { 'content-encoding': coding = 'identity' } = incoming.headers;
  if (coding.toLowerCase() === 'identity') return readBody(incoming, mostBytes, 'latin1');
  throw wrongType('a body must not have a Content-Encoding');
}

/**
 * @param {object} body of a form, as body parsers have it: a list for a name that was repeated
 * @returns {Pair[]}
 */
function pairsIn(body) {
  return Object.entries(body).flatMap(([name, value]) => {
    const values = Array.isArray(value) ? value : [value];
    return values.map((one) => /** @type {Pair} */ ([name, textOf(one)]));
  });
}

/** @param {unknown} value @returns {string} */
function textOf(value) {
  if (typeof value === 'string' && value.isWellFormed()) return value;
  throw new RequestError(400, 'a form has only texts, in UTF-8: repeat a name for several values');
}

/** @param {string} text @returns {unknown} */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new RequestError(400, 'the body is not valid JSON');
  }
}

/** @param {string} bytes @returns {string} */
function utf8(bytes) {
  try {
    return strict.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new RequestError(400, 'the body is not valid UTF-8');
  }
}
