/*
 * A client of WebSockets on a raw socket, which can also break the rules (RFC 6455, section 5.2).
 */
import { rawClient } from './client.js';
import { until } from './until.js';

/** That of RFC 6455, section 1.3, and its answer. */
export const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
export const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };
const NOTHING = Buffer.alloc(0);

/** @type {Record<string, string | undefined>} */
const UPGRADE = {
  Host: 'localhost',
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': KEY,
};

/** @typedef {{ opcode: number, payload: Buffer }} Frame of a server: always whole */
/** @typedef {{ isLast?: boolean, isMasked?: boolean, mask?: readonly number[], reserved?: number, lengthBytes?: number, length?: bigint }} How `reserved`: the three bits; `lengthBytes`: 0, 2 or 8, by default as few as possible; `length`: what it says */
/** @typedef {{ headers?: Record<string, string | undefined>, method?: string, version?: string, early?: Buffer }} Asking `headers`: instead of the usual ones, undefined leaves one out; `early`: sent without waiting for the response */

/** @param {string} target @param {Record<string, string | undefined>} [headers] undefined leaves one out @param {string} [method] @param {string} [version] */
export function handshake(target, headers = {}, method = 'GET', version = '1.1') {
  const lines = Object.entries({ ...UPGRADE, ...headers }).filter(([, value]) => value !== undefined);
  const fields = lines.map(([name, value]) => `${name}: ${value}\r\n`).join('');
  return `${method} ${target} HTTP/${version}\r\n${fields}\r\n`;
}

/** @param {keyof typeof OPCODES | number} kind a name, or an opcode @param {string | Uint8Array} [given] @param {How} [how] @returns {Buffer} */
export function frame(kind, given = '', how = {}) {
  const { isLast = true, isMasked = true, mask = [1, 2, 3, 250], reserved = 0 } = how;
  const payload = Buffer.from(/** @type {string} */ (given));
  const lengthBytes = how.lengthBytes ?? (payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8);
  const short = { 0: payload.length, 2: 126, 8: 127 }[lengthBytes] ?? 0;
  const opcode = typeof kind === 'number' ? kind : OPCODES[kind];
  const head = Buffer.from([(isLast ? 0x80 : 0) | (reserved << 4) | opcode, (isMasked ? 0x80 : 0) | short]);
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(how.length ?? BigInt(payload.length));
  const masked = isMasked ? payload.map((byte, i) => byte ^ mask[i % 4]) : payload;
  return Buffer.concat([
    head,
    length.subarray(8 - lengthBytes),
    isMasked ? Buffer.from(mask) : NOTHING,
    masked,
  ]);
}

/** @param {number} code @param {string | Uint8Array} [why] @returns {Buffer} the payload of a close */
export function closing(code, why = '') {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(/** @type {string} */ (why))]);
}

/**
 * @param {string} received from a server, Latin-1, with the head of the response
 * @returns {Frame[]} complete frames
 * @throws {Error} if a server may not send that
 */
export function framesIn(received) {
  /** @type {Frame[]} */
  const frames = [];
  const end = received.indexOf('\r\n\r\n');
  let rest = end < 0 ? NOTHING : Buffer.from(received.slice(end + 4), 'latin1');
  for (;;) {
    if (rest.length < 2) return frames;
    const [first, short] = rest;
    if (first < 0x80 || first & 0x70 || short & 0x80) throw new Error(`a wrong frame: ${first}, ${short}`);
    const begin = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (rest.length < begin) return frames;
    const size = short < 126 ? short : short === 126 ? rest.readUInt16BE(2) : Number(rest.readBigUInt64BE(2));
    if (rest.length < begin + size) return frames;
    frames.push({ opcode: first & 0xf, payload: rest.subarray(begin, begin + size) });
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
  return framed(rawClient(port), target, { headers });
}

/**
 * Asks for a WebSocket.
 * @template {ReturnType<typeof rawClient> | ReturnType<typeof import('./tlsclient.js').tlsClient>} Client
 * @param {Client} client that has sent nothing
 * @param {string} target
 * @param {Asking} [asking]
 */
export function framed(client, target, { headers, method, version, early = NOTHING } = {}) {
  client.socket.write(Buffer.concat([Buffer.from(handshake(target, headers, method, version)), early]));
  return Object.assign(client, {
    untilOpen: () => client.untilRead(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\n/),
    /** @param {Parameters<typeof frame>} given */
    frame: (...given) => client.socket.write(frame(...given)),
    /** @param {number} count @returns {Promise<string[]>} text messages, as soon as there are so many */
    untilMessages: (count) =>
      until(
        () => messagesIn(client.received).length >= count && messagesIn(client.received),
        () => `${count} messages in ${JSON.stringify(client.received.slice(-500))}`,
      ),
    /** @returns {Promise<number | undefined>} the code with which the server has closed, once the connection is closed */
    untilClosing: async () => {
      await until(
        () => client.closed,
        () => `the end of ${JSON.stringify(client.received.slice(-80))}`,
      );
      return closeIn(client.received)?.code;
    },
  });
}
