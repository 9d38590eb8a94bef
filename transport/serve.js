/*
 * Carries out decisions on responses of node:http: for requests that follow a passed one on the same connection.
 */
import { codeOf } from '../lib/errors.js';
import { headersNamed, headOf } from './policy.js';
import { refusal, streamHeaders, welcomesOf } from './responses.js';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('./policy.js').Decision} Decision */

/**
 * @param {Pick<import('./index.js').Transport, 'adopt'>} hold
 * @param {{ headers: readonly string[], decide: (head: import('./policy.js').Head) => Exclude<Decision, { pass: true }> }} policy answers at once
 * @param {IncomingMessage} request
 * @param {ServerResponse} response
 */
export async function serve(hold, policy, request, response) {
  const { method = 'GET', url = '/', httpVersion, rawHeaders, socket } = request;
  const headers = headersNamed(new Set(policy.headers), rawHeaders);
  const decision = policy.decide(headOf(method, url, httpVersion, headers, socket.remoteAddress ?? ''));
  if ('hold' in decision) return holdOn(hold, decision, request, response);
  const {
    status = 200,
    headers: own = {},
    body = '',
  } = 'answer' in decision ? decision.answer : refusal(decision);
  response.writeHead(status, { ...own, 'Content-Length': Buffer.byteLength(body) });
  response.end(method === 'HEAD' ? undefined : body);
}

/**
 * @param {Pick<import('./index.js').Transport, 'adopt'>} hold
 * @param {import('./policy.js').HoldDecision} decision
 * @param {IncomingMessage} request
 * @param {ServerResponse} response
 */
async function holdOn(hold, { hold: encoding, channels, headers, welcome }, { method }, response) {
  const { Connection, ...fields } = streamHeaders(encoding, headers);
  response.writeHead(200, fields);
  const [first = ''] = welcomesOf(welcome);
  if (method !== 'HEAD' && first.length > 0) response.write(first);
  try {
    await hold.adopt(response, { channels, encoding });
  } catch (error) {
    if (codeOf(error) === '') throw error;
    response.destroy(); // there is no room for it
  }
}
