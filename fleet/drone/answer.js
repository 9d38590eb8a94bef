/*
 * Reads and checks what a server sends on a stream: the response head, chunks, the welcome, pings and messages. Pure.
 * The native dialer does the same (native/core/src/dial).
 */
import { causeOfStatus } from './causes.js';

export const MOST_HEAD_BYTES = 16_384;
export const MOST_UNIT_BYTES = 1_048_576;
const MOST_SAMPLE_BYTES = 80;
export const WELCOME = 'Welcome!';
const PING = 'ping';
const STATUS_LINE = /^HTTP\/1\.[01] \d{3}/;
const ANY_STATUS_LINE = 'HTTP/1.1 200';

/** @typedef {import('./causes.js').Cause} Cause */

/**
 * What was read. Only of a hub: `gap`, that publications may be missing before the next one, and `block`, which only moves the
 * cursor if it has no data. Only of a WebSocket: `accept`, what the server makes of the key, and `asked`, a ping that has to be
 * answered. `answered`: a poll has its answer.
 * @typedef {{ what: 'open' } | { what: 'ping' } | { what: 'message', sentUs: number | null } | { what: 'gap' }
 *   | { what: 'accept', accept: string } | { what: 'asked', payload: string } | { what: 'answered', goesOn: boolean }
 *   | { what: 'block', block: import('./topics/block.js').Block } | { what: 'end' } | { what: 'wrong', cause: Cause, sample: string }} Event
 */

/** The reader of one stream. Text is Latin-1 throughout, so each character is a byte. */
export class Answer {
  /** @param {{ isStrict: boolean, allowsMessages: boolean }} how */
  constructor({ isStrict, allowsMessages }) {
    this.isStrict = isStrict;
    this.allowsMessages = allowsMessages;
    /** Whether the body is read. */
    this.isParsed = isStrict;
    /** @type {'head' | 'chunks' | 'raw' | 'over'} */
    this.state = 'head';
    this.isEvents = false;
    /** Of a response that opens the stream. */
    this.status = '200';
    this.isOpen = false;
    /** Bytes of an incomplete head or chunk. */
    this.rest = '';
    /** Bytes of an incomplete event. */
    this.unit = '';
  }

  /** @param {string} bytes @returns {Event[]} nothing follows 'end' or 'wrong' */
  read(bytes) {
    /** @type {Event[]} */
    const events = [];
    if (this.state === 'over') return events;
    if (this.isOpen && !this.isParsed) return [{ what: 'ping' }];
    this.rest += bytes;
    if (this.state === 'head' && !this.readHead(events)) return events;
    if (!this.isParsed) {
      this.rest = '';
      return events;
    }
    if (this.state === 'raw') this.readPayload(this.takeRest(), events);
    while (this.state === 'chunks' && this.readChunk(events));
    return events;
  }

  takeRest() {
    const rest = this.rest;
    this.rest = '';
    return rest;
  }

  /** @param {Event[]} events @returns {boolean} whether what follows can be read */
  readHead(events) {
    const end = this.rest.indexOf('\r\n\r\n');
    if (!beginsAsStatusLine(this.rest))
      return this.fail(events, 'unexpected', this.rest.split('\r\n\r\n')[0]);
    const isLong = (end < 0 ? this.rest.length - 4 : end - 1) >= MOST_HEAD_BYTES;
    if (isLong) return this.fail(events, 'unexpected', this.rest);
    if (end < 0) return false;
    const head = this.rest.slice(0, end);
    const status = head.slice(9, 12);
    if (status !== this.status) return this.fail(events, causeOfStatus(status), head);
    this.rest = this.rest.slice(end + 4);
    this.isEvents = /^content-type:[ \t]*text\/event-stream/im.test(head);
    this.state = /^transfer-encoding:[ \t]*chunked/im.test(head) ? 'chunks' : 'raw';
    return this.begin(head, events);
  }

  /** @param {string} head @param {Event[]} events @returns {boolean} whether what follows can be read */
  begin(head, events) {
    if (!this.isStrict) this.open(events);
    // Without chunks, nothing marks the end of a text.
    else if (this.state === 'raw' && !this.isEvents) return this.fail(events, 'unexpected', head);
    return true;
  }

