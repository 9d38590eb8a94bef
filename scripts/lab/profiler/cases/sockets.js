/*
 * One concatenated write against separate ones, on a real connection over loopback. A call is a request of one byte and its answer: a
 * head of 16 bytes, a value of 64 or 1,024, and a tail of 7. Both ends are in this process and cost the same in each case.
 */
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { textOf } from './inputs.js';

/** @typedef {import('../micro.js').Case} Case */
/** @typedef {import('node:net').Socket} Socket */

const HEAD = 'VALUE key 0 64\r\n';
const TAIL = '\r\nEND\r\n';
const HEAD_BYTES = Buffer.from(HEAD);
const TAIL_BYTES = Buffer.from(TAIL);

/** @type {Record<string, { text: string, answer: (socket: Socket, value: Buffer, text: string) => void }>} */
const WAYS = {
  Separate: {
    text: 'three writes',
    answer: (socket, value) => {
      socket.write(HEAD_BYTES);
      socket.write(value);
      socket.write(TAIL_BYTES);
    },
  },
  Corked: {
    text: 'three writes, corked',
    answer: (socket, value) => {
      socket.cork();
      socket.write(HEAD_BYTES);
      socket.write(value);
      socket.write(TAIL_BYTES);
      socket.uncork();
    },
  },
  Concat: {
    text: 'Buffer.concat and one write',
    answer: (socket, value) => socket.write(Buffer.concat([HEAD_BYTES, value, TAIL_BYTES])),
  },
  String: {
    text: 'one string as Latin-1, and one write',
    answer: (socket, _value, text) => socket.write(HEAD + text + TAIL, 'latin1'),
  },
  Utf8: {
    text: 'one string as UTF-8, and one write',
    answer: (socket, _value, text) => socket.write(HEAD + text + TAIL),
  },
};

/** @param {string} way @param {number} size @returns {Promise<Case>} */
async function exchange(way, size) {
  const { text, answer } = WAYS[way];
  const [value, valueText] = [Buffer.from(textOf(size, 1)), textOf(size, 1)];
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on('data', () => answer(socket, value, valueText));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  const client = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(client, 'connect');
  const length = HEAD.length + size + TAIL.length;
  return {
    name: `write${way}${size}`,
    text: `${text} (${size} bytes)`,
    run: (n) => answersTo(client, n, length),
    expected: (n) => n * length,
    end: () => {
      client.destroy();
      server.close();
    },
  };
}

/** @param {Socket} client @param {number} n @param {number} length of an answer @returns {Promise<number>} bytes of n answers */
function answersTo(client, n, length) {
  return new Promise((resolve) => {
    let bytes = 0;
    let missing = length;
    const read = (/** @type {Buffer} */ data) => {
      bytes += data.length;
      missing -= data.length;
      if (missing > 0) return;
      missing = length;
      if (bytes < n * length) return void client.write('x');
      client.off('data', read);
      resolve(bytes);
    };
    client.on('data', read);
    client.write('x');
  });
}

/** What each is, without opening connections. */
export const SOCKETS = [64, 1024].flatMap((size) =>
  Object.entries(WAYS).map(([way, { text }]) => ({
    name: `write${way}${size}`,
    text: `${text} (${size} bytes)`,
    open: () => exchange(way, size),
  })),
);
