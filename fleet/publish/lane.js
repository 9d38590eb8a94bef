/*
 * One connection of the publisher. It sends one request after the other, so the publications to its topics have an order that
 * everyone agrees on. If there are several hubs, it stays at one until that one fails.
 */
import { setTimeout as after } from 'node:timers/promises';
import { Client } from 'undici';
import { codeOf, messageOf } from '../../lib/errors.js';
import { tlsOptions } from '../drone/tls/security.js';
import { dataOf } from '../drone/topics/publication.js';

const ANSWER_MS = 5000;
/** Requests that may wait for the one before. If the hub is slower than that, more count as failed. */
const MOST_WAITING = 1000;
const MOST_PROBLEM = 120;
/** The pause after all hubs have failed; it doubles from one to the next. */
const FIRST_PAUSE_MS = 50;
const MOST_PAUSE_MS = 1000;
/** Errors of connections that were never there. */
const NOT_CONNECTED = ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'];
/** What a hub of several nodes answers if it doesn't know. */
const MAY_BE_STORED = /may (still )?(be|have been) (stored|published)/;

/** `number` is that of its last publication; `publisher` tells it from what was published before. @typedef {{ name: string, publisher: number, number: number, sent: number }} Topic */

/** A hub, and what became of the requests to it. @typedef {{ url: URL, accepted: number, refused: number, unanswered: number }} Hub */

/**
 * How to publish.
 * @typedef {object} How
 * @property {Hub[]} hubs at least one
 * @property {import('../drone/dial.js').Security | null} [security] for hubs with https
 * @property {number} retryMs how long a publication that was not accepted is tried again; 0 for once. If it is, publications
 *   have ids, so that hubs store each of them once
 * @property {() => string} token '' for none
 * @property {number} batch publications per request; 1: as a form
 * @property {number} size bytes of each
 * @property {import('../drone/topics/publication.js').Clock} clock
 */

/**
 * What became of a request. `refused`: nothing of it was stored; `unanswered`: nobody knows.
 * @typedef {{ what: 'accepted' | 'refused' | 'unanswered', isFinal: boolean, problem: string }} Outcome
 */

export class Lane {
  /** @param {Topic[]} topics of this connection alone, at least one @param {How} how @param {number} [first] the index of its first hub */
  constructor(topics, how, first = 0) {
    this.topics = topics;
    this.how = how;
    /** The index of its hub. */
    this.at = first % how.hubs.length;
    /** By hub. @type {Map<Hub, Client>} */
    this.clients = new Map();
    this.next = 0;
    /** Requests that are due, with the one on its way. */
    this.pending = 0;
    this.sent = 0;
    this.failed = 0;
    /** Requests that were sent again. */
    this.retried = 0;
    this.problem = '';
    this.closing = new AbortController();
  }

  /** A request is due. */
  push() {
    if (this.pending > MOST_WAITING)
      return this.fail(this.how.batch, `${MOST_WAITING} requests wait for an answer`);
    this.pending++;
    if (this.pending === 1) this.run();
  }

  async run() {
    while (this.pending > 0) {
      const topics = this.take();
      await this.publish(topics);
      this.pending--;
    }
  }

  /** @returns {Topic[]} whose turn it is, one for each publication */
  take() {
    return Array.from({ length: this.how.batch }, () => this.topics[this.next++ % this.topics.length]);
  }

  /** @param {Topic[]} topics */
  async publish(topics) {
    const body = this.bodyFor(topics);
    const first = await this.send(body);
    const { what, problem } = first.isFinal ? first : await this.retry(body, first);
    if (what === 'accepted') this.accept(topics);
    else if (what === 'refused') this.refuse(topics, problem);
    else this.abandon(topics, problem);
  }

  /**
   * Sends it to one hub after the other, until it is answered or its time is over.
   * @param {string} body @param {Outcome} last
   * @returns {Promise<Outcome>} unanswered if it was so anywhere, and then not accepted
   */
  async retry(body, last) {
    const endMs = performance.now() + this.how.retryMs;
    let pauseMs = FIRST_PAUSE_MS;
    let outcome = last;
    for (let tries = 1; !outcome.isFinal && performance.now() < endMs && !this.isClosing; tries++) {
      if (tries % this.how.hubs.length === 0) {
        await after(pauseMs, undefined, { signal: this.closing.signal }).catch(() => {});
        pauseMs = Math.min(2 * pauseMs, MOST_PAUSE_MS);
      }
      this.at = (this.at + 1) % this.how.hubs.length;
      this.retried++;
      const now = await this.send(body);
      const isDoubtful = outcome.what === 'unanswered' && now.what === 'refused';
      outcome = isDoubtful ? { ...now, what: 'unanswered' } : now;
    }
    return outcome;
  }

