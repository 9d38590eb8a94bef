/*
 * Carries out decisions on requests of node:http: those that follow a passed one on the same connection.
 */
import { codeOf } from '../lib/errors.js';
import { isPoll, isWebSocket } from '../native/protocol.js';
import { lastResponse } from './passing.js';
import { headersNamed, headOf } from './policy.js';
import { headOfStream, refusal, responseOf, welcomesOf } from './responses.js';

/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/** @typedef {import('node:http').ServerResponse} ServerResponse */
/** @typedef {import('./policy.js').Decision} Decision */
/** @typedef {import('./policy.js').HoldDecision} HoldDecision */
/** @typedef {Exclude<Decision, { pass: true }>} OwnDecision */
/** @typedef {Pick<import('./index.js').Transport, 'adopt' | 'upgrade'>} Hold */
/** @typedef {{ headers: readonly string[], decide: (head: import('./policy.js').Head) => OwnDecision }} Policy answers at once */

/** @param {Hold} hold @param {Policy} policy @param {IncomingMessage} request @param {ServerResponse} response */
export async function serve(hold, policy, request, response) {
  const decision = decisionOn(policy, request);
  const isHead = request.method === 'HEAD';
  if ('hold' in decision && isWebSocket(decision.hold))
    answer(response, responseOf(refusal({ refuse: 426 }), isHead));
  else if ('hold' in decision) await holdOn(hold, decision, request, response);
  else answer(response, responseOf('answer' in decision ? decision.answer : refusal(decision), isHead));
}

/**
 * The same for an 'upgrade' event. What is to become anything else than a WebSocket gets its answer, and the connection ends.
 * @param {Hold} hold @param {Policy} policy
 * @param {IncomingMessage} request @param {import('node:stream').Duplex} socket @param {Uint8Array} head
 */
export async function serveUpgrade(hold, policy, request, socket, head) {
  const decision = decisionOn(policy, request);
  if (!('hold' in decision && isWebSocket(decision.hold))) {
    const response = lastResponse(request, /** @type {import('node:net').Socket} */ (socket));
    return serve(hold, policy, request, response);
  }
  const { channels, headers } = decision;
  const [welcome] = welcomesOf(decision.welcome);
  const encoding = /** @type {'websocket'} */ (decision.hold);
  try {
    await hold.upgrade(request, socket, head, { channels, headers, welcome, encoding });
  } catch (error) {
    if (codeOf(error) === '') throw error; // otherwise it was refused
  }
}

/** @param {Policy} policy @param {IncomingMessage} request @returns {OwnDecision} */
function decisionOn(
  { headers: names, decide },
  { method = 'GET', url = '/', httpVersion, rawHeaders, socket },
) {
  const headers = headersNamed(new Set(names), rawHeaders);
  return decide(headOf(method, url, httpVersion, headers, socket.remoteAddress ?? ''));
}

/** @param {ServerResponse} response @param {import('./responses.js').Response} what */
function answer(response, { status, headers, body }) {
  response.writeHead(status, headers);
  response.end(body);
}

/** @param {Hold} hold @param {HoldDecision} decision @param {IncomingMessage} request @param {ServerResponse} response */
async function holdOn(hold, { hold: encoding, channels, headers, welcome, waitMs }, { method }, response) {
  const fields = isPoll(encoding) ? headers : headOfStream(encoding, headers).headers;
  for (const [name, value] of Object.entries(fields ?? {})) response.setHeader(name, value);
  const [first = ''] = welcomesOf(welcome);
  if (method !== 'HEAD' && !isPoll(encoding) && first.length > 0) response.write(first);
  try {
    await hold.adopt(response, { channels, encoding, waitMs });
  } catch (error) {
    if (codeOf(error) === '') throw error;
    response.destroy(); // there is no room for it
  }
}
