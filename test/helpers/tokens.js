/*
 * Keys and tokens for the tests of the hub, made with jose, and a JWKS URL.
 */
import { createServer } from 'node:http';
import { exportJWK, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { Keys, openKeys } from '../../hub/access/keys.js';
import { Tokens } from '../../hub/access/tokens.js';

export const SECRET = 'a secret of more than thirty-two bytes';
export const HUB = 'https://hub.example.com/.well-known/mercure';
export const DETAIL = 'https://mercure.rocks/authorization-detail';
/** A fixed now for tests with expiry: 2026-01-01. */
export const NOW_S = 1_767_225_600;

/** @typedef {'RS256' | 'ES256' | 'EdDSA'} PublicAlgorithm */

/** Made once for each algorithm. @type {Map<string, Promise<Awaited<ReturnType<typeof makeKeyPair>>>>} */
const pairs = new Map();

/** @param {PublicAlgorithm} algorithm @param {string} [name] another name is another pair */
export function keyPair(algorithm, name = 'one') {
  const id = `${algorithm} ${name}`;
  const pair = pairs.get(id) ?? makeKeyPair(algorithm, name);
  pairs.set(id, pair);
  return pair;
}

/** @param {PublicAlgorithm} algorithm @param {string} kid */
async function makeKeyPair(algorithm, kid) {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = { ...(await exportJWK(publicKey)), kid };
  return { privateKey, jwk, pem: await exportSPKI(publicKey) };
}

/**
 * @param {Record<string, unknown>} claims
 * @param {object} [how]
 * @param {import('jose').CryptoKey | string} [how.key] a text is a secret
 * @param {Record<string, unknown>} [how.header] besides alg
 * @param {string} [how.alg]
 * @returns {Promise<string>}
 */
export function sign(claims, { key = SECRET, header = {}, alg = 'HS256' } = {}) {
  const bytes = typeof key === 'string' ? new TextEncoder().encode(key) : key;
  return new SignJWT(claims).setProtectedHeader({ alg, ...header }).sign(bytes);
}

/**
 * The claims of a token of draft-08 that is valid at the hub for an hour.
 * @param {object} [grants]
 * @param {unknown[]} [grants.publish] topics, as in the claim
 * @param {unknown[]} [grants.subscribe]
 * @returns {Record<string, unknown>}
 */
export function draftClaims({ publish = [], subscribe = [] } = {}) {
  const details = [
    ...(publish.length > 0 ? [{ type: DETAIL, actions: ['publish'], topics: publish }] : []),
    ...(subscribe.length > 0 ? [{ type: DETAIL, actions: ['subscribe'], topics: subscribe }] : []),
  ];
  const exp = Math.floor(Date.now() / 1000) + 3600;
  return { iss: 'https://example.com', aud: HUB, exp, authorization_details: details };
}

/** The header of a token of draft-08. */
export const AT_JWT = { typ: 'at+jwt' };

/** Without any bytes of a signature that could be valid. @param {object} header @param {object} claims @param {string} [signature] */
export function unsigned(header, claims, signature = '') {
  const parts = [header, claims].map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'));
  return `${parts.join('.')}.${signature}`;
}

/**
 * @param {import('../../hub/access/keys.js').KeySettings | Keys} keys
 * @param {Partial<Omit<import('../../hub/access/tokens.js').Options, 'rules'>> & { rules?: Partial<import('../../hub/access/claims.js').Rules> }} [options]
 * @returns {Promise<Tokens>}
 */
export async function tokensWith(keys, { rules, ...options } = {}) {
  const opened = keys instanceof Keys ? keys : await openKeys(keys);
  const all = { issuer: '', audience: HUB, isLegacyAllowed: true, ...rules };
  return new Tokens({ keys: opened, baseUrl: HUB, ...options, rules: all });
}

/**
 * A JWKS URL.
 * @param {import('node:test').TestContext} t it is closed after the test
 * @param {unknown[]} keys
 */
export async function jwksServer(t, keys) {
  const state = {
    /** What it serves now. */
    keys,
    requests: 0,
    /** Answers instead of it. @type {import('node:http').RequestListener | null} */
    answer: null,
    url: '',
    close: () => {},
  };
  const server = createServer((request, response) => {
    state.requests++;
    if (state.answer) return state.answer(request, response);
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ keys: state.keys }));
  });
  state.close = () => {
    server.close();
    server.closeAllConnections();
  };
  t.after(state.close);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  state.url = `http://127.0.0.1:${port}/jwks?client=secret`;
  return state;
}
