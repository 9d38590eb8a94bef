/*
 * A small HTTP API as a table of routes, for the admin server and the control port of a drone.
 *
 *     const TABLE = [{ methods: ['GET'], path: '/healthz', handle: () => ({ status: 200, body: 'ok\n' }) }];
 *     createServer(listenerOf(TABLE, { problem: asText }));
 *
 * Every request gets exactly one answer: that of its handler, or a problem (404, 405, an error thrown by a handler) in the
 * form that the caller chose.
 */
import { STATUS_CODES } from 'node:http';
import { HoldfastError, messageOf } from './errors.js';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */

/**
 * @typedef {object} Answer
 * @property {number} status
 * @property {string | object} [body] an object is sent as JSON
 * @property {string} [type] the content type, by default that of plain text or of JSON
 * @property {Record<string, string>} [headers] others
 * @property {(response: import('node:http').ServerResponse) => void} [take] answers instead, with whatever else
 *
 * @typedef {object} Route
 * @property {readonly string[]} methods GET includes HEAD
 * @property {string} path the whole path, without the query
 * @property {boolean} [isHidden] people need not know it
 * @property {(request: IncomingMessage, url: URL) => Answer | Promise<Answer>} handle may throw a RequestError
 *
 * @typedef {object} Options
 * @property {(status: number, message: string) => Answer} [problem] makes the answer of an error: `asText` or `asJson`
 * @property {(error: unknown) => number} [statusOf] the status of an error that is not a RequestError; 500
 * @property {(request: IncomingMessage) => void | Promise<void>} [check] runs before the lookup; throws what refuses the request
 */

/** Thrown by a handler if the request is wrong. */
export class RequestError extends Error {
  /** @param {number} status @param {string} message one line @param {Record<string, string>} [headers] */
  constructor(status, message, headers = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** @type {NonNullable<Options['problem']>} '404 Not Found: …' */
export const asText = (status, message) => ({
  status,
  body: `${status} ${STATUS_CODES[status]}: ${message}\n`,
});

/** @type {NonNullable<Options['problem']>} '{"error":"…"}' */
export const asJson = (status, message) => ({ status, body: { error: message } });

/**
 * @param {readonly Route[]} table
 * @param {Options} [options]
 * @returns {(request: IncomingMessage, response: import('node:http').ServerResponse) => void} for `createServer`
 */
export function listenerOf(table, options) {
  return (request, response) => {
    void route(table, request, options).then((answer) =>
      answer.take ? answer.take(response) : send(response, answer),
    );
  };
}

/**
 * @param {readonly Route[]} table
 * @param {IncomingMessage} request
 * @param {Options} [options]
 * @returns {Promise<Answer>} never rejects
 */
export async function route(table, request, { problem = asText, statusOf = () => 500, check } = {}) {
  try {
    await check?.(request);
    const url = urlOf(request);
    return await find(table, url.pathname, request.method ?? 'GET').handle(request, url);
  } catch (error) {
    if (!(error instanceof RequestError)) return problem(statusOf(error), messageOf(error));
    return { ...problem(error.status, error.message), headers: error.headers };
  }
}

/**
 * Not relative to a base: in '//x/healthz', 'x' would be a host, and '/healthz' the path.
 * @param {IncomingMessage} request @returns {URL} only its path and query matter
 */
function urlOf({ url = '/' }) {
  const text = `http://localhost${url}`;
  if (!url.startsWith('/') || !URL.canParse(text))
    throw new RequestError(400, `'${url}' is not a valid path`);
  return new URL(text);
}

/** @param {readonly Route[]} table @param {string} path @param {string} method @returns {Route} */
function find(table, path, method) {
  const rows = table.filter((row) => row.path === path);
  if (rows.length === 0) throw new RequestError(404, `the paths are ${pathsOf(table)}`);
  const row = rows.find((one) => methodsOf(one).includes(method));
  if (row) return row;
  const allowed = rows.flatMap(methodsOf).join(', ');
  throw new RequestError(405, `${path} takes ${allowed}`, { Allow: allowed });
}

/** @param {readonly Route[]} table @returns {string} '/healthz, /readyz' */
export function pathsOf(table) {
  return [...new Set(table.filter(({ isHidden }) => !isHidden).map(({ path }) => path))].join(', ');
}

/** @param {Route} route @returns {string[]} */
function methodsOf({ methods }) {
  return methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
}

/**
 * @param {IncomingMessage} request
 * @param {number} mostBytes
 * @param {'utf8' | 'latin1'} [encoding] with latin1, each character is a byte
 * @returns {Promise<string>} its body
 * @throws {RequestError} 413
 */
export function readBody(request, mostBytes, encoding = 'utf8') {
  return new Promise((resolve, reject) => {
    /** @type {Buffer[]} */
    const chunks = [];
    let bytes = 0;
    request.on('data', (chunk) => {
      bytes += chunk.length;
      if (bytes <= mostBytes) chunks.push(chunk); // the rest is read too, so that the client gets the answer
    });
    request.once('end', () => {
      if (bytes <= mostBytes) resolve(Buffer.concat(chunks).toString(encoding));
      else reject(new RequestError(413, `got ${bytes} bytes, expected ${mostBytes} at most`));
    });
    request.once('error', reject);
    const leave = () =>
      reject(new HoldfastError('ECONNRESET', 'the client has left before the end of its request'));
    if (request.readableEnded)
      resolve(''); // a parser has found that there is none
    else if (request.destroyed) leave();
    else request.once('close', () => request.complete || leave());
  });
}

/** @param {import('node:http').ServerResponse} response @param {Answer} answer */
export function send(response, { status, body = '', type, headers }) {
  const isText = typeof body === 'string';
  const text = isText ? body : `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'Content-Type': type ?? (isText ? 'text/plain; charset=utf-8' : 'application/json'),
    'Content-Length': Buffer.byteLength(text),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  });
  response.end(text);
}
