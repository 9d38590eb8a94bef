/*
 * A port that the workers are to share, each with sockets of its own (SO_REUSEPORT). Such a socket opens beside
 * those of any other server that does the same, so whether the port is free must be found out without.
 */
import { createServer } from 'node:net';
import { codeOf, listenError } from './errors.js';

/**
 * @param {number} port 0 for one that the system chooses
 * @param {string} host '' for all addresses
 * @returns {Promise<number>} the port, on which nobody listens
 * @throws {import('./errors.js').HoldfastError} why it can't be opened
 */
export function freePort(port, host) {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(codeOf(error) ? listenError(error, 'port', port, host) : error));
    server.listen({ port, host: host || undefined }, () => {
      const { port: bound } = /** @type {import('node:net').AddressInfo} */ (server.address());
      server.close(() => resolve(bound));
    });
  });
}
