/*
 * moto's server, which imitates EC2: a real HTTP server with its own state, in a Python virtual environment that is kept
 * between runs.
 */
import { spawn } from 'node:child_process';
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { run } from './server.js';
import { until } from './until.js';

const VERSION = '5.2.5';
const INSTALL_MS = 120_000;
const START_MS = 60_000;
const user = process.getuid?.() ?? 0;
const FOLDER = join(tmpdir(), `holdfast-moto-${VERSION}-${user}`);

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

/** Installs it elsewhere first, so that a half-made environment is never used. @returns {Promise<string>} why it failed, or '' */
async function install() {
  if (existsSync(FOLDER)) return statSync(FOLDER).uid === user ? '' : `${FOLDER} belongs to another user`;
  const part = `${FOLDER}.${process.pid}`;
  const signal = AbortSignal.timeout(INSTALL_MS);
  const pip = [
    '-m',
    'pip',
    'install',
    '--quiet',
    '--disable-pip-version-check',
    `moto[ec2,server]==${VERSION}`,
  ];
  try {
    const problem =
      (await attempt('python3', ['-m', 'venv', part], signal)) ||
      (await attempt(join(part, 'bin', 'python'), pip, signal));
    if (!problem && !existsSync(FOLDER)) renameSync(part, FOLDER);
    return problem;
  } finally {
    rmSync(part, { recursive: true, force: true });
  }
}

/**
 * @param {import('node:test').TestContext} t the server ends after the test
 * @returns {Promise<{ endpoint: string, problem: string }>} problem: why it isn't available
 */
export async function startMoto(t) {
  const problem = await install();
  if (problem) return { endpoint: '', problem: `can't install moto: ${problem}` };
  const python = join(FOLDER, 'bin', 'python');
  const { output, child } = run(t, python, ['-m', 'moto.server', '--host', '127.0.0.1', '--port', '0']);
  const endpoint = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`moto ended: ${output.stderr}`);
      return /Running on (http:\/\/127\.0\.0\.1:\d+)/.exec(output.stderr + output.stdout)?.[1];
    },
    () => `moto listens: ${output.stderr}`,
    START_MS,
  );
  await until(
    () =>
      fetch(endpoint).then(
        () => true,
        () => false,
      ),
    'moto answers',
    START_MS,
  );
  return { endpoint, problem: '' };
}
