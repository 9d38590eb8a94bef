/*
 * The keys that verify tokens: secrets and public keys given as text, and those of a JWKS URL. Each is bound to one algorithm
 * and to roles when it is read, so a token can only choose among keys that fit its algorithm.
 */
import { createPublicKey, createSecretKey, KeyObject } from 'node:crypto';
import { HoldfastError } from '../../lib/errors.js';
import { RemoteKeys } from './jwks.js';
import { Mac } from './mac.js';

/** RFC 7518, section 3.3; verification with very long keys is a way to keep us busy. */
const LEAST_RSA_BITS = 2048;
const MOST_RSA_BITS = 8192;
/** The most keys that one token is tried with. */
const MOST_CANDIDATES = 8;
const PEM = /^\s*-----BEGIN ([^-]*)/;

/** @typedef {'HS256' | 'RS256' | 'ES256' | 'EdDSA'} Algorithm */
/** @typedef {import('jose').JWK} Jwk */

/**
 * @typedef {object} Key
 * @property {Algorithm} algorithm
 * @property {string | undefined} kid
 * @property {KeyObject} key
 * @property {Mac} [mac] for HS256
 * @property {boolean} canPublish whether tokens signed with it may publish
 * @property {boolean} canSubscribe
 *
 * @typedef {Pick<Key, 'canPublish' | 'canSubscribe'>} Roles
 *
 * @typedef {object} KeySettings texts: a PEM, a JWK or JWK set, or a secret for HS256; '' for none
 * @property {string} [secret] for both roles; no PEM
 * @property {string} [publisherKey] then only tokens signed with it may publish
 * @property {string} [subscriberKey] then only tokens signed with it may subscribe
 * @property {string} [jwksUrl] for both roles
 */

/** Names that tokens use for algorithms. RFC 9864 calls EdDSA Ed25519. @type {ReadonlyMap<string, Algorithm>} */
const ALGORITHMS = new Map([
  ['HS256', 'HS256'],
  ['RS256', 'RS256'],
  ['ES256', 'ES256'],
  ['EdDSA', 'EdDSA'],
  ['Ed25519', 'EdDSA'],
]);

/** What each option is called in an error. */
const NAMES = {
  secret: 'the secret (--jwt-secret)',
  publisherKey: 'the publisher key (--jwt-publisher-key)',
  subscriberKey: 'the subscriber key (--jwt-subscriber-key)',
};

/**
 * @param {KeySettings} settings
 * @param {Partial<import('./jwks.js').Options>} [options]
 * @returns {Promise<Keys>} once the JWKS URL has answered, or failed to; `onNote` says so
 * @throws {HoldfastError} BAD_OPTION if a key can't be used; without the key
 */
export async function openKeys({ secret, publisherKey, subscriberKey, jwksUrl }, options) {
  const shared = { canPublish: !publisherKey, canSubscribe: !subscriberKey };
  const fixed = [
    ...(secret ? [secretOf('secret', secret, shared)] : []),
    ...(publisherKey ? await keysOf('publisherKey', publisherKey, roles(true, false)) : []),
    ...(subscriberKey ? await keysOf('subscriberKey', subscriberKey, roles(false, true)) : []),
  ];
  const remote = jwksUrl ? new RemoteKeys(jwksUrl, (jwk) => publicKeyOf(jwk, shared), options) : null;
  await remote?.start();
  return new Keys(fixed, remote, remote !== null && shared.canPublish);
}

/** @param {boolean} canPublish @param {boolean} canSubscribe @returns {Roles} */
const roles = (canPublish, canSubscribe) => ({ canPublish, canSubscribe });

export class Keys {
  /** @param {readonly Key[]} fixed @param {RemoteKeys | null} remote @param {boolean} canRemotePublish */
  constructor(fixed, remote, canRemotePublish) {
    this.fixed = fixed;
    this.remote = remote;
    /** Whether a token could allow publishing; the JWKS URL may not have answered yet. */
    this.canPublish = canRemotePublish || fixed.some(({ canPublish }) => canPublish);
  }

  /** Whether there are any, or there could be. */
  get exist() {
    return this.remote !== null || this.fixed.length > 0;
  }

  /**
   * @param {import('./jws.js').Header} header `kid` only chooses among keys that have one
   * @returns {readonly Key[]} those the token can be signed with
   */
  candidates({ alg, kid }) {
    const algorithm = ALGORITHMS.get(alg);
    const fits = (/** @type {Key} */ key) =>
      key.algorithm === algorithm && (kid === undefined || key.kid === undefined || key.kid === kid);
    const found = this.fixed.filter(fits);
    if (this.remote) found.push(...this.remote.keys.filter(fits));
    return found.length > MOST_CANDIDATES ? found.slice(0, MOST_CANDIDATES) : found;
  }

  /** @param {import('./jws.js').Header} header @returns {boolean} whether the JWKS URL could have a key for it that we don't know */
  mayHaveMore({ alg, kid }) {
    const algorithm = ALGORITHMS.get(alg);
    if (!this.remote || !algorithm || algorithm === 'HS256') return false;
    return (
      kid === undefined || !this.remote.keys.some((key) => key.algorithm === algorithm && key.kid === kid)
    );
  }

  /** @returns {Promise<void>} once a request to the JWKS URL that began after this call was answered; rejects if it failed */
  async refetch() {
    await this.remote?.refetch();
  }

  /** @param {() => void} listener called when a key has gone, come or changed */
  onChange(listener) {
    if (this.remote) this.remote.onChange = listener;
  }

  close() {
    this.remote?.close();
  }
}

