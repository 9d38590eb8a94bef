/*
 * npm run demo: the server in this terminal, and one drone that opens 5,000 streams. Options after `npm run demo --` go to
 * the server.
 */
import { spawn } from 'node:child_process';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { exitWith } from '../lib/errors.js';
import { untilListening } from '../lib/listening.js';
import { readVersion } from '../lib/version.js';

const STREAMS = 5000;
const RAMP = 250;
const HELP = `Usage: npm run demo -- [options of the server]

Runs the server in this terminal, and a drone that opens ${STREAMS} streams, ${RAMP} per second. node server.js --help lists the options.
`;
/** The server gets time to settle, so that its own memory and CPU are not charged to the streams. */
const REST_MS = 3000;

/** @param {string} path @returns {string} */
const pathOf = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));

async function main() {
  const args = process.argv.slice(2);
  if (args.includes('--help') || args.includes('-h')) return void process.stdout.write(HELP);
  if (args.includes('--version')) return void process.stdout.write(`${readVersion()}\n`);
  process.stdout.write(
    `Holdfast demo: a drone opens ${STREAMS} streams, ${RAMP} per second. Press q or Ctrl-C to quit.\n`,
  );
  const server = startServer(args);
  /** @type {Promise<number>} */
  const ended = new Promise((resolve) => server.once('exit', (code) => resolve(code ?? 1)));
  const listening = await untilListening(server).catch(() => null); // the server has printed the reason
  if (listening) showLink(listening);
  if (listening) await Promise.race([after(REST_MS), ended]);
  if (listening && server.exitCode === null) startDrone(listening.port);
  process.exit(await ended);
}

/** In a terminal, the server has the screen, and its log has the link. @param {import('../lib/listening.js').ServerListening} listening */
function showLink({ dashboard }) {
  if (dashboard && !process.stdout.isTTY) process.stdout.write(`The dashboard is on ${dashboard}\n`);
}

/** @param {string[]} args */
function startServer(args) {
  const server = spawn(process.execPath, [...process.execArgv, pathOf('server.js'), ...args], {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // The terminal sends Ctrl-C to the server, too; a signal to this process alone is passed on.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => server.kill('SIGTERM'));
  return server;
}

/** It ends with this process. @param {number} port of the server */
function startDrone(port) {
  const where = ['--port', String(port), '--listen-port', '0'];
  const size = ['--n', String(STREAMS), '--ramp', String(RAMP)];
  const args = [pathOf('fleet/drone.js'), ...where, ...size, '--quiet'];
  const drone = spawn(process.execPath, args, { stdio: 'ignore', detached: true });
  process.on('exit', () => drone.kill());
}

main().catch((error) => exitWith('demo', error));
