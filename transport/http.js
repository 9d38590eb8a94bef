/*
 * The http transport: node:http, with one ServerResponse per stream. It is what most people would write, the reference for
 * behaviour, and the baseline of every measurement.
 */
import { StreamHolder } from './holder.js';
import { holdOptionsIn } from './options.js';

/**
 * @param {import('./index.js').TransportOptions} options
 * @returns {import('./index.js').Transport}
 */
export function create(options) {
  return new StreamHolder(holdOptionsIn(options), null);
}

/**
 * Nothing to do: the workers share one socket of the primary, and nobody else can listen on its port.
 * @param {number} port
 * @returns {Promise<import('./index.js').PortClaim>}
 */
export async function claim(port) {
  return { port, release() {} };
}
