/*
 * moto's server, which imitates EC2: a real HTTP server with its own state, in a Python virtual environment that is kept
 * between runs.
 */
import { join } from 'node:path';
import { pythonPackage } from './python.js';
import { run } from './server.js';
import { until } from './until.js';

const VERSION = '5.2.5';
const START_MS = 60_000;

/**
 * @param {import('node:test').TestContext} t the server ends after the test
 * @returns {Promise<{ endpoint: string, problem: string }>} problem: why it isn't available
 */
export async function startMoto(t) {
  const { folder, problem } = await pythonPackage(`moto-${VERSION}`, `moto[ec2,server]==${VERSION}`);
  if (problem) return { endpoint: '', problem };
  const python = join(folder, 'python');
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
