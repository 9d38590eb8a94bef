/*
 * Lets the shards of a native core listen, with errors like those of node:net.
 */
import { createServer } from 'node:net';
import { getSystemErrorName } from 'node:util';

/** Errors of a system without IPv6. */
const NO_IPV6 = ['EAFNOSUPPORT', 'EADDRNOTAVAIL'];

/** @typedef {import('../native/types.js').Core} Core */

/**
 * @param {Core} core
 * @param {string} address '' for all of IPv6 and IPv4
 * @param {number} port 0 takes a free one
 * @returns {number} the port
 * @throws {NodeJS.ErrnoException}
 */
export function bind(core, address, port) {
  if (address !== '') return bindOne(core, address, port);
  try {
    return bindOne(core, '::', port);
  } catch (error) {
    if (!NO_IPV6.includes(/** @type {NodeJS.ErrnoException} */ (error).code ?? '')) throw error;
    return bindOne(core, '0.0.0.0', port);
  }
}

/**
 * Checks that no other process listens on the port. Shards share it (SO_REUSEPORT), so the kernel would let another process
 * of this user share it too. A plain socket can't share, and fails.
 * @param {string} address @param {number} port
 * @returns {Promise<void>}
 * @throws {NodeJS.ErrnoException} EADDRINUSE
 */
export function checkFree(address, port) {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host: address || undefined }, () => server.close(() => resolve()));
  });
}

/** @param {Core} core @param {string} address @param {number} port */
function bindOne(core, address, port) {
  try {
    return core.listen(address, port);
  } catch (error) {
    throw systemError(error, 'listen');
  }
}

/** @param {unknown} error of native, whose message is 'errno NUMBER' @param {string} syscall */
function systemError(error, syscall) {
  const number = /^errno (\d+)$/.exec(/** @type {Error} */ (error).message)?.[1];
  if (!number) return error;
  const code = getSystemErrorName(-Number(number));
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall, errno: -Number(number) });
}
