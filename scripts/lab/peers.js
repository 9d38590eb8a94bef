/*
 * The technologies that are set beside ours: how each is come by, and how it is started.
 */
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { freePort } from '../../lib/port.js';
import { hasEnded } from './clean.js';
import { cacheFolder, findCommand, installPackage, runTool } from './install.js';
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
 * @property {(lab: Lab) => Promise<string>} prepare says why it has to be skipped, or ''
 * @property {(port: number, intervalMs: number, folder: string) => string[]} command interval 0 for no pings
 *
 * @typedef {{ port: number, pids: () => number[], check: () => void, stop: () => Promise<void> }} Subject
 */

/** @type {Peer[]} */
export const PEER_LIST = [
  {
    name: 'node-http',
    text: 'plain node:http in few lines, one process',
    params: { accept: 'text' },
    prepare: async () => '',
    command: (port, intervalMs) => [
      process.execPath,
      join(PEERS, 'node-http.js'),
      String(port),
      String(intervalMs),
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
    text: `Bun.serve with a ReadableStream a client, one process; Bun as it is here, or ${BUN}`,
    params: { accept: 'text' },
    prepare: async (lab) => (findCommand('bun') ? '' : (await installPackage(lab, 'bun', BUN)).problem),
    command: (port, intervalMs) => [bun(), join(PEERS, 'bun.js'), String(port), String(intervalMs)],
  },
  {
    name: 'go',
    text: "Go's net/http, a goroutine a client, one process on all cores",
    params: { accept: 'text' },
    prepare: buildGo,
    command: (port, intervalMs) => [goProgram(), String(port), String(intervalMs)],
  },
  {
    name: 'nchan',
    text: 'nginx with nchan, as an EventSource, one worker; pings are in whole seconds',
    params: { accept: 'events' },
    prepare: async () =>
      nchanModule() ? '' : 'nginx with nchan is not here: apt-get install nginx libnginx-mod-nchan brings it',
    command: (port, intervalMs, folder) => [
      findCommand('nginx'),
      '-p',
      folder,
      '-c',
      nginxConfig(port, intervalMs, folder),
    ],
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

function bun() {
  const own = join(cacheFolder(), `bun-${BUN}`, 'node_modules', 'bun', 'bin');
  return findCommand('bun') || join(own, existsSync(join(own, 'bun')) ? 'bun' : 'bun.exe');
}

function goProgram() {
  return join(cacheFolder(), 'go-http');
}

/** @param {Lab} lab */
async function buildGo(lab) {
  const go = findCommand('go');
  if (!go) return 'go is not here: apt-get install golang-go, or https://go.dev/dl, brings it';
  return runTool(lab, go, ['build', '-o', goProgram(), join(PEERS, 'main.go')], PEERS);
}

/** @returns {string} '' where it is not installed */
function nchanModule() {
  const nginx = findCommand('nginx');
  if (!nginx) return '';
  const folders = [
    join(dirname(nginx), '..', 'lib', 'nginx', 'modules'),
    '/usr/lib/nginx/modules',
    '/usr/share/nginx/modules',
  ];
  return folders.map((folder) => join(folder, 'ngx_nchan_module.so')).find((path) => existsSync(path)) ?? '';
}

/** @param {number} port @param {number} intervalMs @param {string} folder @returns {string} its path */
function nginxConfig(port, intervalMs, folder) {
  const path = join(folder, 'nginx.conf');
  mkdirSync(join(folder, 'logs'), { recursive: true });
  const user = process.getuid?.() === 0 ? 'user root;\n' : '';
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `  ${name}_temp_path ${folder}/tmp;`,
  );
  writeFileSync(
    path,
    `load_module ${nchanModule()};
${user}daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log stderr crit;
events { worker_connections 65536; }
http {
  access_log off;
${temporary.join('\n')}
  nchan_shared_memory_size 512M;
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location = / {
      nchan_subscriber eventsource;
      nchan_channel_id all;
      nchan_eventsource_ping_interval ${Math.round(intervalMs / 1000)};
    }
    location / { return 404; }
  }
}
`,
  );
  return path;
}

/**
 * @param {Lab} lab @param {Peer} peer @param {number} intervalMs
 * @returns {Promise<Subject>} when it takes connections
 */
export async function startPeer(lab, peer, intervalMs) {
  const port = await freePort(0, '127.0.0.1');
  const folder = join(cacheFolder(), 'run');
  mkdirSync(folder, { recursive: true });
  const [command, ...args] = peer.command(port, intervalMs, folder);
  const child = lab.clean.spawn(command, args, { cwd: folder, env: environment() });
  let said = '';
  child.stdout?.resume();
  child.stderr?.on('data', (data) => {
    said = (said + data).slice(-500);
  });
  const check = () => {
    if (hasEnded(child))
      throw new HoldfastError(
        'PEER',
        `${peer.name} ended: ${said.trim().split('\n').at(-1) || child.exitCode}`,
      );
  };
  const endMs = Date.now() + START_MS;
  while (!(await takesConnections(port))) {
    check();
    if (Date.now() > endMs) throw new HoldfastError('PEER', `${peer.name} does not listen: ${said}`);
    await lab.sleep(POLL_MS);
  }
  return { port, check, pids: () => familyOf(child.pid ?? 0), stop: () => lab.clean.end(child) };
}

/** @param {number} port @returns {Promise<boolean>} */
function takesConnections(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true));
    socket.once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
