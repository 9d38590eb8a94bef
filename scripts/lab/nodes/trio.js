/*
 * Several servers that are nodes of one hub on NATS. One of them can be killed. To what observes a server, all that live are one: its CSV
 * is that of the first.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { HoldfastError } from '../../../lib/errors.js';
import { hasEnded } from '../clean.js';
import { cpuUs } from '../processes.js';
import { startServer } from '../server.js';
import { startNats } from './nats.js';

const POLL_MS = 5;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('../server.js').LabServer} LabServer */
/** @typedef {Pick<LabServer, 'port' | 'csvPath' | 'check' | 'pids' | 'cpuUs' | 'ticks' | 'nextRow' | 'showTo' | 'stop'>} Observed */

/** @implements {Observed} */
export class Nodes {
  /** @param {Lab} lab @param {LabServer[]} all @param {import('./nats.js').Nats[]} nats */
  constructor(lab, all, nats) {
    this.lab = lab;
    /** Those that live. */
    this.all = all;
    this.nats = nats;
    /** CPU of the one that was killed. */
    this.goneUs = 0;
    this.port = all[0].port;
    this.csvPath = all[0].csvPath;
  }

  /** @param {string} hosts that clients dial @returns {string} the parameter `others` of a drone that dials the first one */
  others(hosts) {
    const [, ...others] = this.all;
    return others.map(({ port }) => `${hosts}:${port}`).join(',');
  }

  /** @returns {string[]} where to publish */
  urls() {
    return this.all.map(({ port }) => `http://127.0.0.1:${port}`);
  }

  /** Kills all processes of the last one at once. @returns {Promise<{ port: number, tookMs: number }>} when the kernel has closed everything it had */
  async kill() {
    const node = this.all.pop();
    const group = node?.child.pid;
    if (!node || !group) throw new HoldfastError('SERVER', 'there is no node to kill');
    const { port, child } = node;
    this.goneUs += node.cpuUs();
    const pids = node.pids();
    const begunMs = performance.now();
    process.kill(-group, 'SIGKILL');
    while (!hasEnded(child) || pids.some(isAlive)) await this.lab.sleep(POLL_MS);
    return { port, tookMs: performance.now() - begunMs };
  }

  /** @throws {HoldfastError} SERVER */
  check() {
    for (const node of this.all) node.check();
  }

  pids() {
    return this.all.flatMap((node) => node.pids());
  }

  cpuUs() {
    return this.goneUs + this.all.reduce((sum, node) => sum + node.cpuUs(), 0);
  }

  natsUs() {
    return cpuUs(this.nats.flatMap((server) => server.pids()));
  }

  async ticks() {
    const all = await Promise.all(this.all.map((node) => node.ticks()));
    return new Map(all.flatMap((ticks) => [...ticks]));
  }

  nextRow() {
    return this.all[0].nextRow();
  }

  /** @param {import('../session.js').View} view */
  showTo(view) {
    return this.all[0].showTo(view);
  }

  async stop() {
    await Promise.all([...this.all, ...this.nats].map((one) => one.stop()));
  }
}

/**
 * @param {Lab} lab @param {import('../server.js').How} how the first one has its name @param {number} count of nodes
 * @returns {Promise<Nodes>} on one server of NATS
 */
export async function startNodes(lab, how, count) {
  const nats = await startNats(lab, `nats-${how.name}`, 1);
  const onNats = ['--nats', nats[0].url, '--nats-replicas', '1'];
  const nodes = [];
  for (let i = 0; i < count; i++) {
    const name = i === 0 ? how.name : `${how.name}-${i + 1}`;
    nodes.push(await startServer(lab, { ...how, name, args: [...how.args, ...onNats] }));
  }
  return new Nodes(lab, nodes, nats);
}

/** @param {number} pid @returns {boolean} whether one of its threads may still have descriptors */
function isAlive(pid) {
  try {
    const [, state] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ');
    return !state.startsWith('Z') || readdirSync(`/proc/${pid}/task`).length > 1;
  } catch {
    return false;
  }
}
