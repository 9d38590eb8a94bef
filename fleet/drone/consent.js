/*
 * Which servers a drone may dial: this machine, or a server that says it accepts load. Any other server gets this one
 * question and nothing else. This machine is asked too, for the ping interval, but its consent is not needed.
 */
import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { isIP } from 'node:net';
import { setTimeout as after } from 'node:timers/promises';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';

export const CONSENT_PATH = '/.well-known/holdfast-load';
/** For all questions about one target together. Every refusal takes this long, so that its duration reveals nothing. */
const ANSWER_MS = 3000;
const MOST_ANSWER_BYTES = 4096;
/** The most addresses of one server that is not on this machine. */
const MOST_ELSEWHERE = 8;
const RULE = 'drones load only this machine, or a server started with --accept-load';

/**
 * @typedef {object} Consent
 * @property {string[]} addresses that may be dialled: those that were asked
 * @property {boolean} isLocal whether all of them are on this machine, which needs no consent
 * @property {number | null} pingIntervalMs of the server; null if it doesn't say
 * @property {boolean} idlePings whether it leaves out pings of streams that have got a message
 */

/** @typedef {{ status: number, body: string }} Answer */
/**
 * Sends a request.
 * @typedef {(options: import('node:http').RequestOptions, onResponse: (response: import('node:http').IncomingMessage) => void,
 * onError: (error: Error) => void) => void} Asking
 */

/** @type {Asking} */
const askPlainly = (options, onResponse, onError) =>
  void request(options, onResponse).on('error', onError).end();

/** Why a target may not be dialled: NO_HOST, BAD_TARGET, NO_ANSWER, NO_CONSENT. */
export class Refusal extends HoldfastError {
  /** @param {string} code @param {string} message @param {string} target as it was given */
  constructor(code, message, target) {
    super(code, message);
    /** The same for every reason: someone who controls a drone from elsewhere must not learn what is in its network. */
    this.answer = `refusing to load ${target}: it did not confirm that it accepts load, or has more than one port or ${MOST_ELSEWHERE} addresses; ${RULE}`;
  }
}

/** @param {string} address an IP address */
export function isLoopback(address) {
  const plain = address.replace(/^::ffff:/i, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/**
 * Asks one address after the other, and stops at the first that refuses.
 * @param {string[]} hosts names or addresses of one server
 * @param {number[]} ports
 * @param {Asking} [via] how to ask, if not in plain HTTP
 * @returns {Promise<Consent>}
 * @throws {Refusal} after ANSWER_MS; BAD_CERTIFICATE if it is one of this machine that is not accepted
 */
export async function askConsent(hosts, ports, via = askPlainly) {
  const begunMs = performance.now();
  try {
    return await consentOf(hosts, ports, AbortSignal.timeout(ANSWER_MS), via);
  } catch (error) {
    if (isOfCertificate(error)) throw error;
    await after(begunMs + ANSWER_MS - performance.now());
    throw error;
  }
}

/** @param {unknown} error */
function isOfCertificate(error) {
  return codeOf(error) === 'BAD_CERTIFICATE';
}

/** @param {string[]} hosts @param {number[]} ports @param {AbortSignal} signal @param {Asking} via @returns {Promise<Consent>} */
async function consentOf(hosts, ports, signal, via) {
  const addresses = [];
  for (const host of hosts) addresses.push(await addressOf(host, ports[0], signal));
  const isLocal = addresses.every(isLoopback);
  if (isLocal) {
    const answer = await ask(addresses[0], hosts[0], ports[0], signal, via).catch((error) => {
      if (isOfCertificate(error)) throw error;
      return null;
    });
    return { addresses: [...new Set(addresses)], isLocal, ...pingsIn(parse(answer)) };
  }
  if (ports.length > 1 || addresses.length > MOST_ELSEWHERE)
    throw refusal(
      'BAD_TARGET',
      hosts[0],
      ports[0],
      `several ports, or more than ${MOST_ELSEWHERE} addresses, are only for loopback`,
    );
  const said = [];
  for (const [i, address] of addresses.entries())
    said.push(await consentAt(address, hosts[i], ports[0], signal, via));
  return { addresses: [...new Set(addresses)], isLocal, ...pingsIn(said[0]) };
}

/**
 * @param {string} host @param {number} port @param {AbortSignal} signal
 * @returns {Promise<string>}
 * @throws {Refusal} NO_HOST
 */
async function addressOf(host, port, signal) {
  if (isIP(host) !== 0) return host;
  try {
    return (await Promise.race([lookup(host), rejectionOf(signal)])).address;
  } catch (error) {
    throw new Refusal('NO_HOST', `unknown host '${host}' (${messageOf(error)})`, targetOf(host, port));
  }
}

/** A lookup can't be ended. @param {AbortSignal} signal @returns {Promise<never>} */
function rejectionOf(signal) {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );
}

/**
 * @param {string} address @param {string} host @param {number} port @param {AbortSignal} signal @param {Asking} via
 * @returns {Promise<any>} what it said
 * @throws {Refusal} NO_ANSWER, NO_CONSENT
 */
async function consentAt(address, host, port, signal, via) {
  const answer = await ask(address, host, port, signal, via).catch((error) => {
    throw refusal('NO_ANSWER', host, port, `it does not answer (${messageOf(error)})`);
  });
  const said = parse(answer);
  if (said?.consent === true) return said;
  const why = answer.status === 200 ? 'does not contain "consent": true' : `has status ${answer.status}`;
  throw refusal('NO_CONSENT', host, port, `${CONSENT_PATH} ${why}`);
}

/** @param {string} code @param {string} host @param {number} port @param {string} why */
function refusal(code, host, port, why) {
  const target = targetOf(host, port);
  return new Refusal(code, `refusing to load ${target}: ${why}; ${RULE}`, target);
}

/** @param {string} host @param {number} port */
function targetOf(host, port) {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** @param {Answer | null} answer @returns {any} null if it isn't a 200 with JSON */
function parse(answer) {
  try {
    return answer?.status === 200 ? JSON.parse(answer.body) : null;
  } catch {
    return null;
  }
}

/** @param {any} said @returns {Pick<Consent, 'pingIntervalMs' | 'idlePings'>} */
function pingsIn(said) {
  const interval = Number(said?.pingIntervalMs);
  const isKnown = interval > 0 && Number.isFinite(interval);
  return { pingIntervalMs: isKnown ? interval : null, idlePings: said?.idlePings === true };
}

/**
 * One request, to the address that would be dialled, without following redirects.
 * @param {string} address @param {string} host @param {number} port @param {AbortSignal} signal @param {Asking} via
 * @returns {Promise<Answer>}
 */
function ask(address, host, port, signal, via) {
  return new Promise((resolve, reject) => {
    const options = {
      host: address,
      port,
      path: CONSENT_PATH,
      agent: false,
      headers: { Host: targetOf(host, port) },
      signal,
    };
    const onResponse = (/** @type {import('node:http').IncomingMessage} */ response) => {
      let body = '';
      response.setEncoding('latin1');
      response.on('data', (data) => {
        body += data;
        if (body.length > MOST_ANSWER_BYTES) response.destroy(new Error('its answer is too long'));
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    };
    via(options, onResponse, reject);
  });
}
