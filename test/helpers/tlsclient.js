/*
 * A client with TLS that keeps what it has read, as rawClient does without.
 */
import { connect } from 'node:tls';
import { until } from './until.js';

/**
 * @param {number} port
 * @param {string} [bytes] sent once the handshake is done
 * @param {import('node:tls').ConnectionOptions} [options]
 */
export function tlsClient(port, bytes = '', options = {}) {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: 'localhost',
    rejectUnauthorized: false,
    ...options,
  });
  socket.unref();
  const client = {
    socket,
    received: '',
    closed: false,
    problem: '',
    /** The newest ticket. @type {Buffer | undefined} */
    session: undefined,
    send: (/** @type {string} */ text) => socket.write(text),
    /** @param {RegExp} pattern @param {number} [deadlineMs] */
    untilRead: (pattern, deadlineMs) =>
      until(
        () => pattern.exec(client.received),
        () => `${pattern} in ${JSON.stringify(client.received)} ${client.problem}`,
        deadlineMs,
      ),
    untilClosed: () => until(() => client.closed, 'the connection is closed'),
    untilSession: () => until(() => client.session, 'a ticket'),
    /** @returns {string} the common name in the certificate of the server */
    nameOfServer: () => String(socket.getPeerCertificate().subject.CN),
    close: () => void socket.destroy(),
  };
  socket.on('data', (data) => {
    client.received += data.toString('latin1');
  });
  socket.on('session', (session) => {
    client.session = session;
  });
  socket.on('close', () => {
    client.closed = true;
  });
  socket.on('error', (error) => {
    client.problem = error.message;
  });
  if (bytes) socket.once('secureConnect', () => socket.write(bytes));
  return client;
}
