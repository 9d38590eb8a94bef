/*
 * Where a Hold listens.
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * `address` is '' for all. `isTls`: a Hold of an older version, in another process, does not say.
 * @typedef {{ address: string, port: number, isTls?: boolean }} Place
 */

/**
 * @param {Place} place where the sockets listen that have come from another process
 * @param {Place} asked as given to `listen`
 * @throws {HoldfastError} LISTENING if that is somewhere else
 */
export function checkPlace(place, asked) {
  const { address, port, isTls = false } = place;
  if (asked.address !== address || (asked.port !== 0 && asked.port !== port))
    throw new HoldfastError(
      'LISTENING',
      `this Hold has taken over the port ${port} of ${address || 'all addresses'}: listen there, not on ${asked.port} of ${asked.address || 'all addresses'}`,
    );
  if (asked.isTls === isTls) return;
  throw new HoldfastError(
    'LISTENING',
    `this Hold has taken over the port ${port}, which ${isTls ? 'speaks' : 'does not speak'} TLS: listen there with${isTls ? '' : 'out'} { tls }`,
  );
}
