/*
 * Reads and checks what a hub sends on a stream that subscribes to topics: blocks of Server-Sent Events. Pure.
 * The native dialer does the same (native/core/src/dial).
 */
import { Answer, MOST_UNIT_BYTES } from '../answer.js';
import { blockOf, unitSize } from './block.js';

/** In the draft and in version 0.x. */
const LAST_EVENT_ID = /^(?:mercure-)?last-event-id:[ \t]*(.*?)[ \t]*$/gim;

/** @typedef {import('../answer.js').Event} Event */

export class HubAnswer extends Answer {
  /** @param {{ isStrict: boolean }} how strict: all lines must be fields of events */
  constructor({ isStrict }) {
    super({ isStrict, allowsMessages: true });
    this.isParsed = true;
    this.unit = '';
    /** Whether the hub has sent its first unit. */
    this.isGreeted = false;
  }

  /** @param {string} head @param {Event[]} events @returns {boolean} whether what follows can be read */
  begin(head, events) {
    if (!this.isEvents) return this.fail(events, 'unexpected', head);
    this.open(events);
    const isGap = [...head.matchAll(LAST_EVENT_ID)].some(([, id]) => id === 'earliest');
    if (isGap) events.push({ what: 'gap' });
    return true;
  }

  /** @param {Event[]} events */
  readEvents(events) {
    for (let size = unitSize(this.unit); size > 0 && this.state !== 'over'; size = unitSize(this.unit)) {
      const unit = this.unit.slice(0, size);
      this.unit = this.unit.slice(size);
      if (unit !== '\n') this.readBlock(unit, events);
    }
    this.limitUnit(events);
  }

  /** Without data it is a ping, unless it is the first thing that the hub sends. @param {string} unit @param {Event[]} events */
  readBlock(unit, events) {
    const block = blockOf(unit);
    if (unit.length > MOST_UNIT_BYTES + 2 || (block.isOdd && this.isStrict))
      return this.fail(events, 'unexpected', unit);
    const isPing = block.data === null && this.isGreeted;
    this.isGreeted = true;
    if (block.id !== null || block.data !== null) events.push({ what: 'block', block });
    if (isPing) events.push({ what: 'ping' });
  }
}
