/*
 * Servers of NATS with JetStream, for nodes of a hub. The program is nats-server, or what NATS_SERVER names.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { HoldfastError } from '../../../lib/errors.js';
import { freePort } from '../../../lib/port.js';
import { hasEnded } from '../clean.js';
import { familyOf } from '../processes.js';

const HOST = '127.0.0.1';
const PROGRAM = process.env.NATS_SERVER ?? 'nats-server';
const READY_MS = 20_000;
const POLL_MS = 10;

/** @typedef {import('../lab.js').Lab} Lab */

/** @returns {string} the version of NATS; '' if it is not there */
export function natsVersion() {
  const { stdout } = spawnSync(PROGRAM, ['--version'], { encoding: 'utf8' });
  return /v([\d.]+)/.exec(stdout ?? '')?.[1] ?? '';
}

export class Nats {
  /** @param {Lab} lab @param {{ name: string, port: number, folder: string, more: string }} how more: of its configuration */
  constructor(lab, { name, port, folder, more }) {
    this.lab = lab;
    this.url = `nats://${HOST}:${port}`;
    this.config = join(folder, `${name}.conf`);
    /** @type {import('node:child_process').ChildProcess | null} */
    this.child = null;
    const store = `jetstream { store_dir: "${join(folder, name)}" }`;
    writeFileSync(this.config, `server_name: ${name}\nlisten: "${HOST}:${port}"\n${store}\n${more}\n`);
  }

  /** Starts it, again with what it has stored. @throws {HoldfastError} NATS */
  async start() {
    const child = this.lab.clean.spawn(PROGRAM, ['-c', this.config], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.child = child;
    let said = '';
    child.stderr?.on('data', (data) => {
      if (said.length < 100_000) said += data;
    });
    const endMs = Date.now() + READY_MS;
    while (!said.includes('Server is ready')) {
      if (hasEnded(child) || Date.now() > endMs)
        throw new HoldfastError('NATS', `${PROGRAM} does not start: ${said.trim().split('\n').at(-1)}`);
      await this.lab.sleep(POLL_MS);
    }
  }

  pids() {
    return familyOf(this.child?.pid ?? 0);
  }

  /** At once, as in a crash. */
  async kill() {
    this.child?.kill('SIGKILL');
    await this.stop();
  }

  async stop() {
    if (this.child) await this.lab.clean.end(this.child);
  }
}

/**
 * @param {Lab} lab @param {string} name of a folder for them @param {number} count
 * @returns {Promise<Nats[]>} one server, or several that are a cluster
 */
export async function startNats(lab, name, count) {
  const folder = join(lab.folder, name);
  mkdirSync(folder, { recursive: true });
  const ports = await Promise.all(Array.from({ length: 2 * count }, () => freePort(0, HOST)));
  const routes = ports.slice(count).map((port) => `"nats://${HOST}:${port}"`);
  const servers = ports.slice(0, count).map((port, i) => {
    const own = `listen: "${HOST}:${ports[count + i]}"`;
    const more = count > 1 ? `cluster { name: lab, ${own}, routes: [${routes.join(', ')}] }` : '';
    return new Nats(lab, { name: `n${i + 1}`, port, folder, more });
  });
  await Promise.all(servers.map((server) => server.start()));
  return servers;
}
