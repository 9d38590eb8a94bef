/*
 * Reads and checks the answers of polls, one after the other on a connection. Pure.
 */
import { beginsAsStatusLine, MOST_HEAD_BYTES, MOST_UNIT_BYTES } from '../answer.js';
import { causeOfStatus } from '../causes.js';
import { JsonAnswer, moved, objectIn, textIn } from './messages.js';

/** An answer may have many messages. */
const MOST_BODY_BYTES = 16 * MOST_UNIT_BYTES;

/** @typedef {import('../answer.js').Event} Event */

export class PollAnswer extends JsonAnswer {
  /** @param {import('./messages.js').How} how */
  constructor(how) {
    super(how);
    this.rest = '';
  }

  /** @param {string} bytes @returns {Event[]} */
  read(bytes) {
    /** @type {Event[]} */
    const events = [];
    this.rest += bytes;
    while (this.state !== 'over' && this.rest !== '' && this.readAnswer(events));
    return events;
  }

  /** @param {Event[]} events @returns {boolean} whether another one may follow */
  readAnswer(events) {
    const end = this.rest.indexOf('\r\n\r\n');
    const head = end < 0 ? this.rest : this.rest.slice(0, end);
    const isLong = (end < 0 ? head.length - 3 : end) > MOST_HEAD_BYTES;
    if (isLong || !beginsAsStatusLine(head)) return this.fail(events, 'unexpected', head);
    if (end < 0) return false;
    const size = this.sizeIn(head, events);
    if (size === null || this.rest.length < end + 4 + size) return false;
    const body = this.rest.slice(end + 4, end + 4 + size);
    this.rest = this.rest.slice(end + 4 + size);
    if (!this.isOpen) this.open(events);
    this.notePosition(head, events);
    if (body !== '') this.readBody(body, events);
    if (this.state === 'over') return false;
    const isLast = /^connection:[ \t]*close/im.test(head) || head.startsWith('HTTP/1.0');
    events.push({ what: 'answered', goesOn: !isLast });
    return !isLast;
  }

  /** @param {string} head @param {Event[]} events @returns {number | null} bytes of the body; null if it is wrong */
  sizeIn(head, events) {
    const status = head.slice(9, 12);
    if (status === '204') return 0;
    const size = Number(/^content-length:[ \t]*(\d{1,8})[ \t]*$/im.exec(head)?.[1] ?? Number.NaN);
    if (status === '200' && size <= MOST_BODY_BYTES) return size;
    this.fail(events, status === '200' ? 'unexpected' : causeOfStatus(status), head);
    return null;
  }

  /** @param {string} body {"messages":[…],"cursor":"…"} @param {Event[]} events */
  readBody(body, events) {
    const answer = objectIn(body);
    if (!answer || !Array.isArray(answer.messages)) {
      if (this.isStrict) this.fail(events, 'unexpected', body);
      else events.push({ what: 'message', sentUs: null });
      return;
    }
    if (answer.missing === true) events.push({ what: 'gap' });
    for (const message of answer.messages)
      if (this.state !== 'over') this.readObject(Object(message), body, events);
    const cursor = textIn(answer, 'cursor');
    if (cursor !== null && this.state !== 'over') events.push(moved(cursor));
  }
}
