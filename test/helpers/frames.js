/*
 * A client of a WebSocket that sends any frames, right or wrong (RFC 6455, section 5.2), on a raw socket.
 */
import { rawClient } from './client.js';
import { until } from './until.js';

/** The example of RFC 6455, section 1.3. */
export const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';
export const ACCEPT = 's3pPLMBiTxaQ9kYGzzhZRbK+xOo=';

/** @type {Record<string, string>} */
export const UPGRADE = {
  Connection: 'Upgrade',
  Upgrade: 'websocket',
  'Sec-WebSocket-Version': '13',
  'Sec-WebSocket-Key': KEY,
};

export const OPCODES = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 };
const FIN = 0x80;
const MASKED = 0x80;

/** @typedef {{ opcode: number, payload: Buffer }} Frame of a server: always whole */

/**
 * @param {number} opcode @param {string | Uint8Array} [given]
 * @param {object} [how]
 * @param {boolean} [how.isLast] whether it ends its message
 * @param {number} [how.reserved] the three reserved bits
 * @param {Uint8Array | null} [how.mask] null for none
 * @param {number} [how.lengthBytes] 0, 2 or 8: by default as few as possible
 * @param {bigint} [how.length] that it says
 * @returns {Buffer}
 */
export function frame(opcode, given = '', how = {}) {
  const { isLast = true, reserved = 0, mask = Buffer.from([1, 2, 3, 250]) } = how;
  const payload = Buffer.from(/** @type {string} */ (given));
  const lengthBytes = how.lengthBytes ?? (payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8);
  const short = { 0: payload.length, 2: 126, 8: 127 }[lengthBytes] ?? 0;
  const head = [(isLast ? FIN : 0) | (reserved << 4) | opcode, (mask ? MASKED : 0) | short];
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(how.length ?? BigInt(payload.length));
  const masked = mask ? payload.map((byte, i) => byte ^ mask[i % 4]) : payload;
  return Buffer.concat([
    Buffer.from(head),
    length.subarray(8 - lengthBytes),
    mask ?? Buffer.alloc(0),
    masked,
  ]);
}

/** @param {number} code @param {string | Uint8Array} [why] @returns {Buffer} the payload of a close frame */
export function closing(code, why = '') {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(code);
  return Buffer.concat([bytes, Buffer.from(/** @type {string} */ (why))]);
}

/**
 * @param {string} received Latin-1, after the head of the response
 * @returns {Frame[]} those that are complete
 * @throws {Error} if a server may not send that
 */
export function framesIn(received) {
  const bytes = Buffer.from(received, 'latin1');
  /** @type {Frame[]} */
  const frames = [];
  for (let at = 0; at + 2 <= bytes.length; ) {
    const [first, second] = bytes.subarray(at);
    if (!(first & FIN) || first & 0x70 || second & MASKED)
      throw new Error(`a wrong frame: ${first}, ${second}`);
    let begin = at + 2;
    let size = second;
    if (second >= 126) {
      const lengthBytes = second === 126 ? 2 : 8;
      if (begin + lengthBytes > bytes.length) break;
      size = lengthBytes === 2 ? bytes.readUInt16BE(begin) : Number(bytes.readBigUInt64BE(begin));
      begin += lengthBytes;
    }
    if (begin + size > bytes.length) break;
    frames.push({ opcode: first & 15, payload: bytes.subarray(begin, begin + size) });
    at = begin + size;
  }
  return frames;
}

/**
 * @param {number} port
 * @param {object} [how]
 * @param {Record<string, string>} [how.headers] instead of, or besides, those of UPGRADE
 * @param {string} [how.start] of the request
 * @param {Buffer} [how.early] sent with the request, without waiting for the response
 */
export function frameClient(port, { headers = {}, start = 'GET / HTTP/1.1', early = Buffer.alloc(0) } = {}) {
  const fields = Object.entries({ Host: 'localhost', ...UPGRADE, ...headers });
  const lines = fields.filter(([, value]) => value !== '').map(([name, value]) => `${name}: ${value}\r\n`);
  const client = rawClient(port);
  client.socket.write(Buffer.concat([Buffer.from(`${start}\r\n${lines.join('')}\r\n`), early]));
  const frames = () => framesIn(client.received.split('\r\n\r\n').slice(1).join('\r\n\r\n'));
  const texts = () => frames().filter(({ opcode }) => opcode === OPCODES.text);
  return {
    ...client,
    frames,
    get head() {
      return client.received.split('\r\n\r\n')[0];
    },
    get received() {
      return client.received;
    },
    get closed() {
      return client.closed;
    },
    untilOpen: () => client.untilRead(/^HTTP\/1\.1 101 [\s\S]*\r\n\r\n/),
    /** @param {number} opcode @param {string | Uint8Array} [payload] @param {Parameters<typeof frame>[2]} [how] */
    frame: (opcode, payload, how) => client.socket.write(frame(opcode, payload, how)),
    /** @param {number} count @returns {Promise<string[]>} the first text messages */
    untilTexts: async (count) => {
      await until(() => texts().length >= count, `${count} messages`);
      return texts().map(({ payload }) => payload.toString());
    },
    /** @returns {Promise<{ code: number | undefined, why: string }>} what the server said when it closed */
    untilClosing: async () => {
      await until(
        () => client.closed,
        `the connection is closed after ${JSON.stringify(client.received.slice(-80))}`,
      );
      const { payload } = frames().find(({ opcode }) => opcode === OPCODES.close) ?? { payload: undefined };
      return {
        code: payload && payload.length >= 2 ? payload.readUInt16BE() : undefined,
        why: payload?.toString('utf8', 2) ?? '',
      };
    },
  };
}
