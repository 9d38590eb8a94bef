/*
 * npm run prebuilt:try -- COMMAND…: tries the prebuilt core of another machine. COMMAND runs a Node of that machine:
 *
 *     qemu-aarch64 -L SYSROOT NODE                        arm64, with the libraries of an arm64 system in SYSROOT
 *     ld-musl-x86_64.so.1 --library-path FOLDERS NODE     musl
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exitWith, HoldfastError, messageOf } from '../../lib/errors.js';
import { pack, unpack } from '../release/tarball.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PROGRAM = fileURLToPath(new URL('trial.js', import.meta.url));
const DEADLINE_MS = 120_000;

/** @typedef {import('./trial.js').Trial} Trial */

function main() {
  const [command, ...args] = process.argv.slice(2);
  if (!command || command.startsWith('--'))
    throw new HoldfastError(
      'BAD_OPTION',
      'expected a command that runs Node: npm run prebuilt:try -- COMMAND…',
    );
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-try-'));
  try {
    report(run(command, [...args, PROGRAM, unpackedIn(folder)]));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder @returns {string} the package in it, which has no core that was built here */
function unpackedIn(folder) {
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  const target = join(folder, 'package');
  unpack(join(folder, pack(ROOT, folder).filename), target);
  return target;
}

/** @param {string} command @param {string[]} args @returns {Trial} @throws {HoldfastError} TRIAL_FAILED */
function run(command, args) {
  const { error, status, signal, stdout, stderr } = spawnSync(command, args, {
    encoding: 'utf8',
    timeout: DEADLINE_MS,
  });
  if (error) throw new HoldfastError('TRIAL_FAILED', messageOf(error));
  if (status !== 0)
    throw new HoldfastError('TRIAL_FAILED', `it ended with ${signal ?? status}: ${stderr.trim()}`);
  return JSON.parse(stdout);
}

/** @param {Trial} trial @throws {HoldfastError} TRIAL_FAILED */
function report({ origin, node, isNative, inJs, received, end, restarts }) {
  if (!isNative || inJs > 0) throw new HoldfastError('TRIAL_FAILED', 'the stream is held in JS');
  const isRight = received === 'data: hello\n\n' && end === 'failed' && restarts === 1;
  if (!isRight)
    throw new HoldfastError('TRIAL_FAILED', `got ${JSON.stringify({ received, end, restarts })} (${origin})`);
  const what = 'holds a stream, delivers a message, survives a panic';
  process.stdout.write(`prebuilt: ${origin}: ${what} (Node ${node})\n`);
}

try {
  main();
} catch (error) {
  exitWith('prebuilt', error);
}
