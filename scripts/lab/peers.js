/*
 * The technologies that are compared with ours: where each comes from, and how it is started.
 */
import { existsSync, mkdirSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { freePort } from '../../lib/port.js';
import { hasEnded } from './clean.js';
import { cacheFolder, findCommand, installPackage, runTool } from './install.js';
import { nchanModule, nginxConfig } from './peers/nchan.js';
import { buildUWebSockets, uWebSocketsProgram } from './peers/uwebsockets.js';
import { familyOf } from './processes.js';
import { environment } from './server.js';

const PEERS = fileURLToPath(new URL('peers/', import.meta.url));
const BETTER_SSE = '0.16.1';
const BUN = '1.4.5';
const START_MS = 20_000;
const POLL_MS = 50;

/** @typedef {import('./lab.js').Lab} Lab */

/**
 * @typedef {object} Peer
 * @property {string} name
 * @property {string} text
 * @property {Record<string, string>} params for the drones
 * @property {(lab: Lab) => Promise<string>} prepare returns why it has to be skipped, or ''
 * @property {boolean} [hasTls] whether it takes a certificate
 * @property {(port: number, intervalMs: number, folder: string, files: string[]) => string[]} command interval 0 for no pings; `files`:
 *   certificate and key for TLS, or none
 *
 * @typedef {{ port: number, pids: () => number[], check: () => void, stop: () => Promise<void> }} Subject
 */

/** @type {Peer[]} */
export const PEER_LIST = [
  {
    name: 'node-http',
    text: 'plain node:http in a few lines, one process',
    params: { accept: 'text' },
    hasTls: true,
    prepare: async () => '',
    command: (port, intervalMs, _folder, files) => [
      process.execPath,
      join(PEERS, 'node-http.js'),
      String(port),
      String(intervalMs),
      ...files,
    ],
  },
  {
    name: 'better-sse',
    text: `better-sse ${BETTER_SSE} on node:http, one process`,
    params: { accept: 'events' },
    prepare: async (lab) => (await installPackage(lab, 'better-sse', BETTER_SSE)).problem,
    command: (port, intervalMs) => [
      process.execPath,
      join(PEERS, 'better-sse.js'),
      String(port),
      String(intervalMs),
      pathToFileURL(betterSse()).href,
    ],
  },
  {
    name: 'bun',
    text: `Bun.serve with a ReadableStream per client, one process; the installed Bun, or ${BUN}`,
    params: { accept: 'text' },
    hasTls: true,
    prepare: prepareBun,
    command: (port, intervalMs, _folder, files) => [
      bun(),
      join(PEERS, 'bun.js'),
      String(port),
      String(intervalMs),
      ...files,
    ],
  },
  {
    name: 'go',
    text: "Go's net/http, a goroutine per client, one process on all cores",
    params: { accept: 'text' },
    hasTls: true,
    prepare: buildGo,
    command: (port, intervalMs, _folder, files) => [goProgram(), String(port), String(intervalMs), ...files],
  },
  {
    name: 'nchan',
    text: 'nginx with nchan as an EventSource server, one worker; its ping interval is in whole seconds',
    params: { accept: 'events' },
    hasTls: true,
    prepare: async () =>
      nchanModule() ? '' : 'nginx with nchan is not installed (Debian: nginx libnginx-mod-nchan)',
    command: (port, intervalMs, folder, files) => [
      findCommand('nginx'),
      '-p',
      folder,
      '-c',
      nginxConfig(port, intervalMs, folder, files),
    ],
  },
  {
    name: 'uwebsockets',
    text: 'uWebSockets through its C interface (uwebsockets.c), one process; the library is the one in the PyPI package socketify',
    params: { accept: 'text' },
    prepare: buildUWebSockets,
    command: (port, intervalMs) => [uWebSocketsProgram(), String(port), String(intervalMs)],
  },
];

/** @returns {string} the entry of the package */
function betterSse() {
  const root = join(cacheFolder(), `better-sse-${BETTER_SSE}`, 'node_modules', 'better-sse');
  const entry = ['dist/index.mjs', 'build/index.mjs', 'dist/index.js', 'build/index.js'].find((path) =>
    existsSync(join(root, path)),
  );
  return join(root, entry ?? 'index.js');
}

/** @param {Lab} lab @returns {Promise<string>} why there is no Bun; '' if there is */
export async function prepareBun(lab) {
  return findCommand('bun') ? '' : (await installPackage(lab, 'bun', BUN)).problem;
}

/** @returns {string} its path; it exists after prepareBun */
export function bun() {
  const own = join(cacheFolder(), `bun-${BUN}`, 'node_modules', 'bun', 'bin');
  return findCommand('bun') || join(own, existsSync(join(own, 'bun')) ? 'bun' : 'bun.exe');
}

function goProgram() {
  return join(cacheFolder(), 'go-http');
}

/** @param {Lab} lab */
async function buildGo(lab) {
  const go = findCommand('go');
  if (!go) return 'go is not installed (Debian: golang-go, or https://go.dev/dl)';
  return runTool(lab, go, ['build', '-o', goProgram(), join(PEERS, 'main.go')], PEERS);
}

/**
 * @param {Lab} lab @param {Peer} peer @param {number} intervalMs @param {string[]} [files] certificate and key for TLS
 * @returns {Promise<Subject>} once it accepts connections
 */
export async function startPeer(lab, peer, intervalMs, files = []) {
  const port = await freePort(0, '127.0.0.1');
  const folder = join(cacheFolder(), 'run');
  mkdirSync(folder, { recursive: true });
  const [command, ...args] = peer.command(port, intervalMs, folder, files);
  const child = lab.clean.spawn(command, args, { cwd: folder, env: environment() });
  let lastWords = '';
  child.stdout?.resume();
  child.stderr?.on('data', (data) => {
    lastWords = (lastWords + data).slice(-500);
  });
  const check = () => {
    if (hasEnded(child))
      throw new HoldfastError(
        'PEER',
        `${peer.name} ended: ${lastWords.trim().split('\n').at(-1) || child.exitCode}`,
      );
  };
  const endMs = Date.now() + START_MS;
  while (!(await acceptsConnections(port))) {
    check();
    if (Date.now() > endMs)
      throw new HoldfastError('PEER', `${peer.name} did not start within ${START_MS / 1000} s: ${lastWords}`);
    await lab.sleep(POLL_MS);
  }
  return { port, check, pids: () => familyOf(child.pid ?? 0), stop: () => lab.clean.end(child) };
}

/** @param {number} port @returns {Promise<boolean>} */
function acceptsConnections(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
