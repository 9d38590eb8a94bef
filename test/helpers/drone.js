/*
 * The real drone as a child process, on a control port that the system chose.
 */
import { untilListening } from '../../lib/listening.js';
import { run } from './server.js';
import { until } from './until.js';

/** @typedef {{ type: 'listening', url: string }} Listening */

/**
 * @param {import('node:test').TestContext} t
 * @param {string[]} args
 * @param {object} [how]
 * @param {string[]} [how.prefix] a command that runs the drone, such as `ip netns exec name`
 * @param {string} [how.script]
 * @param {string} [how.cwd]
 * @param {Record<string, string | undefined>} [how.env]
 */
export function spawnDrone(t, args, { prefix = [], script = 'fleet/drone.js', cwd, env } = {}) {
  const [command, ...words] = [...prefix, process.execPath, script, '--listen-port', '0', ...args];
  return run(t, command, words, {
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
    ...(cwd ? { cwd } : {}),
    ...(env ? { env } : {}),
  });
}

/** @param {ReturnType<typeof spawnDrone>} drone @returns {Promise<string>} the URL of its control port */
export async function urlOf({ child, output }) {
  const listening = await /** @type {Promise<Listening>} */ (untilListening(child)).catch((error) => {
    throw new Error(`${error.message}: ${output.stderr}`);
  });
  return listening.url;
}

/**
 * A drone that is listening, and how to ask it.
 * @param {import('node:test').TestContext} t @param {number} port of the server @param {string[]} args
 */
export async function startDrone(t, port, ...args) {
  const drone = spawnDrone(t, ['--port', String(port), ...args]);
  const url = await urlOf(drone);
  const ask = async (/** @type {string} */ path, method = 'GET') => {
    const response = await fetch(new URL(path, url), { method });
    return { status: response.status, body: /** @type {any} */ (await response.json()) };
  };
  const untilStats = (/** @type {(stats: any) => boolean} */ condition, /** @type {string} */ what) =>
    until(async () => {
      const { body } = await ask('/');
      return condition(body) && body;
    }, what);
  return { ...drone, ask, untilStats };
}
