/*
 * Verifies tokens, and remembers the outcome.
 *
 *     verify --known--> session, or the same error again
 *        \--new--> parsed, claims checked --HS256--> session or error, at once
 *                                         \--public key--> waiting --valid--> session
 *                                              |  \--no key fits--> after the next answer of the JWKS URL: again, once
 *                                              \--too many--> BusyError
 *
 * Whatever is cheap to refuse is refused before the signature is looked at. Equal tokens that arrive while one is being
 * verified share its outcome. Nothing of a token is kept but a hash of it, and the outcome only once it came twice: keeping
 * those of a million different tokens would cost more than verifying them, and displace those that everybody sends.
 */
import { hash } from 'node:crypto';
import { checkClaims } from './claims.js';
import { draftGrants, labelOf, legacyGrants, Session } from './grants.js';
import { parseJws } from './jws.js';
import { BusyError, TokenError } from './refusals.js';
import { Room } from './room.js';
import { Seen } from './seen.js';
import { Shelf } from './shelf.js';
import { matchesMac, Signatures } from './signatures.js';

const LIFE_MS = 300_000;
const FAILURE_MS = 10_000;
/** A key that is missing now may be at the JWKS URL soon. */
const NO_KEY_MS = 1000;
const MOST_BYTES = 8_388_608;
const MOST_FAILURE_BYTES = 1_048_576;
/** What an entry takes at least, measured; and the grants of a session take less than its token is long. */
const SESSION_BYTES = 250;
const FAILURE_BYTES = 200;
/** Tokens that wait for the thread pool: some 15,000. */
const MOST_QUEUED_BYTES = 16_777_216;
/** Those that wait for the JWKS URL have a room of their own: anybody can invent the id of a key. */
const MOST_UNKNOWN_BYTES = 8_388_608;
const PENDING_BYTES = 512;

const BAD_SIGNATURE = new TokenError('its signature is not that of a key we have');
const NO_KEYS = new BusyError("the keys of the JWKS URL can't be fetched");

/** @typedef {import('./keys.js').Key} Key */
/** @typedef {import('./keys.js').Keys} Keys */
/** @typedef {import('./keys.js').Roles} Roles */
/** @typedef {import('./jws.js').Jws} Jws */
/** @typedef {{ jws: Jws, facts: import('./claims.js').Facts, key: string }} Checked a token but for its signature */

/**
 * @typedef {object} Options
 * @property {Keys} keys
 * @property {import('./claims.js').Rules} rules
 * @property {string} baseUrl of the hub: relative patterns and topics resolve against it
 * @property {() => number} [now] ms since 1970
 * @property {Signatures} [signatures]
 * @property {number} [mostBytes] of sessions that are kept
 * @property {number} [mostQueuedBytes] of tokens that wait for the thread pool
 * @property {number} [mostUnknownBytes] of tokens that wait for the JWKS URL
 */

export class Tokens {
  /** @param {Options} options */
  constructor({
    keys,
    rules,
    baseUrl,
    now = Date.now,
    signatures = new Signatures(),
    mostBytes = MOST_BYTES,
    mostQueuedBytes = MOST_QUEUED_BYTES,
    mostUnknownBytes = MOST_UNKNOWN_BYTES,
  }) {
    this.keys = keys;
    this.rules = rules;
    this.baseUrl = baseUrl;
    this.now = now;
    this.signatures = signatures;
    this.queued = new Room(mostQueuedBytes);
    this.unknown = new Room(mostUnknownBytes);
    /** By hash. @type {Shelf<Session>} */
    this.sessions = new Shelf({ mostBytes, now });
    /** Their own, so that bad tokens don't displace good ones. @type {Shelf<TokenError>} */
    this.failures = new Shelf({ mostBytes: MOST_FAILURE_BYTES, now });
    /** Most tokens that one client has for itself come once: they are remembered when they come again. */
    this.seen = new Seen();
    /** Those being verified. @type {Map<string, Promise<Session>>} */
    this.pending = new Map();
    /** Counts the times everything was forgotten: what began before that is not kept. */
    this.generation = 0;
    keys.onChange(() => this.forgetAll());
  }

  /**
   * @param {string} token
   * @returns {Session | Promise<Session>} at once if it is known or for HS256
   * @throws {TokenError | BusyError} or rejects with it
   */
  verify(token) {
    const key = hash('sha256', token, 'binary');
    const session = this.sessions.get(key);
    if (session) return session;
    const failure = this.failures.get(key);
    if (failure) throw failure;
    return this.pending.get(key) ?? this.check(token, key);
  }

