/*
 * Starts a server of the comparison.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { freePort } from '../../../lib/port.js';
import { hasEnded } from '../clean.js';
import { coreCount, pinned } from '../cores.js';
import { familyOf } from '../processes.js';
import { environment } from '../server.js';

export const HOST = '127.0.0.1';
const START_MS = 20_000;
const POLL_MS = 20;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {'one' | 'cores'} Mode one instance pinned to a core beside the client; one per core, which the client shares */
/** @typedef {{ port: number, pids: () => number[], stop: () => Promise<void> }} Server */

/** @param {Lab} lab @param {import('./subjects.js').Subject} subject @param {Mode} mode @returns {Promise<Server>} once all its processes listen */
export async function startSubject(lab, { name, command }, mode) {
  const port = await freePort(0, HOST);
  const words = command(port, mode === 'one' ? 1 : coreCount());
  const [program, ...args] = mode === 'one' ? [...pinned('server'), ...words] : words;
  const child = lab.clean.spawn(program, args, { env: { ...environment(), NODE_ENV: 'production' } });
  let [said, lastWords] = ['', ''];
  child.stdout?.on('data', (data) => {
    said = (said + data).slice(-500);
  });
  child.stderr?.on('data', (data) => {
    lastWords = (lastWords + data).slice(-500);
  });
  const endMs = Date.now() + START_MS;
  while (!/^listening$/m.test(said)) {
    if (hasEnded(child))
      throw new HoldfastError('PEER', `${name} ended: ${lastWords.trim() || child.exitCode}`);
    if (Date.now() > endMs)
      throw new HoldfastError('PEER', `${name} did not start within ${START_MS / 1000} s: ${lastWords}`);
    await lab.sleep(POLL_MS);
  }
  return { port, pids: () => familyOf(child.pid ?? 0), stop: () => lab.clean.end(child) };
}
