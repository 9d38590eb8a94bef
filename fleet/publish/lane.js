/*
 * One connection of the publisher. It sends one request after the other, so the publications to its topics have an order that
 * everyone agrees on.
 */
import { Client } from 'undici';
import { codeOf, messageOf } from '../../lib/errors.js';
import { dataOf } from '../drone/topics/publication.js';

const ANSWER_MS = 5000;
/** Requests that may wait for the one before. If the hub is slower than that, more count as failed. */
const MOST_WAITING = 1000;
const MOST_PROBLEM = 120;

/** `number` is that of its last publication; `publisher` tells it from what was published before. @typedef {{ name: string, publisher: number, number: number, sent: number }} Topic */

/**
 * How to publish.
 * @typedef {object} How
 * @property {URL} url
 * @property {() => string} token '' for none
 * @property {number} batch publications per request; 1: as a form
 * @property {number} size bytes of each
 * @property {import('../drone/topics/publication.js').Clock} clock
 */

export class Lane {
  /** @param {Topic[]} topics of this connection alone, at least one @param {How} how */
  constructor(topics, how) {
    this.topics = topics;
    this.how = how;
    this.client = new Client(how.url.origin, { headersTimeout: ANSWER_MS, bodyTimeout: ANSWER_MS });
    this.next = 0;
    /** Requests that are due, with the one on its way. */
    this.pending = 0;
    this.sent = 0;
    this.failed = 0;
    this.problem = '';
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
    try {
      const { statusCode, body } = await this.client.request(this.requestFor(topics));
      const text = await body.text();
      if (statusCode === 200) this.accept(topics);
      else this.refuse(topics, `status ${statusCode}: ${text.slice(0, MOST_PROBLEM)}`);
    } catch (error) {
      const problem = codeOf(error) || messageOf(error);
      if (problem === 'ECONNREFUSED') this.refuse(topics, problem);
      else this.abandon(topics, problem);
    }
  }

  /** @param {Topic[]} topics @returns {import('undici').Dispatcher.RequestOptions} */
  requestFor(topics) {
    const { url, batch, size, clock } = this.how;
    const token = this.how.token();
    const publications = topics.map((topic) => {
      topic.number++;
      const { name, publisher, number } = topic;
      return { topic: name, data: dataOf({ publisher, number, clock, topic: name }, size) };
    });
    const isForm = batch === 1;
    return {
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        'Content-Type': isForm ? 'application/x-www-form-urlencoded' : 'application/json',
        ...(token ? { Authorization: `Bearer ${token}` } : {}),
      },
      body: isForm ? String(new URLSearchParams(publications[0])) : JSON.stringify(publications),
    };
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
    await this.client.destroy();
  }
}
