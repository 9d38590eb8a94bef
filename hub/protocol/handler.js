/*
 * The protocol on node:http: what the Hold passes on (publications, and later requests on the same connection), and everything in
 * an application of its own, such as an Express app.
 */
import { ServerResponse } from 'node:http';
import { plainAddress } from '../../lib/addresses.js';
import { codeOf } from '../../lib/errors.js';
import { RequestError } from '../../lib/router.js';
import { formatOf } from '../../lib/wishes.js';
import { FORMATS } from '../streams/formats.js';
import { LimitError } from '../streams/limits.js';
import { headersOf, placed, pollAnswer, textOf } from './beginnings.js';
import { draftsIn, parametersIn } from './bodies.js';
import { answerOf } from './posts.js';
import { NOSNIFF, nothingThere, requestErrorOf, resourceOf } from './protocol.js';

const TEXT = 'text/plain; charset=utf-8';
const NO_UPGRADE = "this server does not pass upgrades on to the hub: server.on('upgrade', hub.upgrade)";
const BEYOND_ASCII = /[\x80-\xff]/;
const NOTHING = Buffer.alloc(0);
/** The most bytes of the body of a QUERY. */
const MOST_QUERY_BYTES = 65_536;

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('../index.js').Hub} Hub */
/** @typedef {import('../index.js').Answer} Answer */
/** @typedef {import('./protocol.js').Request} Request */

/**
 * @param {Hub} hub
 * @param {IncomingMessage} incoming
 * @param {ServerResponse} response
 * @param {string} target the request target; frameworks cut off the path under which they mount something
 * @returns {Promise<void>} never rejects because of the client
 */
export async function handle(hub, incoming, response, target) {
  const request = requestOf(incoming, target);
  try {
    checkHost(request);
    const isStream = resourceOf(target, hub.path) === 'stream';
    if (isStream && request.method === 'POST') send(response, await publish(hub, request, incoming));
    else if (isStream && ['GET', 'HEAD', 'QUERY'].includes(request.method))
      await subscribe(hub, request, incoming, response);
    else send(response, await hub.answer(request), request.method === 'HEAD');
  } catch (error) {
    if (incoming.destroyed && codeOf(error) === 'ECONNRESET') return; // the client has left
    fail(hub, request, response, error);
  }
}

/** @param {Request} request @throws {RequestError} 400 */
function checkHost({ headers: { host } }) {
  if (host?.includes(',')) throw new RequestError(400, 'a request must have one Host');
}

/** @param {Hub} hub @param {Request} request @param {ServerResponse} response @param {unknown} error */
function fail(hub, request, response, error) {
  const answer = problem(error);
  if (error instanceof LimitError) hub.core.counts[error.counter]++;
  else if (answer.status === 413) hub.core.counts.hubLimitedPublication++;
  send(response, { ...answer, headers: { ...answer.headers, ...hub.corsOf(request) } });
  if (answer.status === 500) hub.onError(error);
}

/** @param {IncomingMessage} incoming @param {string} target @returns {Request} */
function requestOf({ method = 'GET', headers, rawHeaders, socket }, target) {
  const own = /** @type {Record<string, string | undefined>} */ ({ ...headers });
  own.authorization = allOf(rawHeaders, 'authorization'); // Node has only the first
  own.host = allOf(rawHeaders, 'host') ?? own[':authority']; // of HTTP/2
  return { method, target, headers: own, address: plainAddress(socket.remoteAddress) };
}

/** @param {readonly string[]} rawHeaders name, value, name, value… @param {string} name @returns {string | undefined} joined by ', ' */
function allOf(rawHeaders, name) {
  /** @type {string | undefined} */
  let all;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const isIt = rawHeaders[i].length === name.length && rawHeaders[i].toLowerCase() === name;
    if (isIt) all = all === undefined ? rawHeaders[i + 1] : `${all}, ${rawHeaders[i + 1]}`;
  }
  return all;
}

/** @param {Hub} hub @param {Request} request @param {IncomingMessage} incoming @param {ServerResponse} response */
async function subscribe(hub, request, incoming, response) {
  const { address = '' } = request;
  hub.core.limits?.open(address);
  const more = request.method === 'QUERY' ? await parametersIn(incoming, MOST_QUERY_BYTES) : undefined;
  const subscriber = await hub.subscribers.find(request, more);
  const { cursor, place, format } = subscriber;
  if (format === 'websocket') throw new RequestError(501, NO_UPGRADE);
  const opening = await hub.core.prepare(cursor, place, FORMATS[format].script);
  const { reported } = opening;
  if (request.method === 'HEAD')
    return void response.writeHead(200, headersOf(subscriber, reported, undefined)).end();
  if (format === 'poll') return poll(hub, address, subscriber, opening, response);
  const admission = hub.core.admit(place, address);
  try {
    const begun = opening.begin();
    const beginning = format === 'events' ? begun : placed(begun);
    beginStream(response, headersOf(subscriber, reported, beginning.cursor));
    await hub.core.joining.adopt(response, place, beginning, { ...subscriber, address, admission });
  } catch (error) {
    hub.core.dismiss(admission);
    throw error;
  }
}

