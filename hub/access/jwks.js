/*
 * The keys behind a JWKS URL: fetched at the start, every few minutes, and when a token has a key that we don't know. While the
 * URL is down, the last ones stay.
 *
 *     idle --due, or wanted--> fetching --200--> idle: the keys are replaced
 *                                  \--failed--> idle: the keys stay; again sooner
 *
 * Whoever wants a key waits for a request that begins after that: one under way may have been answered before the key was
 * there. Requests begin at least COOLDOWN_MS apart, and everyone who waits shares the next one, so tokens with invented key
 * ids cost the URL nothing more, and a real new key is accepted late instead of refused. RFC 7517, section 5.
 */
import { messageOf } from '../../lib/errors.js';
import { printable } from '../../lib/format.js';

const REFRESH_MS = 300_000;
const RETRY_MS = 5000;
const COOLDOWN_MS = 2000;
const FETCH_MS = 5000;
const MOST_BYTES = 262_144;
const MOST_KEYS = 100;

/** @typedef {import('./keys.js').Key} Key */
/** @typedef {import('jose').JWK} Jwk */

/**
 * @typedef {object} Options
 * @property {number} refreshMs between two requests if nobody wants a key
 * @property {number} retryMs after a failed one; doubled each time, up to `refreshMs`
 * @property {number} cooldownMs at least between the beginnings of two
 * @property {number} fetchMs within which an answer must be complete
 * @property {(line: string) => void} onNote called when the URL begins to fail, and when it is back
 */

/** @type {Options} */
const DEFAULTS = {
  refreshMs: REFRESH_MS,
  retryMs: RETRY_MS,
  cooldownMs: COOLDOWN_MS,
  fetchMs: FETCH_MS,
  onNote: () => {},
};

export class RemoteKeys {
  /**
   * @param {string} url http or https
   * @param {(jwk: Jwk) => Promise<Key | null>} read null for a key that is not for us
   * @param {Partial<Options>} [options]
   */
  constructor(url, read, options) {
    this.url = url;
    /** As it appears in the log: what follows the path may be a secret. */
    this.name = url.replace(/[?#].*$/s, '');
    this.read = read;
    this.options = { ...DEFAULTS, ...options };
    /** @type {readonly Key[]} */
    this.keys = [];
    this.onChange = () => {};
    /** What the keys are made from, to see whether they changed. */
    this.source = '';
    this.failures = 0;
    this.startedMs = Number.NEGATIVE_INFINITY;
    /** The request that has not begun, for those who want a key. @type {Promise<void> | null} */
    this.next = null;
    /** Always fulfilled: one request at a time. @type {Promise<void>} */
    this.current = Promise.resolve();
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
    this.isClosed = false;
    /** Ends the pause or the request under way. */
    this.abort = () => {};
  }

  /** The first request. Never rejects: without keys the hub works, except for tokens. @returns {Promise<void>} */
  async start() {
    await this.refetch().catch(() => {});
  }

  /** @returns {Promise<void>} once a request that began after this call was answered; rejects if it failed */
  refetch() {
    this.next ??= this.afterCurrent();
    return this.next;
  }

  /** @returns {Promise<void>} */
  async afterCurrent() {
    await this.current;
    await this.pause(this.startedMs + this.options.cooldownMs - performance.now());
    const fetching = this.fetch();
    this.next = null;
    this.current = fetching.catch(() => {});
    await fetching;
  }

  /** @param {number} ms @returns {Promise<void>} */
  pause(ms) {
    if (ms <= 0 || this.isClosed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.abort = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** @returns {Promise<void>} */
  async fetch() {
    clearTimeout(this.timer);
    this.startedMs = performance.now();
    try {
      await this.replace(await this.load());
      if (this.failures > 0) this.options.onNote(`${this.name} is back`);
      this.failures = 0;
    } catch (error) {
      if (this.failures++ === 0 && !this.isClosed) this.options.onNote(this.troubleWith(error));
      throw error;
    } finally {
      if (!this.isClosed) this.schedule();
    }
  }

  /** @param {unknown} error @returns {string} */
  troubleWith(error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
    const kept = this.keys.length > 0 ? 'its last keys stay in use' : 'tokens get 503 until it answers';
    return printable(`can't get the keys of ${this.name} (${messageOf(cause)}): ${kept}`);
  }

  schedule() {
    const { refreshMs, retryMs } = this.options;
    const inMs = this.failures === 0 ? refreshMs : Math.min(refreshMs, retryMs * 2 ** (this.failures - 1));
    this.timer = setTimeout(() => void this.start(), inMs);
    this.timer.unref();
  }

  /** @returns {Promise<string>} the JSON */
  async load() {
    if (this.isClosed) throw new Error('closed');
    const controller = new AbortController();
    this.abort = () => controller.abort(new Error(`no answer within ${this.options.fetchMs} ms`));
    const timer = setTimeout(this.abort, this.options.fetchMs);
    try {
      return await textAt(this.url, controller.signal);
    } finally {
      clearTimeout(timer);
    }
  }

  /** @param {string} json */
  async replace(json) {
    if (json === this.source) return;
    const { keys } = /** @type {{ keys?: unknown }} */ (JSON.parse(json) ?? {});
    if (!Array.isArray(keys)) throw new Error('it is not a JWK set');
    const read = await Promise.all(keys.slice(0, MOST_KEYS).map((jwk) => this.read(jwk)));
    this.keys = read.filter((key) => key !== null);
    this.source = json;
    if (this.keys.length === 0) this.options.onNote(`${this.name} has no keys for RS256, ES256 or EdDSA`);
    this.onChange();
  }

  close() {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.abort();
  }
}

/** @param {string} url @param {AbortSignal} signal @returns {Promise<string>} */
async function textAt(url, signal) {
  const headers = { Accept: 'application/jwk-set+json, application/json' };
  const answer = await fetch(url, { headers, redirect: 'error', signal });
  if (answer.status === 200) return bodyOf(answer);
  await answer.body?.cancel();
  throw new Error(`status ${answer.status}`);
}

/** @param {Response} answer @returns {Promise<string>} */
async function bodyOf(answer) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of /** @type {AsyncIterable<Uint8Array>} */ (answer.body ?? [])) {
    bytes += chunk.length;
    if (bytes > MOST_BYTES) throw new Error(`more than ${MOST_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
