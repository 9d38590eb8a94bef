/*
 * A client on a raw socket that keeps what it has read.
 */
import { connect } from 'node:net';
import { until } from './until.js';

/**
 * @param {number} port
 * @param {string} [bytes] sent at once
 * @param {string} [host]
 */
export function rawClient(port, bytes = '', host = '127.0.0.1') {
  const socket = connect({ port, host, noDelay: true });
  // A silent connection may never notice that its server has ended.
  socket.unref();
  let problem = '';
  const client = {
    socket,
    received: '',
    ended: false,
    closed: false,
    /** @param {string} text */
    send: (text) => socket.write(text),
    /** @param {RegExp} pattern @param {number} [deadlineMs] */
    untilRead: (pattern, deadlineMs) =>
      until(
        () => pattern.exec(client.received) ?? client.mustBeOpen(),
        () => `${pattern} in ${JSON.stringify(client.received)}`,
        deadlineMs,
      ),
    /** @returns {null} @throws {Error} what has ended it */
    mustBeOpen: () => {
      if (!client.closed) return null;
      throw new Error(
        `the connection is closed (${problem || 'without an error'}): ${JSON.stringify(client.received)}`,
      );
    },
    /** @returns {Promise<boolean>} */
    untilClosed: () => until(() => client.closed, 'the connection is closed'),
    close: () => socket.destroy(),
  };
  socket.on('data', (data) => {
    client.received += data.toString('latin1');
  });
  socket.on('end', () => {
    client.ended = true;
  });
  socket.on('close', () => {
    client.closed = true;
  });
  socket.on('error', ({ message }) => {
    problem = message;
  });
  if (bytes) socket.write(bytes);
  return client;
}

/**
 * A client that sends a request and leaves at once or a little later, with a FIN or a RST.
 * @param {number} port @param {string} request
 * @param {number} i how: any whole number
 */
export function leavingClient(port, request, i) {
  const client = rawClient(port);
  const { socket } = client;
  const leave = () => (i % 2 === 0 ? socket.resetAndDestroy() : socket.destroy());
  socket.on('connect', () =>
    socket.write(request, () => {
      if (i % 8 < 2) leave();
      else if (i % 8 < 4) setImmediate(leave);
      else if (i % 8 < 6) setTimeout(leave, 1 + (i % 5));
      else socket.once('data', leave);
    }),
  );
  return client;
}

/** @param {Record<string, string>} [headers] @param {string} [version] */
export function get(headers = {}, version = '1.1') {
  const lines = Object.entries({ Host: 'localhost', ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  return `GET / HTTP/${version}\r\n${lines.join('')}\r\n`;
}

/**
 * Removes the chunked framing.
 * @param {string} response head and body
 * @returns {string[]} the complete chunks
 */
export function chunksOf(response) {
  let rest = response.slice(response.indexOf('\r\n\r\n') + 4);
  const chunks = [];
  for (;;) {
    const size = /^([0-9a-f]+)\r\n/i.exec(rest);
    if (!size) return chunks;
    const start = size[0].length;
    const end = start + Number.parseInt(size[1], 16);
    if (rest.length < end + 2) return chunks;
    chunks.push(rest.slice(start, end));
    rest = rest.slice(end + 2);
  }
}

/**
 * What a stream has received. Without the native core, node may put what was written in one turn into one chunk.
 * @param {string} response head and body
 * @returns {string} its body without chunked framing
 */
export function bodyOf(response) {
  const start = response.indexOf('\r\n\r\n') + 4;
  const isChunked = /\r\ntransfer-encoding: chunked\r\n/i.test(response.slice(0, start));
  return isChunked ? chunksOf(response).join('') : response.slice(start);
}
