/*
 * What this node tells others about its streams: the changes of each turn of the event loop, numbered; and the whole table, to those who
 * ask for it.
 */
import { NOBODY } from '../presence/index.js';
import { MOST_CHARACTERS, MOST_LEFT, rowsOf } from './messages.js';

/** @typedef {import('../presence/index.js').Presence} Presence */
/** @typedef {import('../presence/index.js').Watcher} Watcher */
/** @typedef {import('../../broker/nats/bus.js').Bus} Bus */
/** @typedef {import('./messages.js').Message} Message */
/** @typedef {import('./messages.js').Sender} Sender */

/** @implements {Watcher} */
export class Changes {
  /**
   * @param {object} options
   * @param {Bus} options.bus
   * @param {Presence} options.presence
   * @param {() => Sender} options.sender
   * @param {() => boolean} options.isHeard whether there are other nodes
   * @param {number} options.answerMs how long others may take to answer a part
   */
  constructor({ bus, presence, sender, isHeard, answerMs }) {
    this.bus = bus;
    this.presence = presence;
    this.sender = sender;
    this.isHeard = isHeard;
    this.answerMs = answerMs;
    /** Of the last change. Others notice a missing one by it. */
    this.number = 0;
    /** Of this turn. @type {[number, number, string][]} */
    this.enteredNow = [];
    /** @type {[number, number][]} */
    this.leftNow = [];
    /** @type {number[]} */
    this.retiredNow = [];
    this.isSending = false;
    presence.watcher = this;
  }

  /** @param {number} owner @param {number} id @param {string} text */
  entered(owner, id, text) {
    this.enteredNow.push([owner, id, text]);
    this.sendSoon();
  }

  /** @param {number} owner @param {number} id */
  left(owner, id) {
    this.leftNow.push([owner, id]);
    this.sendSoon();
  }

  /** @param {number} owner */
  retired(owner) {
    this.retiredNow.push(owner);
    this.sendSoon();
  }

  /** All changes of one turn of the event loop go together. */
  sendSoon() {
    if (this.isSending) return;
    this.isSending = true;
    setImmediate(() => this.flush());
  }

  /** Nothing is told any more. */
  close() {
    this.flush();
    this.presence.watcher = NOBODY;
  }

  flush() {
    this.isSending = false;
    const { enteredNow, leftNow, retiredNow } = this;
    this.enteredNow = [];
    this.leftNow = [];
    this.retiredNow = [];
    if (enteredNow.length + leftNow.length + retiredNow.length === 0) return;
    if (!this.isHeard()) return void this.number++; // who comes asks for the whole table
    for (const rows of rowsOf(enteredNow, this.mostCharacters)) this.tell(rows, [], []);
    for (let at = 0; at < leftNow.length; at += MOST_LEFT)
      this.tell([], leftNow.slice(at, at + MOST_LEFT), []);
    if (retiredNow.length > 0) this.tell([], [], retiredNow);
  }

  /** @param {import('./messages.js').Row[]} entered @param {[number, number][]} left @param {number[]} retired */
  tell(entered, left, retired) {
    const number = ++this.number;
    this.bus.publish('nodes', { type: 'change', ...this.sender(), number, entered, left, retired });
  }

  /** A server of NATS may allow less than usual. */
  get mostCharacters() {
    return Math.min(MOST_CHARACTERS, this.bus.mostBytes >> 2);
  }

  /** Sends the whole table, a part at a time: whoever is slow gets the next one later. @param {import('./messages.js').Ask} message */
  async answer({ from, ask }) {
    this.flush(); // what it has from now on are changes that come after the table
    const key = Buffer.from(this.presence.node.subscribers.key).toString('base64');
    let index = 0;
    const send = async (/** @type {import('./messages.js').Row[]} */ rows, /** @type {boolean} */ isLast) => {
      const { number } = this;
      const part = { type: 'part', ...this.sender(), ask, index: index++, number, key, rows, isLast };
      const answer = await this.bus.request(`to.${from}`, part, this.answerMs);
      return /** @type {{ isWanted?: unknown } | null} */ (answer)?.isWanted === true;
    };
    for (const rows of rowsOf(this.streams(), this.mostCharacters)) if (!(await send(rows, false))) return;
    await send([], true);
  }

  /** @returns {Generator<[number, number, string]>} */
  *streams() {
    for (const { owner, id, text } of this.presence.node.streams()) yield [owner.number, id, text];
  }
}
