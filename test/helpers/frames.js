/*
 * A client of WebSockets on a raw socket, which can also break the rules.
 */
import { rawClient } from './client.js';

/** That of RFC 6455, section 1.3, and its answer. */
export const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
export const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };

/** @param {string} target @param {Record<string, string | undefined>} [headers] undefined leaves one out @param {string} [start] */
export function handshake(target, headers = {}, start = 'GET') {
  const all = {
    Host: 'localhost',
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': KEY,
    ...headers,
  };
  const lines = Object.entries(all).filter(([, value]) => value !== undefined);
  return `${start} ${target} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join('')}\r\n`;
}

/** @param {keyof typeof OPCODES} kind @param {string | Buffer} [payload] @param {{ isLast?: boolean, isMasked?: boolean }} [how] @returns {Buffer} */
export function frame(kind, payload = '', { isLast = true, isMasked = true } = {}) {
  const bytes = Buffer.from(payload);
  const first = (isLast ? 0x80 : 0) | OPCODES[kind];
  const mask = isMasked ? Buffer.from([1, 2, 3, 250]) : Buffer.alloc(0);
  const length =
    bytes.length < 126 ? [bytes.length] : bytes.length < 65_536 ? [126, 0, 0] : [127, 0, 0, 0, 0, 0, 0, 0, 0];
  const head = Buffer.from([first, ...length]);
  if (length.length === 3) head.writeUInt16BE(bytes.length, 2);
  if (length.length === 9) head.writeBigUInt64BE(BigInt(bytes.length), 2);
  if (isMasked) head[1] |= 0x80;
  return Buffer.concat([head, mask, isMasked ? bytes.map((byte, i) => byte ^ mask[i % 4]) : bytes]);
}

/** @param {number} code @param {string} [why] @returns {Buffer} the payload of a close */
export function closing(code, why = '') {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(why)]);
}

/** @param {string} received from a server, Latin-1, with the head of the response @returns {{ opcode: number, payload: Buffer }[]} complete frames */
export function framesIn(received) {
  const frames = [];
  let rest = Buffer.from(received.slice(received.indexOf('\r\n\r\n') + 4), 'latin1');
  for (;;) {
    if (rest.length < 2) return frames;
    const short = rest[1] & 0x7f;
    const begin = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (rest.length < begin) return frames;
    const size = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    if (rest.length < begin + size) return frames;
    frames.push({ opcode: rest[0] & 0xf, payload: rest.subarray(begin, begin + size) });
    rest = rest.subarray(begin + size);
  }
}

/** @param {string} received @returns {string[]} the text messages */
export function messagesIn(received) {
  return framesIn(received)
    .filter(({ opcode }) => opcode === OPCODES.text)
    .map(({ payload }) => payload.toString());
}

/** @param {string} received @returns {{ code: number, why: string } | undefined} how the server has closed; 1005: without a code */
export function closeIn(received) {
  const payload = framesIn(received).find(({ opcode }) => opcode === OPCODES.close)?.payload;
  if (!payload) return undefined;
  if (payload.length === 0) return { code: 1005, why: '' };
  return { code: payload.readUInt16BE(0), why: payload.toString('utf8', 2) };
}

/** @param {number} port @param {string} target @param {Record<string, string | undefined>} [headers] */
export function webSocketClient(port, target, headers = {}) {
  return rawClient(port, handshake(target, headers));
}