  /** @param {string} token @param {string} key @returns {Session | Promise<Session>} */
  check(token, key) {
    const jws = parseJws(token);
    const facts = checkClaims(jws.header.typ, jws.claims, this.rules, this.now());
    const checked = { jws, facts, key };
    const candidates = this.keys.candidates(jws.header);
    if (jws.header.alg === 'HS256') {
      const signer = candidates.find((one) => matchesMac(one, jws.signed, jws.signature));
      return this.settle(checked, signer && rolesOf(signer, candidates), this.generation);
    }
    if (candidates.length === 0 && !this.keys.mayHaveMore(jws.header)) throw BAD_SIGNATURE;
    const session = this.checkLater(checked).finally(() => this.pending.delete(key));
    this.pending.set(key, session);
    return session;
  }

  /** @param {Checked} checked @returns {Promise<Session>} */
  async checkLater(checked) {
    const { jws } = checked;
    const bytes = PENDING_BYTES + jws.signed.length;
    const { generation } = this;
    const roles = await this.queued.during(bytes, () => this.rolesIn(jws));
    const mayHaveMore = this.keys.mayHaveMore(jws.header);
    if (roles || (generation === this.generation && !mayHaveMore))
      return this.settle(checked, roles, generation);
    if (mayHaveMore) await this.unknown.during(bytes, () => this.refetched());
    const later = this.generation; // the keys may have changed
    return this.settle(checked, await this.queued.during(bytes, () => this.rolesIn(jws)), later);
  }

  /** Waits until the JWKS URL has answered. */
  async refetched() {
    try {
      await this.keys.refetch();
    } catch {
      throw NO_KEYS;
    }
  }

  /** @param {Jws} jws @returns {Promise<Roles | undefined>} of the key that has signed it; undefined if it is none of ours */
  async rolesIn({ header, signed, signature }) {
    const candidates = this.keys.candidates(header);
    for (const one of candidates)
      if (await this.signatures.verify(one, signed, signature)) return rolesOf(one, candidates);
    return undefined;
  }

  /**
   * @param {Checked} checked @param {Roles | undefined} roles undefined if the signature is not valid
   * @param {number} generation when it was verified
   * @returns {Session}
   */
  settle({ jws, facts, key }, roles, generation) {
    const isCurrent = generation === this.generation; // otherwise the key may be gone
    try {
      if (!roles) throw BAD_SIGNATURE;
      const session = sessionOf(jws.claims, facts, roles, this.baseUrl);
      const lifeMs = Math.min(LIFE_MS, facts.expiresAtMs - this.now());
      if (isCurrent && this.seen.again(key))
        this.sessions.set(key, session, lifeMs, SESSION_BYTES + jws.signed.length);
      return session;
    } catch (error) {
      const lifeMs = !roles && this.keys.mayHaveMore(jws.header) ? NO_KEY_MS : FAILURE_MS;
      if (isCurrent && error instanceof TokenError && this.seen.again(key))
        this.failures.set(key, error, lifeMs, FAILURE_BYTES);
      throw error;
    }
  }

  /**
   * Tokens of a subject, or one by its id, are verified again when they come back.
   * @param {{ subject?: string, tokenId?: string }} whose
   */
  forget({ subject = '', tokenId = '' }) {
    const [subjectLabel, tokenLabel] = [labelOf(subject), labelOf(tokenId)];
    this.generation++;
    this.sessions.deleteWhere(
      (session) =>
        (subject !== '' && session.subject === subjectLabel) ||
        (tokenId !== '' && session.token === tokenLabel),
    );
  }

  forgetAll() {
    this.generation++;
    this.sessions.clear();
    this.failures.clear();
  }
}

/** @param {Key} signer @param {readonly Key[]} candidates the same key may be there for each role @returns {Roles} */
function rolesOf(signer, candidates) {
  const same = candidates.filter(({ key }) => key === signer.key || key.equals(signer.key));
  return {
    canPublish: same.some(({ canPublish }) => canPublish),
    canSubscribe: same.some(({ canSubscribe }) => canSubscribe),
  };
}

/**
 * @param {Record<string, unknown>} claims @param {import('./claims.js').Facts} facts @param {Roles} roles
 * @param {string} baseUrl
 * @returns {Session}
 */
function sessionOf(claims, facts, { canPublish, canSubscribe }, baseUrl) {
  const { dialect, expiresAtMs, audiences } = facts;
  const all =
    dialect === 'draft' ? draftGrants(claims.authorization_details, baseUrl) : legacyGrants(claims, baseUrl);
  const grants = {
    publish: canPublish ? all.publish : [],
    subscribe: canSubscribe ? all.subscribe : [],
    details: canSubscribe ? all.details : [],
  };
  const [subject, token] = [textLabel(claims.sub), textLabel(claims.jti)];
  return new Session(grants, { dialect, expiresAtMs, subject, token, audiences });
}

/** @param {unknown} value of sub or jti, which should be a text; some issuers use numbers @returns {number} */
function textLabel(value) {
  return typeof value === 'string' || typeof value === 'number' ? labelOf(String(value)) : 0;
}
