/*
 * Finds other programs on the machine, or installs them with their own package manager into a cache: a private folder in
 * the system's folder for temporary files.
 */
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { HoldfastError } from '../../lib/errors.js';
import { hasEnded } from './clean.js';

const INSTALL_MS = 300_000;
const POLL_MS = 50;

/** @typedef {import('./lab.js').Lab} Lab */

/** @returns {string} @throws {HoldfastError} BAD_FOLDER if other users could put programs into it */
export function cacheFolder() {
  const { uid } = userInfo();
  const folder = join(tmpdir(), `holdfast-peers-${uid}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const found = lstatSync(folder);
  if (found.isDirectory() && (uid < 0 || found.uid === uid) && (found.mode & 0o022) === 0) return folder;
  throw new HoldfastError('BAD_FOLDER', `other users can write to ${folder}: remove it`);
}

/** @param {string} command @returns {string} its path; '' if it is not installed */
export function findCommand(command) {
  const folders = [...(process.env.PATH ?? '').split(':'), '/usr/sbin', '/usr/local/sbin'].filter(Boolean);
  return folders.map((folder) => join(folder, command)).find((path) => existsSync(path)) ?? '';
}

/**
 * @param {Lab} lab @param {string} name @param {string} version
 * @returns {Promise<{ folder: string, problem: string }>} the folder of the package
 */
export async function installPackage(lab, name, version) {
  const prefix = join(cacheFolder(), `${name}-${version}`);
  const folder = join(prefix, 'node_modules', name);
  if (existsSync(join(prefix, 'installed'))) return { folder, problem: '' };
  // Preferably the npm that belongs to this node.
  const beside = join(dirname(process.execPath), 'npm');
  const npm = existsSync(beside) ? beside : 'npm';
  mkdirSync(prefix, { recursive: true });
  const words = ['install', '--no-save', '--no-audit', '--no-fund', '--prefix', prefix, `${name}@${version}`];
  const problem = await runTool(lab, npm, words, prefix);
  if (!problem) mkdirSync(join(prefix, 'installed'));
  return { folder, problem };
}

/**
 * Runs a program to its end.
 * @param {Lab} lab @param {string} command @param {string[]} args @param {string} cwd
 * @returns {Promise<string>} the error; '' on success
 */
export async function runTool(lab, command, args, cwd) {
  return (await finish(lab, command, args, cwd)).problem;
}

/**
 * Runs one of our programs to its end.
 * @param {Lab} lab @param {string} command @param {string[]} args
 * @returns {Promise<string>} its output
 * @throws {HoldfastError} PROGRAM
 */
export async function readProgram(lab, command, args) {
  const { problem, output } = await finish(lab, command, args, tmpdir());
  if (problem) throw new HoldfastError('PROGRAM', problem);
  return output;
}

/** @param {Lab} lab @param {string} command @param {string[]} args @param {string} cwd */
async function finish(lab, command, args, cwd) {
  const child = lab.clean.spawn(command, args, { cwd });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data) => {
      output = (output + data).slice(-2000);
    });
  }
  const endMs = Date.now() + INSTALL_MS;
  while (!hasEnded(child) && Date.now() < endMs) await lab.sleep(POLL_MS);
  if (!hasEnded(child)) {
    await lab.clean.end(child);
    return { output, problem: `${command} took longer than ${INSTALL_MS / 1000} s` };
  }
  if (child.exitCode === 0) return { output, problem: '' };
  const line = output.split('\n').find((one) => /error|ERR!/i.test(one)) ?? output.trim().split('\n')[0];
  return { output, problem: `${command} ${args[0]} failed: ${line.trim() || 'it could not be started'}` };
}
