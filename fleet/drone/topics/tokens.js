/*
 * The tokens that streams send: one that was given, or JWTs made from a secret, for each stream or for all. They are made a
 * few at a time before they are needed, and again when half of their time has passed.
 */
import { createHmac, createPrivateKey, createSecretKey, sign } from 'node:crypto';
import { fill } from './template.js';

/** Made together: about 2 ms of work with HS256, and 20 with ES256. */
const SOME = 256;
const DETAIL = 'https://mercure.rocks/authorization-detail';

/** @typedef {'0.x' | 'draft-08'} Dialect */

/** @type {Record<string, string>} */
const ALGORITHMS = { ec: 'ES256', rsa: 'RS256', ed25519: 'EdDSA' };

/**
 * Makes JWTs.
 * @typedef {object} Signer
 * @property {string} secret for HS256, or a private key in PEM
 * @property {Dialect} dialect
 * @property {number} ttlS
 * @property {object} [claims] more of them
 */

/** @param {string} secret @returns {{ alg: string, signatureOf: (text: string) => string }} @throws if the key is no good */
function keyOf(secret) {
  if (!secret.startsWith('-----BEGIN')) {
    const key = createSecretKey(Buffer.from(secret));
    return {
      alg: 'HS256',
      signatureOf: (text) => createHmac('sha256', key).update(text).digest('base64url'),
    };
  }
  const key = createPrivateKey(secret);
  const alg = ALGORITHMS[key.asymmetricKeyType ?? ''];
  if (!alg) throw new Error(`keys of the type ${key.asymmetricKeyType} are not supported`);
  const options = { key, dsaEncoding: /** @type {const} */ ('ieee-p1363') };
  const hash = alg === 'EdDSA' ? null : 'sha256';
  return { alg, signatureOf: (text) => sign(hash, Buffer.from(text), options).toString('base64url') };
}

/** @param {string} secret @returns {string} what is wrong with it; '' if nothing */
export function problemOf(secret) {
  try {
    keyOf(secret);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/**
 * @param {Signer} signer
 * @returns {(subject: string, action: 'subscribe' | 'publish', topics: string[]) => string} which makes a JWT that is valid from now on
 */
export function signerOf({ secret, dialect, ttlS, claims = {} }) {
  const { alg, signatureOf } = keyOf(secret);
  const isOld = dialect === '0.x';
  const head = encoded({ alg, typ: isOld ? 'JWT' : 'at+jwt' });
  return (sub, action, topics) => {
    const iat = Math.floor(Date.now() / 1000);
    const details = [{ type: DETAIL, actions: [action], topics: topics.map((match) => ({ match })) }];
    const grants = isOld ? { mercure: { [action]: topics } } : { authorization_details: details };
    const text = `${head}.${encoded({ sub, iat, exp: iat + ttlS, ...grants, ...claims })}`;
    return `${text}.${signatureOf(text)}`;
  };
}

/** @param {object} value */
function encoded(value) {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

/** The tokens of streams, by place. */
export class Tokens {
  /**
   * @param {Signer} signer
   * @param {import('../dial.js').Subscription} subscription
   */
  constructor(signer, { topics, first, step, isTokenShared }) {
    this.create = signerOf(signer);
    this.topics = topics;
    this.numberOf = (/** @type {number} */ place) => first + step * place;
    this.isShared = isTokenShared;
    this.renewMs = signer.ttlS * 500;
    /** When the tokens were made, SOME at a time. @type {number[]} */
    this.madeMs = [];
  }

  /** @returns {number} how many streams have one */
  get ready() {
    if (this.isShared && this.madeMs.length > 0) return Number.POSITIVE_INFINITY;
    return this.madeMs.length * SOME;
  }

  /**
   * Makes the next ones that are missing or too old.
   * @param {number} nowMs @param {number} count of streams
   * @returns {{ from: number, tokens: string[] } | null} null if there are none
   */
  next(nowMs, count) {
    const needed = this.isShared ? 1 : Math.ceil(count / SOME);
    const old = this.madeMs.findIndex((madeMs, i) => i < needed && nowMs - madeMs > this.renewMs);
    const index = old >= 0 ? old : this.madeMs.length;
    if (index >= needed) return null;
    this.madeMs[index] = nowMs;
    const from = index * SOME;
    return {
      from,
      tokens: Array.from({ length: this.isShared ? 1 : SOME }, (_, i) => this.tokenOf(from + i)),
    };
  }

  /** @param {number} place */
  tokenOf(place) {
    if (this.isShared) return this.create('fleet', 'subscribe', ['*']);
    const number = this.numberOf(place);
    return this.create(
      `user-${number}`,
      'subscribe',
      this.topics.map((topic) => fill(topic, { number })),
    );
  }
}
