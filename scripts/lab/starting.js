/*
 * A server of somebody else's, as a child process on a port of ours.
 */
import { HoldfastError } from '../../lib/errors.js';
import { hasEnded } from './clean.js';
import { familyOf } from './processes.js';
import { environment } from './server.js';

const START_MS = 20_000;
const POLL_MS = 20;
/** How much of its output is kept. */
const KEPT = 500;

/** @typedef {{ pids: () => number[], stop: () => Promise<void> }} Program `pids`: its process, and all that it has started */
/** @typedef {{ said: string, pids: () => number[] }} Starting `said`: the end of its standard output */

/**
 * @param {import('./lab.js').Lab} lab
 * @param {{ name: string, words: string[], env?: NodeJS.ProcessEnv, isReady: (starting: Starting) => boolean }} how
 * @returns {Promise<Program>} once it is ready
 * @throws {HoldfastError} PEER with its last words
 */
export async function startProgram(lab, { name, words, env = {}, isReady }) {
  const [program, ...args] = words;
  const child = lab.clean.spawn(program, args, { env: { ...environment(), ...env } });
  let [said, lastWords] = ['', ''];
  child.stdout?.on('data', (data) => {
    said = (said + data).slice(-KEPT);
  });
  child.stderr?.on('data', (data) => {
    lastWords = (lastWords + data).slice(-KEPT);
  });
  const pids = () => familyOf(child.pid ?? 0);
  const endMs = Date.now() + START_MS;
  while (!isReady({ said, pids })) {
    if (hasEnded(child))
      throw new HoldfastError('PEER', `${name} ended: ${lastWords.trim() || child.exitCode}`);
    if (Date.now() > endMs)
      throw new HoldfastError(
        'PEER',
        `${name} did not start within ${START_MS / 1000} s: ${lastWords.trim() || 'it says nothing'}`,
      );
    await lab.sleep(POLL_MS);
  }
  return { pids, stop: () => lab.clean.end(child) };
}
