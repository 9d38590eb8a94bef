/*
 * A drone as a child process.
 */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { wordsOf } from '../texts.js';

const DRONE = fileURLToPath(new URL('../drone.js', import.meta.url));

/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/**
 * @param {object} how
 * @param {import('../texts.js').Texts} how.params
 * @param {number} how.port of its control; 0 for a free one
 * @param {string} how.folder where it registers
 * @param {number} how.log file descriptor for its stderr
 * @returns {ChildProcess}
 */
export function spawnDrone({ params, port, folder, log }) {
  const args = [DRONE, '--quiet', '--listen-port', String(port), '--register', folder, ...wordsOf(params)];
  return spawn(process.execPath, args, {
    // Its own process group: Ctrl-C goes to the command only, which asks its drones for their figures before it stops them.
    detached: true,
    cwd: '/',
    stdio: ['ignore', 'ignore', log, 'ipc'],
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