/** @param {keyof typeof NAMES} name @param {string} text @param {Roles} role @returns {Key} */
function secretOf(name, text, role) {
  const what = mistakenFor(text);
  if (what) throw badKey(name, `is ${what}, which everybody may know: it can't be a secret`);
  return hmacKey(Buffer.from(text), undefined, role);
}

/** @param {string} text @returns {string} what is public and was given as a secret; '' if it looks like one */
function mistakenFor(text) {
  if (PEM.test(text)) return 'a PEM';
  if (/^\s*(\[\s*)?\{\s*"/.test(text)) return 'JSON, but not a valid JWK or JWK set';
  if (/^\s*https?:/i.test(text)) return 'a URL (that of a JWK set belongs to --jwks-url)';
  if (/^\s*(ssh-|ecdsa-)/.test(text)) return 'a key of SSH (make it a PEM: ssh-keygen -e -m PKCS8)';
  try {
    createPublicKey({ key: Buffer.from(text, 'base64'), format: 'der', type: 'spki' });
    return 'a public key without the first and the last line of a PEM';
  } catch {
    return '';
  }
}

/** @param {Buffer} bytes @param {string | undefined} kid @param {Roles} role @returns {Key} */
function hmacKey(bytes, kid, role) {
  return { algorithm: 'HS256', kid, key: createSecretKey(bytes), mac: new Mac(bytes), ...role };
}

/**
 * @param {'publisherKey' | 'subscriberKey'} name @param {string} text @param {Roles} role
 * @returns {Promise<Key[]>}
 */
async function keysOf(name, text, role) {
  const [, label] = PEM.exec(text) ?? [];
  if (label !== undefined) return [await pemKeyOf(name, label, text, role)];
  const jwks = jwksIn(text);
  if (!jwks) return [secretOf(name, text, role)];
  const keys = await Promise.all(jwks.map((jwk) => jwkOf(name, jwk, role)));
  if (keys.length === 0) throw badKey(name, 'has no keys in it');
  return keys;
}

/** @param {keyof typeof NAMES} name @param {Jwk} jwk @param {Roles} role @returns {Promise<Key>} */
async function jwkOf(name, jwk, role) {
  const isSecret = jwk?.kty === 'oct' && typeof jwk.k === 'string' && (jwk.alg ?? 'HS256') === 'HS256';
  if (isSecret && jwk.k) return hmacKey(Buffer.from(jwk.k, 'base64url'), jwk.kid, role);
  const key = await publicKeyOf(jwk, role);
  if (!key)
    throw badKey(name, 'is not a public key for RS256 (2,048 to 8,192 bits), ES256 or EdDSA (Ed25519)');
  return key;
}

/** @param {keyof typeof NAMES} name @param {string} label @param {string} text @param {Roles} role @returns {Promise<Key>} */
async function pemKeyOf(name, label, text, role) {
  if (label.includes('PRIVATE')) throw badKey(name, 'is a private key: give the public one');
  let jwk;
  try {
    jwk = createPublicKey(text.replaceAll('\\n', '\n')).export({ format: 'jwk' }); // environment variables often have \n
  } catch {
    throw badKey(name, 'is not a valid PEM of a public key or a certificate');
  }
  return jwkOf(name, /** @type {Jwk} */ (jwk), role);
}

/** @param {string} text @returns {Jwk[] | null} null if it is neither a JWK nor a set of them */
function jwksIn(text) {
  if (!text.trimStart().startsWith('{')) return null;
  try {
    const value = JSON.parse(text);
    return Array.isArray(value.keys) ? value.keys : typeof value.kty === 'string' ? [value] : null;
  } catch {
    return null;
  }
}

/**
 * @param {Jwk} jwk @param {Roles} role
 * @returns {Promise<Key | null>} null if it is not a public key for signatures that we verify
 */
async function publicKeyOf(jwk, role) {
  const algorithm = algorithmOf(jwk);
  if (!algorithm) return null;
  const { kty, crv, n, e, x, y, kid } = jwk;
  const { importJWK } = await import('jose'); // 3 MB in each worker that has such keys
  try {
    const imported = await importJWK({ kty, crv, n, e, x, y }, algorithm);
    const key = KeyObject.from(/** @type {import('node:crypto').webcrypto.CryptoKey} */ (imported));
    const bits = key.asymmetricKeyDetails?.modulusLength ?? LEAST_RSA_BITS;
    if (bits < LEAST_RSA_BITS || bits > MOST_RSA_BITS) return null;
    return { algorithm, kid: typeof kid === 'string' ? kid : undefined, key, ...role };
  } catch {
    return null;
  }
}

/** @param {Jwk} jwk @returns {Algorithm | undefined} the one it is for; undefined if it is not for signatures, or private */
function algorithmOf(jwk) {
  if (typeof jwk !== 'object' || jwk === null) return undefined;
  const { kty, crv, alg, use, key_ops: operations } = jwk;
  if ('d' in jwk || (use ?? 'sig') !== 'sig') return undefined;
  if (operations !== undefined && !(Array.isArray(operations) && operations.includes('verify')))
    return undefined;
  const own = kty === 'RSA' ? 'RS256' : crv === 'P-256' ? 'ES256' : crv === 'Ed25519' ? 'EdDSA' : undefined;
  return alg === undefined || ALGORITHMS.get(alg) === own ? own : undefined;
}

/** @param {keyof typeof NAMES} name @param {string} problem */
function badKey(name, problem) {
  return new HoldfastError('BAD_OPTION', `${NAMES[name]} ${problem}`);
}
