/*
 * The hold transport: the native core holds the streams of the workers.
 */
import { native } from '../native/index.js';
import { StreamHolder } from './holder.js';
import { holdOptionsIn } from './options.js';

/**
 * @param {import('./index.js').TransportOptions} options
 * @returns {import('./index.js').Transport}
 */
export function create(options) {
  return new StreamHolder(holdOptionsIn(options), native, { sharesPort: true });
}
