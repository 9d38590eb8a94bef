/*
 * Publishes numbered messages with their send time to the topics that the streams subscribe to, so that drones can check that
 * each arrives once and in order, and measure how long it takes.
 */
import { askConsent } from '../drone/consent.js';
import { Rate } from '../drone/rate.js';
import { askingWith } from '../drone/tls/security.js';
import { HUB_PATH } from '../drone/topics/subscription.js';
import { signerOf } from '../drone/topics/tokens.js';
import { audienceOf } from './audience.js';
import { hostIn, Lane } from './lane.js';

/** Connections. Each has its own topics. */
const MOST_LANES = 16;
const LEAST_TICK_MS = 1;
const MOST_TICK_MS = 100;
const HTTP_PORT = 80;
const HTTPS_PORT = 443;

/** @typedef {import('./lane.js').Topic} Topic */
/** @typedef {import('../ask.js').Counts} Counts */

/**
 * @typedef {object} Settings
 * @property {URL[]} urls of the hubs: the connections are spread over them
 * @property {import('../drone/dial.js').Security | null} [security] for those with https
 * @property {number} retryMs see `How`
 * @property {string[]} topics templates
 * @property {number} streams
 * @property {number} perSecond
 * @property {number} batch
 * @property {number} size
 * @property {string} token '' for none
 * @property {import('../drone/topics/tokens.js').Signer | null} signer makes tokens if none is given
 * @property {import('../drone/topics/publication.js').Clock} clock
 */

export class HubPublisher {
  /** @param {Settings} settings */
  constructor({
    urls,
    security = null,
    topics,
    streams,
    perSecond,
    batch,
    size,
    token,
    signer,
    clock,
    retryMs,
  }) {
    /** @type {import('./lane.js').Hub[]} */
    this.hubs = urls.map((url) => ({ url, accepted: 0, refused: 0, unanswered: 0 }));
    this.security = security;
    this.clock = clock;
    this.batch = batch;
    this.requestsPerSecond = perSecond / batch;
    this.rate = new Rate();
    this.audience = audienceOf(topics, streams);
    const publisher = Date.now();
    /** @type {Topic[]} */
    this.topics = [...this.audience.keys()].map((name) => ({ name, publisher, number: 0, sent: 0 }));
    const how = {
      hubs: this.hubs,
      security,
      retryMs,
      token: token ? () => token : tokenSource(signer),
      batch,
      size,
      clock,
    };
    this.lanes = lanesOf(this.topics, how);
    this.turn = 0;
    /** @type {NodeJS.Timeout | null} */
    this.timer = null;
  }

  /** A hub elsewhere must have accepted load. @throws {import('../drone/consent.js').Refusal} or BAD_CERTIFICATE */
  async check() {
    for (const { url } of this.hubs) {
      const host = hostIn(url);
      const security = url.protocol === 'https:' ? this.security : null;
      const port = Number(url.port) || (security ? HTTPS_PORT : HTTP_PORT);
      await askConsent([host], [port], security ? askingWith(security, host) : undefined);
    }
  }

  start() {
    this.rate.take(performance.now(), 0);
    const tickMs = Math.min(Math.max(1000 / this.requestsPerSecond, LEAST_TICK_MS), MOST_TICK_MS);
    this.timer ??= setInterval(() => this.tick(), tickMs);
  }

  tick() {
    let due = this.rate.take(performance.now(), this.requestsPerSecond);
    while (due-- > 0) this.lanes[this.turn++ % this.lanes.length].push();
  }

  stop() {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
    for (const lane of this.lanes) lane.stop();
  }

  async close() {
    this.stop();
    await Promise.all(this.lanes.map((lane) => lane.close()));
  }

  /** Requests without an answer. */
  get pending() {
    return this.lanes.reduce((sum, { pending }) => sum + pending, 0);
  }

  /** @returns {number} how many must arrive, over all streams, if each was open or came back with its cursor */
  get expected() {
    return this.topics.reduce((sum, { name, sent }) => sum + sent * (this.audience.get(name) ?? 0), 0);
  }

  /** @param {Counts} counts of all drones @returns {boolean} whether nothing more will arrive */
  isDelivered({ delivered, missed, discarded }) {
    return this.pending === 0 && delivered + missed + discarded >= this.expected;
  }

  counts() {
    const { topics, lanes, batch, clock, expected, hubs } = this;
    const sum = (/** @type {'sent' | 'failed' | 'retried'} */ name) =>
      lanes.reduce((total, lane) => total + lane[name], 0);
    const problem = lanes.find((lane) => lane.problem)?.problem ?? '';
    return {
      sent: sum('sent'),
      failed: sum('failed'),
      retried: sum('retried'),
      problem,
      topics: topics.length,
      batch,
      clock,
      expected,
      hubs: hubs.map(({ url, ...counts }) => ({ hub: url.host, ...counts })),
    };
  }
}

/** @param {Topic[]} topics @param {import('./lane.js').How} how @returns {Lane[]} */
function lanesOf(topics, how) {
  const count = Math.min(topics.length, MOST_LANES);
  return Array.from(
    { length: count },
    (_, i) =>
      new Lane(
        topics.filter((_, j) => j % count === i),
        how,
        i,
      ),
  );
}

/** @param {import('../drone/topics/tokens.js').Signer | null} signer @returns {() => string} a token that is valid now; '' without a signer */
function tokenSource(signer) {
  if (!signer) return () => '';
  const create = signerOf(signer);
  let token = '';
  let madeMs = 0;
  return () => {
    const nowMs = performance.now();
    if (token === '' || nowMs - madeMs > signer.ttlS * 500) {
      token = create('publisher', 'publish', ['*']);
      madeMs = nowMs;
    }
    return token;
  };
}

/** @param {string} given a URL @returns {URL} at the path of a hub, if it has none */
export function hubUrl(given) {
  const url = new URL(given);
  return url.pathname === '/' ? new URL(HUB_PATH, url) : url;
}
