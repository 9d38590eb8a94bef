/*
 * One thread of the server: the main one, or one more with -t.
 */
import { createServer } from 'node:net';
import { openShared } from './counters.js';
import { Requests } from './requests.js';
import { connector } from './sockets.js';
import { Store } from './store.js';

/**
 * @typedef {object} ThreadData what every thread is given
 * @property {import('./options.js').Options} options
 * @property {number} startedAt
 * @property {number} pages of each store
 * @property {ArrayBufferLike} shared
 * @property {ArrayBufferLike[]} memories of the stores
 */

/** @param {ThreadData} data @param {number} thread @returns {{ server: import('node:net').Server, requests: Requests }} */
export function startThread({ options, startedAt, pages, shared: memory, memories }, thread) {
  const shared = openShared(memory, options.threads, startedAt);
  const stores = memories.map((each) => new Store(each, pages, shared.words));
  const requests = new Requests(stores, shared, thread, options);
  const server = createServer({ noDelay: true, pauseOnConnect: true }, connector(requests));
  return { server, requests };
}
