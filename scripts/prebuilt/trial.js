/*
 * Run by a Node of any machine: holds a stream natively, delivers a message to it, and lets its shard fail, which unwinds the
 * stack in the native core. Prints what happened, as JSON.
 *
 *     node trial.js FOLDER      of the package
 */
import { createServer, get } from 'node:http';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** @typedef {{ origin: string, node: string, isNative: boolean, inJs: number, received: string, end: string, restarts: number }} Trial */

const folder = pathToFileURL(`${resolve(process.argv[2])}/`);
const { Hold } = await import(new URL('index.js', folder).href);
const { origin } = await import(new URL('native/index.js', folder).href);

const hold = new Hold({ onClose, onError: () => {} });
const server = createServer(async (_request, response) => {
  await hold.adopt(response, { channels: ['news'] });
  await hold.publish('news', 'hello');
});
let received = '';
let inJs = 0;

server.listen(0, '127.0.0.1', () => {
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  get({ host: '127.0.0.1', port }, (response) => {
    response.on('error', () => {}); // its end, which the shard causes
    response.on('data', onData);
  });
});

/** @param {Buffer} data */
function onData(data) {
  received += data;
  if (!received.endsWith('\n\n')) return;
  inJs = hold.counters().inJs;
  if (hold.isNative) hold.shards.core.failShard(0);
  else hold.close(0);
}

/** @param {number} _id @param {string} end */
function onClose(_id, end) {
  const { isNative } = hold;
  const restarts = hold.counters().shardFailures;
  const trial = { origin, node: process.version, isNative, inJs, received, end, restarts };
  process.stdout.write(`${JSON.stringify(trial)}\n`);
  server.close();
  hold.close(0);
}
