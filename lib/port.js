/*
 * Opening ports, with errors that name the option to change.
 */
import { createServer } from 'node:net';
import { codeOf, listenError } from './errors.js';

/**
 * Opens a server for as long as the process runs.
 * @param {import('node:net').Server} server
 * @param {{ port: number, host: string, flag: string }} where port 0 for a free one, host '' for all addresses; the flag is
 *   the option that gave the port
 * @returns {Promise<number>} the port
 * @throws {import('./errors.js').HoldfastError} why it can't be opened
 */
export function openPort(server, { port, host, flag }) {
  return new Promise((resolve, reject) => {
    server.once('error', (error) => reject(codeOf(error) ? listenError(error, flag, port, host) : error));
    server.listen({ port, host: host || undefined }, () => {
      server.on('error', () => {}); // accepting failed: the client tries again
      resolve(/** @type {import('node:net').AddressInfo} */ (server.address()).port);
    });
  });
}

/**
 * Finds a port that is free at this moment.
 * @param {number} port 0 to let the system choose
 * @param {string} host '' for all addresses
 * @returns {Promise<number>} the port; nobody listens on it
 * @throws {import('./errors.js').HoldfastError} why it can't be opened
 */
export async function freePort(port, host) {
  const server = createServer();
  const bound = await openPort(server, { port, host, flag: 'port' });
  await new Promise((resolve) => server.close(resolve));
  return bound;
}
