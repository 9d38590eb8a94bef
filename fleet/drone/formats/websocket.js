/*
 * Reads and checks what a server sends on a WebSocket (RFC 6455), from the head of its response on; and what clients send. Pure, except
 * for random numbers.
 */
import { createHash, randomBytes } from 'node:crypto';
import { MOST_UNIT_BYTES } from '../answer.js';
import { JsonAnswer } from './messages.js';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const [CONTINUATION, TEXT, CLOSE, PING, PONG] = [0, 1, 8, 9, 10];
const MOST_CONTROL_BYTES = 125;
/** Codes of close frames that have a cause of their own. @type {Record<number, import('../causes.js').Cause>} */
const CAUSE_OF = {
  1000: 'closed',
  1001: 'close-1001',
  1008: 'close-1008',
  1012: 'close-1012',
  1013: 'close-1013',
};

/** @typedef {import('../answer.js').Event} Event */
/** `size`: of the head. @typedef {{ opcode: number, isLast: boolean, size: number, length: number }} FrameHead */

export class WebSocketAnswer extends JsonAnswer {
  /** @param {import('./messages.js').How} how */
  constructor(how) {
    super(how);
    this.isParsed = true;
    this.status = '101';
    this.unit = '';
    /** Of a message in several frames. */
    this.message = '';
  }

  /** @param {string} head @param {Event[]} events @returns {boolean} */
  begin(head, events) {
    const accept = /^sec-websocket-accept:[ \t]*(.*?)[ \t]*$/im.exec(head)?.[1];
    if (accept === undefined || !/^upgrade:[ \t]*websocket/im.test(head))
      return this.fail(events, 'unexpected', head);
    this.state = 'raw';
    events.push({ what: 'accept', accept });
    return this.open(events);
  }

  /** @param {string} payload @param {Event[]} events */
  readPayload(payload, events) {
    this.unit += payload;
    while (this.state !== 'over' && this.unit !== '' && this.readFrame(events));
  }

  /** @param {Event[]} events @returns {boolean} whether there was a complete one */
  readFrame(events) {
    const head = frameHeadOf(this.unit);
    if (!head) return false;
    const end = head.size + head.length;
    if (isWrong(head) || head.length + this.message.length > MOST_UNIT_BYTES)
      return this.fail(events, 'unexpected', this.unit);
    if (this.unit.length < end) return false;
    const payload = this.unit.slice(head.size, end);
    this.unit = this.unit.slice(end);
    this.noteFrame(head, payload, events);
    return true;
  }

  /** @param {FrameHead} head @param {string} payload @param {Event[]} events */
  noteFrame({ opcode, isLast }, payload, events) {
    if (opcode === CLOSE) return void this.noteClose(payload, events);
    if (opcode === PING || opcode === PONG) events.push({ what: 'ping' });
    if (opcode === PING) events.push({ what: 'asked', payload });
    if (opcode > TEXT) return;
    this.message += payload;
    if (!isLast) return;
    const text = this.message;
    this.message = '';
    if (this.isOfHub) this.readJson(text, events);
    else this.readFirst(text, events);
  }

  /** @param {string} payload @param {Event[]} events */
  noteClose(payload, events) {
    const code = payload.length < 2 ? 1000 : numberOf(payload.slice(0, 2));
    const cause = CAUSE_OF[code];
    this.fail(events, cause ?? 'close-other', cause ? '' : payload.slice(2));
  }
}

/** @param {string} bytes @returns {FrameHead | null} null while it is not complete */
function frameHeadOf(bytes) {
  if (bytes.length < 2) return null;
  const [first, short] = [bytes.charCodeAt(0), bytes.charCodeAt(1)];
  const more = short === 126 ? 2 : short === 127 ? 8 : 0;
  if (bytes.length < 2 + more) return null;
  return {
    opcode: first & 0x7f, // with the reserved bits, which belong to no frame of ours
    isLast: first >= 0x80,
    size: 2 + more,
    length: more === 0 ? short : numberOf(bytes.slice(2, 2 + more)),
  };
}

/** Masked frames are too long. @param {FrameHead} head */
function isWrong({ opcode, isLast, size, length }) {
  if (size === 2 && length > MOST_CONTROL_BYTES) return true;
  if (opcode === CLOSE || opcode === PING || opcode === PONG) return !isLast || size > 2;
  return opcode !== TEXT && opcode !== CONTINUATION;
}

/** @param {string} bytes @returns {number} big-endian */
function numberOf(bytes) {
  return [...bytes].reduce((number, byte) => number * 256 + byte.charCodeAt(0), 0);
}

/** @returns {string} a Sec-WebSocket-Key */
export function newKey() {
  return randomBytes(16).toString('base64');
}

/** @param {string} key @returns {string} the Sec-WebSocket-Accept that answers it */
export function acceptOf(key) {
  return createHash('sha1').update(key).update(GUID).digest('base64');
}

/** @param {string} payload of a ping, Latin-1 @returns {Buffer} the frame that answers it; clients mask what they send */
export function pong(payload) {
  const mask = randomBytes(4);
  const masked = Buffer.from(payload, 'latin1').map((byte, i) => byte ^ mask[i % 4]);
  return Buffer.concat([Buffer.from([0x80 | PONG, 0x80 | masked.length]), mask, masked]);
}
