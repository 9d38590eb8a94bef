#!/usr/bin/env node
/*
 * memcached in Node: node examples/nodecached/server.js --help
 */
import { randomFillSync } from 'node:crypto';
import { createServer } from 'node:net';
import { Worker } from 'node:worker_threads';
import { epoch, openShared, sharedMemory, startClock } from './counters.js';
import { SECRET } from './layout.js';
import { announce, endOnSignals, readOptions } from './options.js';
import { memoryFor } from './store.js';
import { startThread } from './thread.js';

const NAME = 'nodecached/server.js';
const BACKLOG = 1024;

/** @typedef {import('node:net').Server} Server */

/** @param {import('./options.js').Options} options @returns {import('./thread.js').ThreadData} */
function makeData(options) {
  const { threads, memory } = options;
  const pages = Math.floor(memory / threads);
  const secret = randomFillSync(new Int32Array(2));
  const memories = Array.from({ length: threads }, () => {
    const each = memoryFor(pages, threads > 1);
    new Int32Array(each).set(secret, SECRET);
    return each;
  });
  return { options, startedAt: epoch(), pages, shared: sharedMemory(threads), memories };
}

/** Node can let the kernel spread connections over several sockets since 22.12 and 23.1. @returns {boolean} */
function hasReusePort() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  return major > 23 || (major === 23 && minor >= 1) || (major === 22 && minor >= 12);
}

/** How the other threads accept: on a port of the same number, or at the same socket. @param {Server} server @returns {object} */
function howOthersListen(server) {
  const { address, port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  if (hasReusePort()) return { host: address, port, reusePort: true, backlog: BACKLOG };
  const { _handle } = /** @type {{ _handle: { fd: number } }} */ (/** @type {unknown} */ (server));
  return { fd: _handle.fd };
}

/** @param {import('./thread.js').ThreadData} data @param {Server} server @returns {Promise<unknown>} when they listen */
function startWorkers(data, server) {
  const how = howOthersListen(server);
  const others = Array.from({ length: data.options.threads - 1 }, (_, index) => {
    const worker = new Worker(new URL('worker.js', import.meta.url), {
      workerData: { data, thread: index + 1, how },
    });
    return new Promise((resolve) => worker.once('message', resolve));
  });
  return Promise.all(others);
}

/** @template T @param {() => T | Promise<T>} action @param {(error: Error) => string} explain @returns {Promise<T>} ends the process if it fails */
async function orEnd(action, explain) {
  try {
    return await action();
  } catch (error) {
    process.stderr.write(`${NAME}: ${explain(/** @type {Error} */ (error))}\n`);
    process.exit(1);
  }
}

/** @param {Error} error */
function endUnheard({ message }) {
  process.stderr.write(`${NAME}: can't listen on ${options.address}:${options.port}: ${message}\n`);
  process.exit(1);
}

/** A port that may be shared could belong to another server that shares it: so it is taken alone first. @returns {Promise<void>} */
function untilFree() {
  return new Promise((resolve) => {
    const alone = createServer().once('error', endUnheard);
    alone.listen(where, () => alone.close(() => resolve()));
  });
}

const options = readOptions(NAME);
const data = await orEnd(
  () => makeData(options),
  ({ message }) => `--memory-limit: can't have ${options.memory} MB: ${message}`,
);
if (options.profile) {
  const { profile } = await import('./profile.js');
  await orEnd(
    () => profile(options),
    ({ message }) => message,
  );
}
startClock(openShared(data.shared, options.threads, data.startedAt));
endOnSignals();
const { server } = startThread(data, 0);
server.on('error', endUnheard);
const where = { port: options.port, host: options.address, backlog: BACKLOG };
const isShared = options.threads > 1 && hasReusePort();
if (isShared) await untilFree();
server.listen({ ...where, reusePort: isShared }, async () => {
  await startWorkers(data, server);
  announce(server);
});
