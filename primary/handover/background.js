/*
 * `--takeover --background`: the server keeps running, and this command ends when it has taken over, or has failed to. That is what
 * ExecReload= of systemd needs.
 */
import { spawn } from 'node:child_process';
import { untilListening } from '../../lib/listening.js';

/** The new server ends by itself if it is stuck, so this is only a last resort. */
const DEADLINE_MS = 3_600_000;

/** @param {import('../../lib/config.js').Config} config @returns {Promise<never>} it exits with 0, or 1 after the line of the server */
export async function runInBackground({ dashboard }) {
  const { HOLDFAST_BACKGROUND, ...env } = process.env;
  const args = process.argv.slice(1).filter((arg) => arg.split('=')[0] !== '--background');
  // Nobody can press its keys.
  const quiet =
    dashboard === 'tui' || (dashboard === 'auto' && process.stdout.isTTY) ? ['--dashboard', 'off'] : [];
  const child = spawn(process.execPath, [...process.execArgv, ...args, ...quiet], {
    detached: true,
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  try {
    await untilListening(child, DEADLINE_MS);
    process.exit(0);
  } catch {
    process.exit(1); // it has said why
  }
}
