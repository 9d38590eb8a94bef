/*
 * Connections as sockets that read into one buffer. By default each read of Node gets a new 64 KB buffer, which costs more
 * than a whole get. The option `onread` reads into ours, but servers can't be told to use it, so the handle of each accepted
 * socket moves to a new socket that has it.
 */
import { Socket } from 'node:net';
import { TOO_MANY } from './answers.js';
import { Connection } from './connection.js';
import { COUNTER, SHARED } from './counters.js';

const READ_BYTES = 65_536;

/** @typedef {import('./requests.js').Requests} Requests */

/**
 * @param {Requests} requests of this thread
 * @returns {(accepted: Socket) => void} takes a connection of a server with `pauseOnConnect`
 */
export function connector(requests) {
  const { words } = requests.shared;
  const buffer = Buffer.allocUnsafeSlow(READ_BYTES);
  return (accepted) => {
    requests.count('total_connections');
    if (Atomics.add(words, SHARED.connections, 1) >= requests.options.connections) refuse(requests, accepted);
    else connect(requests, accepted, buffer);
  };
}

/** @param {Requests} requests @param {Socket} accepted */
function refuse(requests, accepted) {
  Atomics.sub(requests.shared.words, SHARED.connections, 1);
  requests.count('rejected_connections');
  accepted.on('error', () => {});
  accepted.end(TOO_MANY);
  accepted.destroySoon();
}

/** @param {Requests} requests @param {Socket} accepted @param {Buffer} buffer */
function connect(requests, accepted, buffer) {
  /** @type {(length: number) => boolean} */
  const onRead = (length) => {
    requests.counters[COUNTER.bytes_read] += length;
    return connection.receive(buffer, length);
  };
  const socket = withBuffer(accepted, buffer, onRead);
  const connection = new Connection(socket, requests);
  socket.on('drain', () => connection.drained());
  socket.on('error', () => {}); // 'close' follows
  socket.on('close', () => Atomics.sub(requests.shared.words, SHARED.connections, 1));
  socket.resume();
}

/** @param {Socket} accepted @param {Buffer} buffer @param {(length: number) => boolean} callback @returns {Socket} */
export function withBuffer(accepted, buffer, callback) {
  const owner = /** @type {{ _handle: unknown }} */ (/** @type {unknown} */ (accepted));
  const options = { handle: owner._handle, onread: { buffer, callback } };
  owner._handle = null; // it belongs to the new socket
  return new Socket(/** @type {import('node:net').SocketConstructorOpts} */ (options));
}
