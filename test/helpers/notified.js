/*
 * A service manager: it notes what servers tell it (NOTIFY_SOCKET), on a real datagram socket.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, temporaryFolder } from './server.js';
import { until } from './until.js';

const MANAGER = fileURLToPath(new URL('../fixtures/notified.py', import.meta.url));

/** @typedef {{ pid: number, lines: string[] }} Datagram */

/** @param {import('node:test').TestContext} t @param {string} [path] as in NOTIFY_SOCKET */
export async function startManager(t, path = join(temporaryFolder(t), 'notify')) {
  const { output } = run(t, 'python3', [MANAGER, path]);
  await until(() => output.stdout.startsWith('"listening"\n'), () => `it listens: ${output.stderr}`); // biome-ignore format: one line
  /** @returns {Datagram[]} */
  const datagrams = () =>
    output.stdout
      .split('\n')
      .slice(1, -1)
      .map((line) => JSON.parse(line));
  return { path, datagrams, lines: () => datagrams().flatMap(({ lines }) => lines) };
}
