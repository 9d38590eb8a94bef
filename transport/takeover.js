/*
 * Takes over the streams that another process offers at a path. The other side, and the protocol, is in offer.js.
 */
import { codeOf, HoldfastError } from '../lib/errors.js';
import { failed, Link, PROTOCOL } from './link.js';
import { checkPath, connectTo } from './offerpath.js';

/** A process that is silent for this long hangs. */
const SILENCE_MS = 30_000;
/** How soon a publication is tried again for which there was no room. */
const BUSY_MS = 5;
/** A hub names its channels like this. */
const OF_HUB = '\u0001';

/** @typedef {import('./holder.js').StreamHolder} StreamHolder */
/** @typedef {import('./link.js').Message} Message */
/** @typedef {(id: number, stream: { tag: string, channels: string[] }) => void} OnAdopted */
/** `tls`: for the listening sockets that come. @typedef {{ onAdopted?: OnAdopted, tls?: import('./tls.js').TlsOptions }} How */

/**
 * @param {StreamHolder} holder a new one
 * @param {string} path
 * @param {How} how
 * @returns {Promise<void>} once it has all streams; at once if nobody is at the path
 * @throws {HoldfastError} BAD_ARGUMENT, NOT_NATIVE, HANDOVER
 */
export async function takeOver(holder, path, how) {
  checkPath(path);
  if (how.tls !== undefined) holder.setSecureContext(how.tls);
  const socket = await connectTo(path);
  if (!socket) return;
  if (!holder.handover || !holder.shards) {
    socket.destroy();
    throw notNative();
  }
  await new Taker(holder, new Link(socket), how).run();
}

/** @returns {HoldfastError} */
export function notNative() {
  return new HoldfastError(
    'NOT_NATIVE',
    'only streams in the native core can be handed over, and it is not available (see the warning NO_NATIVE)',
  );
}

/** @param {boolean} isTls whether the other process listens with TLS @returns {string} why this one can't take over its listening sockets */
export function tlsProblem(isTls) {
  return isTls
    ? 'the process that has them listens with TLS: give Hold.takeOver its tls option'
    : 'the process that has them listens without TLS: leave out the tls option';
}

class Taker {
  /** @param {StreamHolder} holder @param {Link} link @param {How} how */
  constructor(holder, link, { onAdopted, tls }) {
    this.holder = holder;
    this.handover = /** @type {import('./handover.js').Handover} */ (holder.handover);
    this.shards = /** @type {import('./shards.js').Shards} */ (holder.shards);
    this.link = link;
    this.onAdopted = onAdopted;
    this.tls = tls;
    /** Where the other process listens, or has listened. @type {import('./holder.js').Place | null} */
    this.place = null;
    this.hasStreams = false;
    this.isDone = false;
    this.resolve = () => {};
    this.reject = (/** @type {unknown} */ _reason) => {};
    /** @type {Promise<void>} */
    this.result = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  /** @returns {Promise<void>} */
  run() {
    this.shards.postponeHeads(); // until the application has what it needs to answer them
    this.link.socket.setTimeout(SILENCE_MS, () => this.link.close());
    const { count: shards } = this.shards;
    this.link.send({ type: 'takeOver', protocol: PROTOCOL, shards, isTls: this.tls !== undefined });
    void this.listen();
    return this.result;
  }

  async listen() {
    try {
      for await (const message of this.link.messages()) await this.handle(message);
      this.fail(failed('the process that has them has ended, or does not answer'));
    } catch (error) {
      this.fail(error);
    }
  }

  /** @param {Message} message */
  async handle(message) {
    if (message.type === 'handover') await this.answer(message);
    else if (message.type === 'say') await this.say(message);
    else if (message.type === 'done') this.finish();
    else throw failed(message.type === 'refused' ? message.problem : `there is no message '${message.type}'`);
  }

  /** @param {Message} question */
  async answer({ id, step, ...fields }) {
    try {
      const value = await this.step(step, fields);
      this.link.send({ type: 'handedOver', id, value });
    } catch (error) {
      this.link.send({ type: 'handedOver', id, problem: /** @type {Error} */ (error).message });
    }
  }

  /** @param {string} step @param {Record<string, any>} fields */
  step(step, fields) {
    if (step === 'connect') return this.connect(fields);
    if (step === 'sync') return this.shards.flush();
    if (step === 'go') return this.go();
    throw new Error(`there is no step '${step}'`);
  }

  /** @param {Record<string, any>} fields */
  connect({ sources, listens, ticketKeys }) {
    this.place = listens;
    // A process of an older version does not ask for what it can't have.
    if (this.tls && listens && !listens.isTls) throw new Error(tlsProblem(false));
    if (this.tls && !this.tls.ticketKeys && ticketKeys)
      this.holder.setSecureContext({ ...this.tls, ticketKeys: Buffer.from(ticketKeys, 'base64') });
    this.handover.connect(sources);
  }

  async go() {
    const quiet = this.onAdopted ? [] : null;
    const streams = await this.handover.go({ quiet, onTaken: (taken) => this.taken(taken) });
    if (!this.hasStreams && this.place) this.holder.inherit(this.place);
    this.hasStreams = true;
    return streams;
  }

  /** @param {import('./handover.js').Taken} taken */
  taken({ id, channels, tag }) {
    if (channels.length > 0 && channels.every((name) => name.startsWith(OF_HUB))) return;
    try {
      this.onAdopted?.(id, { tag, channels });
    } catch (error) {
      this.holder.report(error);
    }
  }

  /** Says what the application of the other process says. @param {Message} message */
  async say({ what, given: [one, other, third] }) {
    if (what === 'endChannel') this.holder.endChannel(one, other);
    else if (what === 'endLabelled') this.holder.endLabelled(one, other, third);
    else
      while (!this.publish(one, other, third)) await new Promise((resolve) => setTimeout(resolve, BUSY_MS));
  }

  /**
   * @param {string[]} channels @param {import('./encodings.js').Message} message
   * @param {number} token 0 if nobody wants to know the number of streams
   * @returns {boolean} false if there is no room for it yet
   */
  publish(channels, message, token) {
    try {
      const published = this.holder.publish(channels, message, { isCounted: token > 0, mayBeLarge: true });
      if (token > 0) void published.then((listeners) => this.link.send({ type: 'said', token, listeners }));
      return true;
    } catch (error) {
      if (codeOf(error) === 'BUSY') return false;
      throw error;
    }
  }

  /** From now on, the streams are those of this process; the other one only says what its application says. */
  finish() {
    this.isDone = true;
    this.handover.drop(); // connections to the other process, and what was not released
    this.holder.endUpdates('restarted'); // their order is in the other process
    if (!this.place) this.shards.takeHeads();
    this.link.socket.setTimeout(0);
    this.link.unref();
    this.resolve();
  }

  /** @param {unknown} error */
  fail(error) {
    this.link.close();
    if (this.isDone) return; // the other process has ended, as it should
    if (this.hasStreams) {
      this.holder.report(error);
      return this.finish();
    }
    this.isDone = true;
    this.handover.drop();
    this.reject(error);
  }
}