  /** @param {Event[]} events @returns {boolean} whether there may be another */
  readChunk(events) {
    const found = /^([0-9a-f]{1,8})\r\n/i.exec(this.rest);
    if (!found) {
      const mayBecomeOne = /^(?:[0-9a-f]{0,8}|[0-9a-f]{1,8}\r)$/i.test(this.rest);
      return mayBecomeOne ? false : this.fail(events, 'unexpected', this.rest);
    }
    const begin = found[0].length;
    const size = Number.parseInt(found[1], 16);
    if (size > MOST_UNIT_BYTES) return this.fail(events, 'unexpected', this.rest);
    const end = begin + size;
    if (this.rest.length < end + 2) return false;
    if (this.rest.slice(end, end + 2) !== '\r\n') return this.fail(events, 'unexpected', this.rest);
    const payload = this.rest.slice(begin, end);
    this.rest = this.rest.slice(end + 2);
    if (size === 0) {
      this.state = 'over';
      events.push({ what: 'end' });
    } else this.readPayload(payload, events);
    return this.state === 'chunks';
  }

  /** @param {string} payload @param {Event[]} events */
  readPayload(payload, events) {
    if (payload === '') return;
    if (!this.isEvents) {
      this.readText(payload, events);
      return;
    }
    this.unit += payload;
    this.readEvents(events);
  }

  /** @param {Event[]} events */
  readEvents(events) {
    for (let end = this.unit.indexOf('\n\n'); end >= 0; end = this.unit.indexOf('\n\n')) {
      const event = this.unit.slice(0, end);
      this.unit = this.unit.slice(end + 2);
      if (!this.readEvent(event, events)) return;
    }
    this.limitUnit(events);
  }

  /** @param {Event[]} events */
  limitUnit(events) {
    const isLong = this.state !== 'over' && this.unit.length >= MOST_UNIT_BYTES + 2;
    if (isLong) this.fail(events, 'unexpected', this.unit);
  }

  /** @param {string} text @param {Event[]} events */
  readText(text, events) {
    if (!this.isOpen) return text === WELCOME ? this.open(events) : this.fail(events, 'unexpected', text);
    if (text === PING) return events.push({ what: 'ping' });
    return this.readMessage(text, events);
  }

  /** @param {string} event its lines @param {Event[]} events @returns {boolean} whether the next can be read */
  readEvent(event, events) {
    if (event.length > MOST_UNIT_BYTES) return this.fail(events, 'unexpected', event);
    const lines = event.split('\n');
    const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.replace(/^data: ?/, ''));
    if (!this.isOpen) {
      return data.join('\n') === WELCOME ? this.open(events) : this.fail(events, 'unexpected', event);
    }
    if (data.length > 0) return this.readMessage(data.join('\n'), events);
    if (!lines.every((line) => line.startsWith(':'))) return this.fail(events, 'unexpected', event);
    events.push({ what: 'ping' });
    return true;
  }

  /** @param {string} text @param {Event[]} events */
  readMessage(text, events) {
    if (!this.allowsMessages) return this.fail(events, 'unexpected', text);
    const sent = /^@(\d{10,17})(?: |$)/.exec(text);
    events.push({ what: 'message', sentUs: sent ? Number(sent[1]) : null });
    return true;
  }

  /** @param {Event[]} events */
  open(events) {
    this.isOpen = true;
    events.push({ what: 'open' });
    return true;
  }

  /** @param {Event[]} events @param {Cause} cause @param {string} bytes @returns {false} */
  fail(events, cause, bytes) {
    this.state = 'over';
    events.push({ what: 'wrong', cause, sample: bytes.slice(0, MOST_SAMPLE_BYTES) });
    return false;
  }
}

/** @param {string} text @returns {boolean} whether it is, or may become, the head of a response */
export function beginsAsStatusLine(text) {
  return STATUS_LINE.test(text + ANY_STATUS_LINE.slice(text.length));
}