  get isClosing() {
    return this.closing.signal.aborted;
  }

  /** @param {string} body @returns {Promise<Outcome>} */
  async send(body) {
    const hub = this.how.hubs[this.at];
    const outcome = await this.ask(hub, body);
    hub[outcome.what]++;
    if (outcome.what !== 'accepted') this.problem = outcome.problem;
    return outcome;
  }

  /** @param {Hub} hub @param {string} body @returns {Promise<Outcome>} */
  async ask(hub, body) {
    try {
      const answer = await this.clientFor(hub).request({
        method: 'POST',
        path: `${hub.url.pathname}${hub.url.search}`,
        headers: this.headers(),
        body,
      });
      return outcomeOf(answer.statusCode, await answer.body.text());
    } catch (error) {
      const problem = codeOf(error) || messageOf(error);
      return { what: NOT_CONNECTED.includes(problem) ? 'refused' : 'unanswered', isFinal: false, problem };
    }
  }

  /** @param {Hub} hub */
  clientFor(hub) {
    const limits = { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS, connectTimeout: ANSWER_MS };
    const client = this.clients.get(hub) ?? new Client(hub.url.origin, { ...limits, ...this.tlsFor(hub) });
    this.clients.set(hub, client);
    return client;
  }

  /** @param {Hub} hub */
  tlsFor({ url }) {
    const { security } = this.how;
    return security && url.protocol === 'https:' ? { connect: tlsOptions(security, hostIn(url)) } : {};
  }

  headers() {
    const token = this.how.token();
    return {
      'Content-Type': this.how.batch === 1 ? 'application/x-www-form-urlencoded' : 'application/json',
      ...(token ? { Authorization: `Bearer ${token}` } : {}),
    };
  }

  /** Gives each topic its next number. @param {Topic[]} topics @returns {string} of the request */
  bodyFor(topics) {
    const { batch, size, clock, retryMs } = this.how;
    const publications = topics.map((topic) => {
      topic.number++;
      const { name, publisher, number } = topic;
      const data = dataOf({ publisher, number, clock, topic: name }, size);
      return { topic: name, data, ...(retryMs > 0 ? { id: `${publisher}:${number}:${name}` } : {}) };
    });
    return batch === 1 ? String(new URLSearchParams(publications[0])) : JSON.stringify(publications);
  }

  /** @param {Topic[]} topics */
  accept(topics) {
    for (const topic of topics) topic.sent++;
    this.sent += topics.length;
  }

  /** Nothing was published, so the numbers are used again. @param {Topic[]} topics @param {string} problem */
  refuse(topics, problem) {
    for (const topic of topics) topic.number--;
    this.fail(topics.length, problem);
  }

  /** Nobody knows what was published, so the topics begin again with another publisher. @param {Topic[]} topics @param {string} problem */
  abandon(topics, problem) {
    for (const topic of new Set(topics)) {
      topic.publisher = Math.max(topic.publisher + 1, Date.now());
      topic.number = 0;
    }
    this.fail(topics.length, problem);
  }

  /** @param {number} publications @param {string} problem */
  fail(publications, problem) {
    this.failed += publications;
    this.problem = problem;
  }

  /** Nothing more is sent. What waits has failed, because the hub was too slow for it. */
  stop() {
    const waiting = Math.max(0, this.pending - 1);
    this.pending -= waiting;
    if (waiting > 0) this.fail(waiting * this.how.batch, `${waiting} requests were waiting at the end`);
  }

  /** @returns {Promise<void>} */
  async close() {
    this.closing.abort();
    await Promise.all([...this.clients.values()].map((client) => client.destroy()));
  }
}

/** @param {URL} url @returns {string} a name or an address */
export function hostIn({ hostname }) {
  return hostname.replace(/^\[|\]$/g, '');
}

/** @param {number} status @param {string} text @returns {Outcome} */
function outcomeOf(status, text) {
  if (status === 200) return { what: 'accepted', isFinal: true, problem: '' };
  const problem = `status ${status}: ${text.slice(0, MOST_PROBLEM)}`;
  const isOverloaded = status === 429 || status === 503;
  // A proxy answers 502 or 504 if it has lost the hub.
  const isUnknown = status >= 500 && (status !== 503 || MAY_BE_STORED.test(text));
  return {
    what: isUnknown ? 'unanswered' : 'refused',
    isFinal: !isUnknown && !isOverloaded,
    problem,
  };
}
