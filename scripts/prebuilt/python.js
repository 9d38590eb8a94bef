/*
 * Packages of PyPI, each in a virtual environment that is kept between runs.
 */
import { spawn } from 'node:child_process';
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const INSTALL_MS = 300_000;
const user = process.getuid?.() ?? 0;

/**
 * @param {string} name of the folder, with the version
 * @param {string} requirement as for pip
 * @returns {Promise<{ folder: string, problem: string }>} where its programs are; `problem`: why it is not available, or ''
 */
export async function pythonPackage(name, requirement) {
  const folder = join(tmpdir(), `holdfast-${name}-${user}`);
  const problem = await install(folder, requirement);
  return { folder: join(folder, 'bin'), problem: problem && `can't install ${name}: ${problem}` };
}

/** Installs it elsewhere first, so that a half-made environment is never used. @param {string} folder @param {string} requirement @returns {Promise<string>} why it failed, or '' */
async function install(folder, requirement) {
  if (existsSync(folder)) return statSync(folder).uid === user ? '' : `${folder} belongs to another user`;
  const part = `${folder}.${process.pid}`;
  const signal = AbortSignal.timeout(INSTALL_MS);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', requirement];
  try {
    const problem =
      (await attempt('python3', ['-m', 'venv', part], signal)) ||
      (await attempt(join(part, 'bin', 'python'), pip, signal));
    if (!problem) publish(part, folder);
    return problem;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/** Another process may have been faster: then its folder is as good. @param {string} part @param {string} folder */
function publish(part, folder) {
  try {
    renameSync(part, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  }
}

/**
 * @param {string} command @param {string[]} args
 * @param {AbortSignal} signal
 * @returns {Promise<string>} '' if it succeeded, else why not
 */
function attempt(command, args, signal) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      signal,
      killSignal: 'SIGKILL',
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    child.stderr.on('data', (data) => {
      said += data;
    });
    child.on('error', (error) => {
      said = error.name === 'AbortError' ? `not within ${INSTALL_MS / 1000} s` : error.message;
    });
    child.on('close', (code) =>
      resolve(code === 0 ? '' : said.trim().split('\n').at(-1) || `status ${code}`),
    );
  });
}
