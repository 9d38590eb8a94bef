/*
 * Brokers as an application makes them: with defaults, and options that are checked.
 */
import { openBroker as open } from '../broker/index.js';
import { MemoryBroker as Memory } from '../broker/memory.js';
import { isNatsUrl, isStreamName } from '../lib/nats.js';
import { shown } from '../lib/shown.js';
import { badOption, cachedBy, checkKeys, HISTORY, isHttp, PATH, withoutUndefined } from './settings.js';

const DEFAULTS = {
  ...HISTORY,
  cacheTopics: /** @type {readonly string[]} */ ([]),
  url: `http://localhost${PATH}`,
};

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {Partial<typeof DEFAULTS>} BrokerOptions */
/** @typedef {Partial<typeof NATS> & { servers: string | readonly string[] }} NatsGiven */
/** @typedef {BrokerOptions & { store?: string, sync?: boolean, nats?: NatsGiven, onNote?: (line: string) => void }} StoreOptions */

const NATS = { stream: 'HOLDFAST', replicas: 1, credentials: '', ca: '', cert: '', certKey: '' };

/** Keeps publications in memory. */
export class MemoryBroker extends Memory {
  /** @param {BrokerOptions} [options] @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION */
  constructor(options = {}) {
    super(limitsOf('a MemoryBroker', options));
  }
}

/**
 * Keeps publications in a folder, or in memory if there is none; with `nats`, it keeps what is in a stream that others use too.
 * @param {StoreOptions} [given] `sync`: whether a publication is on the disk before it is answered
 * @returns {Promise<Broker>}
 * @throws {import('../lib/errors.js').HoldfastError} BAD_OPTION; STORE if the folder or the package lmdb can't be used; NATS if it refuses
 *   this program
 */
export async function openBroker(given = {}) {
  checkKeys('a broker', given, [...Object.keys(DEFAULTS), 'store', 'sync', 'nats', 'onNote']);
  const { store = '', sync = true, nats, onNote = () => {}, ...options } = given;
  if (typeof store !== 'string')
    throw badOption(`the store of a broker must be a folder, not ${shown(store)}`);
  if (typeof sync !== 'boolean')
    throw badOption(`the option sync of a broker must be true or false, not ${shown(sync)}`);
  if (typeof onNote !== 'function')
    throw badOption(`onNote of a broker must be a function, not ${shown(onNote)}`);
  const limits = limitsOf('a broker', options);
  return open({ store, syncs: sync, ...limits, nats: nats ? natsOf(nats, limits) : null, onNote });
}

/** @param {NatsGiven} given @param {import('../broker/index.js').Limits} limits @returns {import('../broker/index.js').NatsOptions} */
function natsOf(given, limits) {
  checkKeys('nats', given, [...Object.keys(NATS), 'servers']);
  const { servers, ...options } = { ...NATS, ...withoutUndefined(given) };
  const urls = typeof servers === 'string' ? [servers] : servers;
  if (!Array.isArray(urls) || urls.length === 0 || !urls.every(isNatsUrl))
    throw badOption('the servers of nats must be URLs such as nats://host:4222');
  if (!isStreamName(options.stream))
    throw badOption(`the stream of nats must be letters, digits, - and _, not ${shown(options.stream)}`);
  if (!Number.isInteger(options.replicas) || options.replicas < 1 || options.replicas > 5)
    throw badOption(`the replicas of nats must be 1 to 5, not ${shown(options.replicas)}`);
  for (const name of /** @type {const} */ (['credentials', 'ca', 'cert', 'certKey']))
    if (typeof options[name] !== 'string')
      throw badOption(`the option ${name} of nats must be a file, not ${shown(options[name])}`);
  if ((options.cert === '') !== (options.certKey === ''))
    throw badOption('the options cert and certKey of nats need each other');
  for (const name of /** @type {const} */ (['historyCount', 'historyAgeMs', 'historyBytes']))
    if (limits[name] === 0) throw badOption(`the option ${name} of a broker with nats must be above 0`);
  return { servers: urls, ...options };
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
  return { ...limits, isCached: cachedBy(cacheTopics, url), hasCached: cacheTopics.length > 0 };
}
