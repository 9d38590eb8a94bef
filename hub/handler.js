/*
 * The protocol on node:http: what the Hold passes on (publications, and later requests on the same connection), and everything in
 * an application of its own, such as an Express app.
 */
import { codeOf } from '../lib/errors.js';
import { RequestError, readBody } from '../lib/router.js';
import { draftOfForm, draftsOfJson } from './drafts.js';
import { LimitError } from './limits.js';
import { resourceOf, streamHeaders } from './protocol.js';

const FORM = 'application/x-www-form-urlencoded';
const JSON_TYPE = 'application/json';
/** The most bytes of the body of a QUERY. */
const MOST_QUERY_BYTES = 65_536;

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('./index.js').Hub} Hub */
/** @typedef {import('./index.js').Answer} Answer */
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
    const isStream = resourceOf(target, hub.path) === 'stream';
    if (isStream && request.method === 'POST') send(response, await publish(hub, request, incoming));
    else if (isStream && ['GET', 'HEAD', 'QUERY'].includes(request.method))
      await subscribe(hub, request, incoming, response);
    else send(response, await hub.answer(request), request.method === 'HEAD');
  } catch (error) {
    const answer = problem(error);
    if (error instanceof LimitError) hub.core.counts[error.counter]++;
    else if (answer.status === 413) hub.core.counts.hubLimitedPublication++;
    send(response, { ...answer, headers: { ...answer.headers, ...hub.corsOf(request) } });
    if (!(error instanceof RequestError) && answer.status === 500) hub.onError(error);
  }
}

/** @param {IncomingMessage} incoming @param {string} target @returns {Request} */
function requestOf({ method = 'GET', headers, socket }, target) {
  const address = socket.remoteAddress ?? '';
  const values = Object.entries(headers).map(([name, value]) => [
    name,
    Array.isArray(value) ? value.join(', ') : value,
  ]);
  return { method, target, headers: Object.fromEntries(values), address };
}

/** @param {Hub} hub @param {Request} request @param {IncomingMessage} incoming @param {ServerResponse} response */
async function subscribe(hub, request, incoming, response) {
  const { address = '' } = request;
  hub.core.limits?.open(address);
  const body = request.method === 'QUERY' ? await readBody(incoming, MOST_QUERY_BYTES, 'latin1') : '';
  const { cursor, place, dialect, cors } = await hub.subscriberOf(request, body);
  const opening = await hub.core.prepare(cursor, place);
  const headers = { ...streamHeaders(dialect, opening.reported), ...cors };
  if (request.method === 'HEAD') return void response.writeHead(200, headers).end();
  const admission = hub.core.admit(place, address);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  await hub.core.adopt(response, place, opening, { dialect, admission }).catch((error) => {
    hub.core.dismiss(admission);
    throw error;
  });
}

/** @param {Hub} hub @param {Request} request @param {IncomingMessage} incoming @returns {Promise<Answer>} */
async function publish(hub, request, incoming) {
  const check = await hub.publisherOf(request);
  const [type] = (request.headers['content-type'] ?? FORM).split(';');
  const isJson = type.trim().toLowerCase() === JSON_TYPE;
  if (!isJson && type.trim().toLowerCase() !== FORM)
    throw new RequestError(415, `publications are sent as ${FORM}, or several as ${JSON_TYPE}`);
  const body = await readBody(incoming, hub.rules.mostBodyBytes, isJson ? 'utf8' : 'latin1');
  const drafts = isJson ? draftsOfJson(body, hub.rules) : [draftOfForm(body, hub.rules)];
  check(drafts);
  const published = await hub.core.publish(drafts);
  const ids = published.map(({ id }) => id);
  const cors = hub.corsOf(request);
  if (isJson)
    return { status: 200, headers: { 'Content-Type': JSON_TYPE, ...cors }, body: JSON.stringify(ids) };
  return { status: 200, headers: { 'Content-Type': 'text/plain; charset=utf-8', ...cors }, body: ids[0] };
}

/** @param {unknown} error @returns {Answer} */
function problem(error) {
  if (error instanceof RequestError)
    return { status: error.status, headers: textHeaders(error.headers), body: `${error.message}\n` };
  const message = error instanceof Error ? error.message : String(error);
  if (['BUSY', 'CLOSED', 'STORE', 'OVER_CAPACITY'].includes(codeOf(error)))
    return { status: 503, headers: textHeaders({ 'Retry-After': '1' }), body: `${message}\n` };
  return { status: 500, headers: textHeaders({}), body: 'the hub failed to answer\n' };
}

/** @param {Record<string, string>} headers */
function textHeaders(headers) {
  return { 'Content-Type': 'text/plain; charset=utf-8', ...headers };
}

/** @param {ServerResponse} response @param {Answer} answer @param {boolean} [isHead] */
function send(response, { status, headers = {}, body = '' }, isHead = false) {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const length =
    status === 204 || status === 304 ? {} : { 'Content-Length': String(Buffer.byteLength(body)) };
  response.writeHead(status, { ...headers, ...length });
  response.end(isHead ? undefined : body);
}
