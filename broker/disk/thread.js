/*
 * The thread of a disk broker: it does what can block, one thing at a time. disk.js starts it, and each of its messages is a
 * call with an id.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { codeOf, messageOf } from '../../lib/errors.js';
import { Store } from './store.js';

/** Without --store-sync, at most this long is lost if the machine loses power. */
const FLUSH_MS = 1000;

/** @typedef {import('./log.js').Part} Part */

/**
 * @typedef {{ name: 'open' }
 *   | { name: 'uncache', topics: string[] }
 *   | { name: 'append', frames: Uint8Array<ArrayBuffer>, cachedTopics: Map<number, string[]> }
 *   | { name: 'read', after: number, most: number }
 *   | { name: 'find', id: string }
 *   | { name: 'latest', after: number }
 *   | { name: 'restart', order: import('../index.js').Order }
 *   | { name: 'close' }} Call
 *
 * @typedef {import('../index.js').Order & { first: number, topics: string[] }} Opened
 * @typedef {{ id: number, result?: any, problem?: { code: string, message: string } }} Reply
 */

const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort);
/** @type {Store} */
let store;
let queue = Promise.resolve();

port.on('message', (/** @type {{ id: number, call: Call }} */ { id, call }) => {
  queue = queue.then(() => reply(id, call));
});

/** @param {number} id @param {Call} call */
async function reply(id, call) {
  try {
    const result = await run(call);
    port.postMessage({ id, result }, buffersOf(result));
  } catch (error) {
    port.postMessage({ id, problem: { code: codeOf(error) || 'STORE', message: messageOf(error) } });
  }
}

/** @param {Call} call */
async function run(call) {
  switch (call.name) {
    case 'open':
      return open();
    case 'uncache':
      return store.uncache(call.topics);
    case 'append':
      return store.append(call.frames, call.cachedTopics);
    case 'read':
      return store.read(call.after, call.most);
    case 'find':
      return store.find(call.id);
    case 'latest':
      return store.latest(call.after);
    case 'restart':
      return store.restart(call.order);
    case 'close':
      return store.close();
  }
}

/** @returns {Promise<Opened>} */
async function open() {
  store = await Store.open(workerData);
  if (!workerData.syncs) setInterval(flush, FLUSH_MS).unref();
  return { ...store.order, topics: [...store.contents.cached.topics.keys()] };
}

function flush() {
  queue = queue.then(() => store.flush()).catch(() => {}); // the next append says what is wrong
}

/** @param {unknown} result @returns {ArrayBuffer[]} memory that is moved, not copied */
function buffersOf(result) {
  return Array.isArray(result) ? result.map((/** @type {Part} */ { frames }) => frames.buffer) : [];
}
