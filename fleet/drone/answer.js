/*
 * What a server says on a stream, taken apart and checked: the response head, chunks, the welcome, pings and
 * messages. Pure. The native dialer does the same (native/core/src/dial).
 */

const MOST_HEAD_BYTES = 16_384;
const MOST_UNIT_BYTES = 1_048_576;
const WELCOME = 'Welcome!';
const PING = 'ping';
const STATUS_LINE = /^HTTP\/1\.[01] \d{3}/;
const ANY_STATUS_LINE = 'HTTP/1.1 200';

/** @typedef {import('./causes.js').Cause} Cause */

/**
 * What came.
 * @typedef {{ what: 'open' } | { what: 'ping' } | { what: 'message', sentUs: number | null } | { what: 'end' } | { what: 'wrong', cause: Cause, sample: string }} Said
 */

/** The reader of one stream. Text is Latin-1 throughout: bytes as they are. */
export class Answer {
  /** @param {{ isStrict: boolean, allowsMessages: boolean }} how */
  constructor({ isStrict, allowsMessages }) {
    this.isStrict = isStrict;
    this.allowsMessages = allowsMessages;
    /** @type {'head' | 'chunks' | 'whole' | 'over'} */
    this.state = 'head';
    this.isEvents = false;
    this.isOpen = false;
    /** Bytes that are no whole piece yet: of the head or of a chunk, and of an event. */
    this.rest = '';
    this.unit = '';
  }

  /** @param {string} bytes @returns {Said[]} nothing follows an end, or what is wrong */
  read(bytes) {
    /** @type {Said[]} */
    const said = [];
    if (this.state === 'over') return said;
    const wasOpen = this.isOpen;
    if (wasOpen && !this.isStrict) return [{ what: 'ping' }];
    this.rest += bytes;
    if (this.state === 'head' && !this.readHead(said)) return said;
    if (!this.isStrict) {
      this.rest = '';
      return said;
    }
    if (this.state === 'whole') this.readPayload(this.takeRest(), said);
    while (this.state === 'chunks' && this.readChunk(said));
    return said;
  }

  takeRest() {
    const rest = this.rest;
    this.rest = '';
    return rest;
  }

  /** @param {Said[]} said @returns {boolean} whether what follows can be read */
  readHead(said) {
    const end = this.rest.indexOf('\r\n\r\n');
    if (!beginsAsStatusLine(this.rest)) return this.fail(said, 'unexpected', this.rest.split('\r\n\r\n')[0]);
    const isLong = (end < 0 ? this.rest.length - 4 : end - 1) >= MOST_HEAD_BYTES;
    if (isLong) return this.fail(said, 'unexpected', this.rest);
    if (end < 0) return false;
    const head = this.rest.slice(0, end);
    if (head.slice(9, 12) !== '200') return this.fail(said, 'status', head);
    this.rest = this.rest.slice(end + 4);
    this.isEvents = /^content-type:[ \t]*text\/event-stream/im.test(head);
    this.state = /^transfer-encoding:[ \t]*chunked/im.test(head) ? 'chunks' : 'whole';
    if (!this.isStrict) this.open(said);
    // Without chunks nothing tells where a text ends.
    else if (this.state === 'whole' && !this.isEvents) return this.fail(said, 'unexpected', head);
    return true;
  }

  /** @param {Said[]} said @returns {boolean} whether there may be another */
  readChunk(said) {
    const found = /^([0-9a-f]{1,8})\r\n/i.exec(this.rest);
    if (!found) {
      const mayBecomeOne = /^(?:[0-9a-f]{0,8}|[0-9a-f]{1,8}\r)$/i.test(this.rest);
      return mayBecomeOne ? false : this.fail(said, 'unexpected', this.rest);
    }
    const begin = found[0].length;
    const size = Number.parseInt(found[1], 16);
    if (size > MOST_UNIT_BYTES) return this.fail(said, 'unexpected', this.rest);
    const end = begin + size;
    if (this.rest.length < end + 2) return false;
    if (this.rest.slice(end, end + 2) !== '\r\n') return this.fail(said, 'unexpected', this.rest);
    const payload = this.rest.slice(begin, end);
    this.rest = this.rest.slice(end + 2);
    if (size === 0) {
      this.state = 'over';
      said.push({ what: 'end' });
    } else this.readPayload(payload, said);
    return this.state === 'chunks';
  }

  /** @param {string} payload @param {Said[]} said */
  readPayload(payload, said) {
    if (payload === '') return;
    if (!this.isEvents) {
      this.readText(payload, said);
      return;
    }
    this.unit += payload;
    for (let end = this.unit.indexOf('\n\n'); end >= 0; end = this.unit.indexOf('\n\n')) {
      const event = this.unit.slice(0, end);
      this.unit = this.unit.slice(end + 2);
      if (!this.readEvent(event, said)) return;
    }
    if (this.unit.length >= MOST_UNIT_BYTES + 2) this.fail(said, 'unexpected', this.unit);
  }

  /** @param {string} text @param {Said[]} said */
  readText(text, said) {
    if (!this.isOpen) return text === WELCOME ? this.open(said) : this.fail(said, 'unexpected', text);
    if (text === PING) return said.push({ what: 'ping' });
    return this.readMessage(text, said);
  }

  /** @param {string} event its lines @param {Said[]} said @returns {boolean} whether the next can be read */
  readEvent(event, said) {
    if (event.length > MOST_UNIT_BYTES) return this.fail(said, 'unexpected', event);
    const lines = event.split('\n');
    const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.replace(/^data: ?/, ''));
    if (!this.isOpen) {
      return data.join('\n') === WELCOME ? this.open(said) : this.fail(said, 'unexpected', event);
    }
    if (data.length > 0) return this.readMessage(data.join('\n'), said);
    if (!lines.every((line) => line.startsWith(':'))) return this.fail(said, 'unexpected', event);
    said.push({ what: 'ping' });
    return true;
  }

  /** @param {string} text @param {Said[]} said */
  readMessage(text, said) {
    if (!this.allowsMessages) return this.fail(said, 'unexpected', text);
    const sent = /^@(\d{10,17})(?: |$)/.exec(text);
    said.push({ what: 'message', sentUs: sent ? Number(sent[1]) : null });
    return true;
  }

  /** @param {Said[]} said */
  open(said) {
    this.isOpen = true;
    said.push({ what: 'open' });
    return true;
  }

  /** @param {Said[]} said @param {Cause} cause @param {string} bytes @returns {false} */
  fail(said, cause, bytes) {
    this.state = 'over';
    said.push({ what: 'wrong', cause, sample: bytes.slice(0, 80) });
    return false;
  }
}

/** @param {string} text @returns {boolean} whether it is, or may become, a head of HTTP */
function beginsAsStatusLine(text) {
  return STATUS_LINE.test(text + ANY_STATUS_LINE.slice(text.length));
}
