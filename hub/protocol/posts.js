/*
 * Publications as they are posted, once it is clear that the sender may publish: on the port of the hub (handler.js), and on the
 * admin port of the server, which needs no token.
 */

import { Cursors } from '../streams/cursor.js';
import { draftsIn } from './bodies.js';

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {{ status: number, type: string, body: string }} Answer */

export class Posts {
  /**
   * @param {object} options
   * @param {Broker} options.broker
   * @param {import('../settings.js').Rules} options.rules
   * @param {(counts: { hubPublished: number, hubDuplicates: number }) => void} options.onStored
   */
  constructor({ broker, rules, onStored }) {
    this.broker = broker;
    this.cursors = new Cursors(broker);
    const onReset = () => {
      this.cursors = new Cursors(broker);
    };
    broker.follow(() => {}, onReset);
    this.rules = rules;
    this.onStored = onStored;
  }

  /**
   * @param {import('node:http').IncomingMessage} incoming
   * @returns {Promise<Answer>} once they are stored
   * @throws {import('../../lib/router.js').RequestError | import('../../lib/errors.js').HoldfastError} BUSY, CLOSED, STORE
   */
  async take(incoming) {
    const { drafts, isList } = await draftsIn(incoming, this.rules);
    const { cursors } = this; // as in core.js
    const receipts = await this.broker.append(drafts);
    const hubPublished = receipts.filter(({ isNew }) => isNew).length;
    this.onStored({ hubPublished, hubDuplicates: receipts.length - hubPublished });
    const ids = receipts.map(({ sequence }, i) => drafts[i].id ?? cursors.of(sequence));
    return answerOf(ids, isList);
  }
}

/** @param {string[]} ids @param {boolean} isList whether a list was sent @returns {Answer} */
export function answerOf(ids, isList) {
  return isList
    ? { status: 200, type: 'application/json', body: JSON.stringify(ids) }
    : { status: 200, type: 'text/plain; charset=utf-8', body: ids[0] };
}
