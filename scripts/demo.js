/*
 * npm run demo: the server in this terminal, and one drone that opens 5,000 streams. Options after `npm run demo --` go to
 * the server.
 */
import { spawn } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readConfig } from '../lib/config.js';
import { exitWith, HoldfastError } from '../lib/errors.js';

const STREAMS = 5000;
const RAMP = 250;
const READY_POLL_MS = 100;
/** The server comes to rest first, so that its own memory and CPU are not charged to the streams. */
const REST_MS = 3000;

/** @param {string} path @returns {string} */
const pathOf = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

async function main() {
  const args = process.argv.slice(2);
  const { config } = readConfig(args, process.env);
  if (typeof config.adminPort !== 'number' || config.adminPort === 0 || config.port === 0) {
    throw new HoldfastError('BAD_OPTION', 'the demo needs a --port and an --admin-port between 1 and 65535');
  }
  process.stdout.write(
    `Holdfast demo: a drone opens ${STREAMS} streams, ${RAMP} per second. Press q or Ctrl-C to quit.\n`,
  );
  const server = spawn(process.execPath, [...process.execArgv, pathOf('server.js'), ...args], {
    stdio: 'inherit',
  });
  // The terminal sends Ctrl-C to the server, too; a signal to this process alone is passed on.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => server.kill('SIGTERM'));
  const ended = new Promise((resolve) => server.once('exit', (code) => resolve(code ?? 1)));
  const ready = await Promise.race([untilReady(config.adminPort), ended.then(() => false)]);
  if (!ready) process.exit(await ended);
  await Promise.race([after(REST_MS), ended]);
  const droneArgs = [
    '--port',
    String(config.port),
    '--listen-port',
    '0',
    '--n',
    String(STREAMS),
    '--ramp',
    String(RAMP),
    '--quiet',
  ];
  const drone = spawn(process.execPath, [pathOf('fleet/drone.js'), ...droneArgs], {
    stdio: 'ignore',
    detached: true,
  });
  process.on('exit', () => drone.kill());
  process.exit(await ended);
}

/** @param {number} adminPort @returns {Promise<boolean>} true once the server accepts streams */
async function untilReady(adminPort) {
  for (;;) {
    const answer = await fetch(`http://127.0.0.1:${adminPort}/readyz`).catch(() => null);
    if (answer?.ok) return true;
    await after(READY_POLL_MS);
  }
}

main().catch((error) => exitWith('demo', error));
