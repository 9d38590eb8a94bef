/*
 * Brokers as an application makes them: with defaults, and options that are checked.
 */
import { openBroker as open } from '../broker/index.js';
import { MemoryBroker as Memory } from '../broker/memory.js';
import { shown } from '../lib/shown.js';
import { badOption, cachedBy, checkKeys, HISTORY, isHttp, PATH, withoutUndefined } from './settings.js';

const DEFAULTS = {
  ...HISTORY,
  cacheTopics: /** @type {readonly string[]} */ ([]),
  url: `http://localhost${PATH}`,
};

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {Partial<typeof DEFAULTS>} BrokerOptions */
/** @typedef {BrokerOptions & { store?: string, sync?: boolean }} StoreOptions */

/** Keeps publications in memory. */
export class MemoryBroker extends Memory {
  /** @param {BrokerOptions} [options] @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION */
  constructor(options = {}) {
    super(limitsOf('a MemoryBroker', options));
  }
}

/**
 * Keeps publications in a folder, or in memory if there is none.
 * @param {StoreOptions} [given] `sync`: whether a publication is on the disk before it is answered
 * @returns {Promise<Broker>}
 * @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION; STORE if the folder or the package lmdb can't be used
 */
export async function openBroker(given = {}) {
  checkKeys('a broker', given, [...Object.keys(DEFAULTS), 'store', 'sync']);
  const { store = '', sync = true, ...options } = given;
  if (typeof store !== 'string')
    throw badOption(`the store of a broker must be a folder, not ${shown(store)}`);
  if (typeof sync !== 'boolean')
    throw badOption(`the option sync of a broker must be true or false, not ${shown(sync)}`);
  return open({ store, syncs: sync, ...limitsOf('a broker', options) });
}

/** @param {string} what @param {BrokerOptions} options @returns {import('../broker/index.js').Limits} */
function limitsOf(what, options) {
  checkKeys(what, options, Object.keys(DEFAULTS));
  const { cacheTopics, url, ...limits } = { ...DEFAULTS, ...withoutUndefined(options) };
  for (const [name, value] of Object.entries(limits))
    if (!Number.isInteger(value) || value < 0)
      throw badOption(`the option ${name} of ${what} must be a whole number, not ${shown(value)}`);
  if (!Array.isArray(cacheTopics) || !cacheTopics.every((one) => typeof one === 'string'))
    throw badOption(`the option cacheTopics of ${what} must be a list of strings, not ${shown(cacheTopics)}`);
  if (!isHttp(url)) throw badOption(`the url of ${what} must be like ${DEFAULTS.url}, not ${shown(url)}`);
  return { ...limits, isCached: cachedBy(cacheTopics, url) };
}