/**
 * @param {Hub} hub @param {string} address @param {import('../index.js').Subscriber} subscriber
 * @param {import('../streams/openings.js').Opening} opening @param {ServerResponse} response
 */
async function poll(hub, address, subscriber, opening, response) {
  const answer = pollAnswer(subscriber, opening.reported, placed(opening.begin()));
  if (answer) return send(response, answer);
  const { place, waitMs, headers } = subscriber;
  const admission = hub.core.admit(place, address, false);
  try {
    setHeaders(response, headers);
    await hub.core.joining.adoptPoll(response, place, waitMs, { ...subscriber, address, admission });
  } catch (error) {
    hub.core.dismiss(admission);
    throw error;
  }
}

/**
 * Makes a WebSocket of a request, or refuses it.
 * @param {Hub} hub @param {readonly [IncomingMessage, import('node:stream').Duplex, Uint8Array]} event @param {string} target
 * @returns {Promise<void>} never rejects because of the client
 */
export async function upgrade(hub, event, target) {
  const [incoming, socket] = event;
  const request = requestOf(incoming, target);
  socket.on('error', destroy); // node has removed its own listener
  // Others may be ignored (RFC 9110, section 7.8), such as the h2c of curl.
  if (formatOf(request.headers, []).format !== 'websocket')
    return handle(hub, incoming, responseOn(incoming, socket), target);
  try {
    checkHost(request);
    if (resourceOf(target, hub.path) !== 'stream') throw nothingThere();
    await openSocket(hub, request, event);
  } catch (error) {
    // A Hold that can't make a WebSocket of it has answered.
    if (!socket.destroyed && !socket.writableEnded) fail(hub, request, responseOn(incoming, socket), error);
  }
}

/** @param {Hub} hub @param {Request} request @param {readonly [IncomingMessage, import('node:stream').Duplex, Uint8Array]} event */
async function openSocket(hub, request, event) {
  const { address = '' } = request;
  hub.core.limits?.open(address);
  const subscriber = await hub.subscribers.find(request);
  const { cursor, place } = subscriber;
  const opening = await hub.core.prepare(cursor, place, FORMATS.websocket.script);
  const admission = hub.core.admit(place, address);
  try {
    const { reported } = opening;
    const beginning = placed(opening.begin());
    const headers = headersOf(subscriber, reported, beginning.cursor);
    const text = textOf(subscriber, reported, beginning);
    await hub.core.joining.upgrade(event, place, { ...beginning, text }, headers, {
      ...subscriber,
      address,
      admission,
    });
  } catch (error) {
    hub.core.dismiss(admission);
    throw error;
  }
}

/** @param {IncomingMessage} incoming @param {import('node:stream').Duplex} socket @returns {ServerResponse} after which the connection ends */
function responseOn(incoming, socket) {
  const response = new ServerResponse(incoming);
  response.shouldKeepAlive = false;
  response.assignSocket(/** @type {import('node:net').Socket} */ (socket));
  response.on('finish', () => socket.end());
  return response;
}

/** @this {import('node:stream').Duplex} */
function destroy() {
  this.destroy();
}

/** @param {ServerResponse} response whose own headers stay @param {Record<string, string>} headers of a stream */
export function beginStream(response, headers) {
  if (response.headersSent) return;
  setHeaders(response, headers);
  // Node writes a head alone as UTF-8, and together with a buffer as it is.
  if (BEYOND_ASCII.test(Object.values(headers).join())) response.write(NOTHING);
}

/** @param {ServerResponse} response whose own headers stay @param {Record<string, string>} headers */
function setHeaders(response, headers) {
  response.statusCode = 200; // Koa begins with 404
  for (const [name, value] of Object.entries(headers))
    if (!response.hasHeader(name)) response.setHeader(name, value);
}

/** @param {Hub} hub @param {Request} request @param {IncomingMessage} incoming @returns {Promise<Answer>} */
async function publish(hub, request, incoming) {
  const check = await hub.publisherOf(request);
  const { drafts, isList } = await draftsIn(incoming, hub.rules);
  check(drafts);
  const published = await hub.core.publish(drafts);
  const ids = published.map(({ id }) => id);
  const { status, type, body } = answerOf(ids, isList);
  return { status, headers: { 'Content-Type': type, ...hub.corsOf(request) }, body };
}

/** @param {unknown} error @returns {Answer} */
function problem(error) {
  const known = requestErrorOf(error) ?? new RequestError(500, 'the hub failed to answer');
  return textAnswer(known.status, known.message, known.headers);
}

/** @param {number} status @param {string} message @param {Record<string, string>} headers @returns {Answer} */
function textAnswer(status, message, headers) {
  return { status, headers: { 'Content-Type': TEXT, ...headers }, body: `${message}\n` };
}

/** @param {ServerResponse} response @param {Answer} answer @param {boolean} [isHead] */
function send(response, { status, headers = {}, body = '' }, isHead = false) {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const length =
    status === 204 || status === 304 ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  response.writeHead(status, { ...NOSNIFF, ...headers, ...length });
  response.end(isHead ? undefined : body);
}
