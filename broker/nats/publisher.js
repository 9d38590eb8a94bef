/*
 * Publishes drafts to JetStream. Each has an id of NATS, so it is stored once, however often it has to be sent.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as after } from 'node:timers/promises';
import { JetStreamApiError } from '@nats-io/jetstream';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { Slices } from '../../lib/slices.js';
import { encode, messageIdOf, subjectOf } from './messages.js';

/** Drafts that may be on their way at a time. The server keeps at most 10,000 of all nodes. */
const MOST_AT_ONCE = 1000;
/** How long one attempt may take, and between two. */
const ATTEMPT_MS = 1000;
const RETRY_MS = 100;
/** What headers may take of the largest message that NATS allows. */
const HEADER_BYTES = 512;
/** Errors of JetStream that may pass: no leader, too many requests, an id that is being stored. */
const PASSING = [429, 500, 503];
const IN_PROCESS = 10_158;
/** More than the stream takes (max_msg_size). */
const OVER_STREAM = 10_054;

/** @typedef {import('../index.js').Draft} Draft */
/** @typedef {import('../index.js').Receipt} Receipt */
/** @typedef {{ subject: string, data: Uint8Array, id: string }} Prepared */

export class Publisher {
  /**
   * @param {object} options
   * @param {import('./link.js').Link} options.link
   * @param {import('@nats-io/jetstream').JetStreamClient} options.client
   * @param {string} options.stream its name
   * @param {(topic: string) => boolean} options.isCached
   * @param {number} options.ackMs how long a draft may take
   */
  constructor({ link, client, stream, isCached, ackMs }) {
    this.link = link;
    this.client = client;
    this.stream = stream;
    this.isCached = isCached;
    this.ackMs = ackMs;
    this.slices = new Slices(MOST_AT_ONCE);
    this.source = randomBytes(9).toString('base64url');
    this.count = 0;
  }

  /**
   * @param {Draft} draft
   * @returns {Prepared}
   * @throws {HoldfastError} TOO_LARGE
   */
  prepare(draft) {
    const data = encode(draft);
    const most = (this.link.nc.info?.max_payload ?? Number.POSITIVE_INFINITY) - HEADER_BYTES;
    if (data.length > most) throw tooLarge(data.length, most);
    const id = messageIdOf(draft) ?? `${this.source}${++this.count}`;
    return { subject: subjectOf(this.stream, draft, draft.topics.filter(this.isCached)), data, id };
  }

  /**
   * @param {Prepared} prepared @param {number} endMs of `performance.now()`
   * @returns {Promise<Receipt>} once NATS has acknowledged it
   * @throws {HoldfastError} BUSY: not in time; STORE: NATS refuses it; TOO_LARGE
   */
  publish(prepared, endMs) {
    return this.slices.run(() => this.send(prepared, endMs));
  }

  /** @param {Prepared} prepared @param {number} endMs @returns {Promise<Receipt>} */
  async send({ subject, data, id }, endMs) {
    for (let attempts = 0, problem = ''; ; ) {
      const leftMs = endMs - performance.now();
      if (leftMs <= 0 || !(await this.link.ready(leftMs))) throw this.late(attempts, problem);
      try {
        attempts++;
        const timeout = Math.max(1, Math.min(ATTEMPT_MS, endMs - performance.now()));
        const ack = await this.client.publish(subject, data, { msgID: id, timeout });
        if (ack.stream !== this.stream) throw elsewhere(ack.stream);
        return { sequence: ack.seq, isNew: !ack.duplicate || attempts > 1 };
      } catch (error) {
        problem = messageOf(error);
        if (error instanceof HoldfastError) throw error;
        if (!mayPass(error)) throw refusal(error);
        await after(Math.min(RETRY_MS, Math.max(0, endMs - performance.now())));
      }
    }
  }

  /** @param {number} attempts @param {string} problem of the last one */
  late(attempts, problem) {
    const { isConnected, problem: lost } = this.link;
    const why = isConnected ? problem : lost;
    const line = `NATS has not confirmed within ${this.ackMs} ms${why && ` (${why})`}`;
    const doubt = attempts > 0 ? 'the publications may be stored or not' : 'nothing was stored';
    return new HoldfastError('BUSY', `${line}: ${doubt}`);
  }
}

/** @param {unknown} error @returns {boolean} */
function mayPass(error) {
  if (!(error instanceof JetStreamApiError)) return true; // no responders, no answer, no connection
  return error.code === IN_PROCESS || PASSING.includes(error.status);
}

/** @param {unknown} error @returns {HoldfastError} */
function refusal(error) {
  const isTooLarge = error instanceof JetStreamApiError && error.code === OVER_STREAM;
  return new HoldfastError(
    isTooLarge ? 'TOO_LARGE' : 'STORE',
    `NATS refuses publications: ${messageOf(error)}`,
  );
}

/** JetStream could check that, but 2.9 would then keep publications out of the stream of last values. @param {string} stream @returns {HoldfastError} */
function elsewhere(stream) {
  return new HoldfastError('STORE', `the stream ${stream} in NATS has taken over the subjects of this hub`);
}

/** @param {number} bytes @param {number} most */
function tooLarge(bytes, most) {
  const line = `a publication has ${bytes} bytes, and NATS takes at most ${most}: raise its max_payload, or publish less`;
  return new HoldfastError('TOO_LARGE', line);
}
