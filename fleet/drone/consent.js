/*
 * Which servers a drone may dial: this machine, or a server that says it accepts load. Any other server gets this one
 * question and nothing else.
 */
import { lookup } from 'node:dns/promises';
import { request } from 'node:http';
import { isIP } from 'node:net';
import { HoldfastError, messageOf } from '../../lib/errors.js';

export const CONSENT_PATH = '/.well-known/holdfast-load';
const ANSWER_MS = 5000;
const MOST_ANSWER_BYTES = 4096;

/**
 * @typedef {object} Consent
 * @property {string} address that may be dialled: the one that was asked
 * @property {number | null} pingIntervalMs of the server; null if it doesn't say
 */

/** @param {string} address an IP address */
export function isLoopback(address) {
  const plain = address.replace(/^::ffff:/i, '');
  return plain === '::1' || (isIP(plain) === 4 && plain.startsWith('127.'));
}

/**
 * @param {string} host a name or an address
 * @param {number} port
 * @returns {Promise<Consent>}
 * @throws {HoldfastError} NO_CONSENT with the reason; NO_HOST
 */
export async function askConsent(host, port) {
  const address = await addressOf(host);
  const answer = await ask(address, host, port).catch((error) => {
    if (isLoopback(address)) return null;
    throw refused(host, port, `it does not answer (${messageOf(error)})`);
  });
  const said = answer?.status === 200 ? parse(answer.body) : null;
  if (!isLoopback(address)) {
    if (answer?.status !== 200) throw refused(host, port, `${CONSENT_PATH} has status ${answer?.status}`);
    if (said?.consent !== true) throw refused(host, port, `${CONSENT_PATH} does not contain "consent": true`);
  }
  const interval = Number(said?.pingIntervalMs);
  return { address, pingIntervalMs: interval > 0 ? interval : null };
}

/** @param {string} host */
async function addressOf(host) {
  try {
    return (await lookup(host)).address;
  } catch (error) {
    throw new HoldfastError('NO_HOST', `unknown host '${host}' (${messageOf(error)})`);
  }
}

/** @param {string} host @param {number} port @param {string} why */
function refused(host, port, why) {
  const line = `refusing to load ${host}:${port}: ${why}; drones load only this machine, or a server started with --accept-load`;
  return new HoldfastError('NO_CONSENT', line);
}

/** @param {string} body @returns {any} null if it isn't JSON */
function parse(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}

/**
 * One request, to the address that would be dialled, without following redirects.
 * @param {string} address @param {string} host @param {number} port
 * @returns {Promise<{ status: number, body: string }>}
 */
function ask(address, host, port) {
  return new Promise((resolve, reject) => {
    const options = {
      host: address,
      port,
      path: CONSENT_PATH,
      agent: false,
      headers: { Host: isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}` },
      signal: AbortSignal.timeout(ANSWER_MS),
    };
    const question = request(options, (response) => {
      let body = '';
      response.setEncoding('latin1');
      response.on('data', (data) => {
        body += data;
        if (body.length > MOST_ANSWER_BYTES) response.destroy(new Error('its answer is too long'));
      });
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }));
    });
    question.on('error', reject);
    question.end();
  });
}
