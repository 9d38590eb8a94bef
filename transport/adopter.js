/*
 * Makes streams of responses: natively if the connection can leave JS (adopt.js), otherwise in JS.
 */
import { codeOf } from '../lib/errors.js';
import { isPoll, isWebSocket } from '../native/protocol.js';
import { adoptable, answerHead, checkOpen, comeToRest, giveBack, takePoll, watchForMore } from './adopt.js';
import {
  badArgument,
  checkAdoptionBytes,
  checkEncoding,
  checkedChannels,
  checkKeys,
  checkTag,
  checkWait,
} from './checks.js';
import { closed, overCapacity } from './failures.js';
import { isInJs } from './streams.js';
import { Teller } from './teller.js';

/** @typedef {import('../lib/errors.js').HoldfastError} HoldfastError */
/** @typedef {{ channels?: readonly string[], encoding?: import('../native/protocol.js').Format, tag?: string, waitMs?: number }} AdoptOptions */

export class Adopter extends Teller {
  /** Adoptions that are in progress. */
  adopting = 0;
  isDraining = false;

  /**
   * Takes over a response as a stream. What was written to it is still sent. If its client has already disconnected, the
   * stream opens and closes at once; so it does after the head was sent if the request is a HEAD.
   * @param {import('node:http').ServerResponse | import('node:http2').Http2ServerResponse} served without a
   *   Content-Length; its head is sent now unless it was already
   * @param {AdoptOptions} [options]
   * @returns {Promise<number>} its id
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, CLOSED, BAD_ARGUMENT. The response then still
   *   belongs to the application, but its head may have been sent
   */
  async adopt(served, options = {}) {
    const response = /** @type {import('node:http').ServerResponse} */ (served);
    checkKeys('adopt', options, ['channels', 'encoding', 'tag', 'waitMs']);
    const { channels: given = [], encoding = 'events', tag, waitMs } = options;
    const channels = checkedChannels(given);
    checkAdoptionBytes(channels);
    checkEncoding(encoding);
    if (isWebSocket(encoding))
      throw badArgument(
        `a response can't become a ${encoding}: call hold.upgrade in the 'upgrade' event of your server`,
      );
    checkTag(tag);
    checkWait(encoding, waitMs);
    if (this.isDraining) throw closed();
    this.adopting++;
    try {
      const socket = checkOpen(response);
      if (response.req.method === 'HEAD') {
        answerHead(response, encoding);
        return this.streams.miss('drain');
      }
      if (isPoll(encoding)) return this.adoptPoll(response, { hold: encoding, channels, waitMs });
      const found = adoptable(response, socket, encoding);
      await comeToRest(response, found.socket);
      const id = await this.take(response, found, encoding, channels);
      if (tag && !isInJs(id)) this.shards?.tag(id, tag);
      return id;
    } catch (error) {
      if (codeOf(error) === 'CLIENT_GONE') return this.streams.miss('client-gone');
      throw error;
    } finally {
      this.adopting--;
    }
  }

  /**
   * A poll stays with its server, because that goes on with the connection after the answer.
   * @param {import('node:http').ServerResponse} response after `checkOpen`
   * @param {import('./policy.js').HoldDecision} decision
   * @returns {number}
   */
  adoptPoll(response, decision) {
    this.checkRoomInJs(decision.channels ?? []);
    takePoll(response);
    const poll = this.streams.openings.openPoll(this.streams.nextId(), response, decision, 'theirs');
    this.streams.markAdopted(poll);
    return poll.id;
  }

  /** @param {readonly string[]} channels @throws {HoldfastError} CLOSED, OVER_CAPACITY */
  checkRoomInJs(channels) {
    if (this.isDraining) throw closed();
    if (this.streams.isFull) throw overCapacity('the streams in JS are at capacity');
    if (!this.streams.channels.hasRoomFor(channels))
      throw overCapacity('the channels of the streams in JS take maxChannelBytes already');
  }

  /**
   * @param {import('node:http').ServerResponse} response after `comeToRest`
   * @param {import('./adopt.js').Adoptable} found
   * @param {import('../native/protocol.js').Format} encoding
   * @param {readonly string[]} channels
   * @returns {Promise<number>}
   */
  async take(response, found, encoding, channels) {
    try {
      if (this.shards && found.canLeaveJs && found.socket)
        return await this.shards.adoptions.adopt(found.socket, encoding, found.isChunked, channels);
      return this.adoptInJs(response, found, encoding, channels);
    } catch (error) {
      giveBack(response);
      throw error;
    }
  }

  /**
   * @param {import('node:http').ServerResponse} response
   * @param {import('./adopt.js').Adoptable} found
   * @param {import('../native/protocol.js').Format} encoding
   * @param {readonly string[]} channels
   */
  adoptInJs(response, { socket, isCompressed }, encoding, channels) {
    this.checkRoomInJs(channels);
    const stream = this.streams.openings.adopt(response, { encoding, channels, isCompressed });
    if (socket) watchForMore(socket, () => this.streams.destroy(stream, 'bad-request'));
    return stream.id;
  }
}
