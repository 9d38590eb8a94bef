/*
 * Reads and checks a stream of lines of JSON: each is a message, an empty one is a ping. Pure.
 */
import { JsonAnswer } from './messages.js';

/** @typedef {import('../answer.js').Event} Event */

export class LinesAnswer extends JsonAnswer {
  /** @param {import('./messages.js').How} how */
  constructor(how) {
    super(how);
    this.unit = '';
  }

  /** It is open as soon as its head is there. @param {string} head @param {Event[]} events @returns {boolean} */
  begin(head, events) {
    if (this.isParsed && !/^content-type:[ \t]*application\/x-ndjson/im.test(head))
      return this.fail(events, 'unexpected', head);
    this.open(events);
    if (this.isOfHub) this.notePosition(head, events);
    return true;
  }

  /** @param {string} payload @param {Event[]} events */
  readPayload(payload, events) {
    this.unit += payload;
    for (let end = this.unit.indexOf('\n'); end >= 0; end = this.unit.indexOf('\n')) {
      const line = this.unit.slice(0, end);
      this.unit = this.unit.slice(end + 1);
      if (line === '') events.push({ what: 'ping' });
      else this.readJson(line, events);
      if (this.state === 'over') return;
    }
    this.limitUnit(events);
  }
}
