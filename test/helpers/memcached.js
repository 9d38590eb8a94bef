/*
 * The real memcached, and servers that speak its protocol badly.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { findCommand } from '../../scripts/lab/install.js';
import { run, temporaryFolder } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** Why tests that need it are skipped; false if it is installed. */
export const noMemcached = findCommand('memcached')
  ? false
  : 'memcached is not installed (Debian: memcached)';

/** @param {TestContext} t @param {string[]} args @returns {Promise<number>} its port, which the system chose */
export async function startMemcached(t, ...args) {
  const file = join(temporaryFolder(t), 'port');
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
  const env = { ...process.env, MEMCACHED_PORT_FILENAME: file };
  run(t, findCommand('memcached'), ['-p', '-1', '-l', '127.0.0.1', ...user, ...args], { env });
  const port = () => existsSync(file) && Number(/^TCP INET: (\d+)/m.exec(readFileSync(file, 'utf8'))?.[1]);
  return until(port, 'memcached listens');
}

/** What a server does with a request: the text is its answer, '' is none, and null closes the connection. @typedef {(name: string, key: string, value: string) => string | null} Answering */

/**
 * A server that stores what it gets, but answers as told.
 * @param {TestContext} t @param {(stored: Map<string, string>) => Answering} create called once per server
 * @returns {Promise<number>} its port
 */
export async function serveCache(t, create) {
  const answer = create(new Map());
  const server = createServer((socket) => {
    let rest = '';
    socket.on('error', () => {});
    socket.on('data', (data) => {
      rest += data.toString('latin1');
      for (let one = takeRequest(rest); one; one = takeRequest(rest)) {
        rest = one.rest;
        const text = answer(one.name, one.key, one.value);
        if (text === null) return socket.destroy();
        socket.write(text, 'latin1');
      }
    });
    t.after(() => socket.destroy());
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  t.after(() => server.close());
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}

/** @param {string} text @returns {{ name: string, key: string, value: string, rest: string } | null} null if it isn't whole */
function takeRequest(text) {
  const end = text.indexOf('\r\n');
  if (end < 0) return null;
  const [name, key, , , length] = text.slice(0, end).split(' ');
  const start = end + 2;
  if (name !== 'set') return { name, key, value: '', rest: text.slice(start) };
  const after = start + Number(length) + 2;
  if (text.length < after) return null;
  return { name, key, value: text.slice(start, after - 2), rest: text.slice(after) };
}
