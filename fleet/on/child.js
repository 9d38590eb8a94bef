/*
 * One drone as a child process, from its start to the message that it is listening.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const DRONE = fileURLToPath(new URL('../drone.js', import.meta.url));
/** A start that takes longer has failed. It may include asking the target for its consent, which takes seconds. */
const START_MS = 60_000;

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/**
 * @param {object} how
 * @param {Record<string, string>} how.params
 * @param {number} how.port of its control; 0 for a free one
 * @param {string} how.folder where it registers
 * @param {number} how.log file descriptor for its stderr
 * @returns {ChildProcess}
 */
export function spawnDrone({ params, port, folder, log }) {
  const flags = Object.entries(params).flatMap(([name, value]) => [`--${name}`, value]);
  const args = [DRONE, '--quiet', '--listen-port', String(port), '--register', folder, ...flags];
  return spawn(process.execPath, args, {
    // Its own process group: Ctrl-C goes to the command only, which asks its drones for their figures before it stops them.
    detached: true,
    cwd: '/',
    stdio: ['ignore', 'ignore', log, 'ipc'],
  });
}

/** @param {ChildProcess} child just spawned @returns {Promise<boolean>} false if it ended, or took too long */
export function listening(child) {
  return new Promise((resolve) => {
    const timer = setTimeout(() => settle(false), START_MS);
    const settle = (/** @type {boolean} */ isListening) => {
      clearTimeout(timer);
      resolve(isListening);
    };
    child.on('message', (/** @type {{ type?: string } | null} */ message) => {
      if (message?.type === 'listening') settle(true);
    });
    child.once('exit', () => settle(false));
    child.once('error', () => settle(false));
  });
}

/** Lets a drone outlive this process. @param {ChildProcess} child @returns {Promise<void>} */
export async function release(child) {
  if (!child.connected) return; // it has ended
  await new Promise((resolve) => child.send({ type: 'release' }, resolve));
  if (child.connected) child.disconnect();
  child.unref();
}

/** @param {ChildProcess} child */
export function hasEnded({ pid, exitCode, signalCode }) {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

/** @param {ChildProcess} child that has ended @returns {string} 'status 1', 'SIGKILL' */
export function endOf({ exitCode, signalCode }) {
  return signalCode ?? `status ${exitCode ?? 'unknown'}`;
}
