/*
 * The hold transport: the native core holds the streams of the workers.
 */
import { lookup } from 'node:dns/promises';
import { native } from '../native/index.js';
import { claimPort, joinPort } from './bind.js';
import { StreamHolder } from './holder.js';
import { holdOptionsIn } from './options.js';

/**
 * @param {import('./index.js').TransportOptions} options
 * @returns {import('./index.js').Transport}
 */
export function create(options) {
  return new StreamHolder(holdOptionsIn(options), native, { sharesPort: true });
}

/**
 * @param {number} port 0 takes a free one @param {string} host '' for every address of the machine
 * @returns {Promise<import('./index.js').PortClaim>}
 * @throws {NodeJS.ErrnoException} EADDRINUSE
 */
export async function claim(port, host) {
  const address = host === '' ? '' : (await lookup(host)).address;
  return claimPort(/** @type {import('../native/types.js').Native} */ (native), address, port);
}

/**
 * @param {number} port claimed by another process @param {string} host '' for every address of the machine
 * @returns {Promise<import('./index.js').PortClaim>}
 * @throws {NodeJS.ErrnoException} EADDRINUSE
 */
export async function join(port, host) {
  const address = host === '' ? '' : (await lookup(host)).address;
  return joinPort(/** @type {import('../native/types.js').Native} */ (native), address, port);
}
