/*
 * What the benchmark runs and reads: servers, the bare client, and what /proc says of processes.
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { createInterface } from 'node:readline';
import { HoldfastError } from '../../lib/errors.js';
import { BARE, bareProgram } from '../../scripts/lab/bare.js';
import { startServer } from '../helpers/server.js';

/** An interval that no run lives to see. */
const NEVER_MS = 3_600_000;
/** Openings on their way at once. */
const CONCURRENCY = 256;
/** All streams listen to it. */
export const CHANNEL = 'all';

/** @typedef {'floor' | 'http' | 'hold'} Kind */

/**
 * A server under test.
 * @typedef {object} Subject
 * @property {number} port
 * @property {number[]} pids of all its processes
 * @property {(message: string) => Promise<void>} publish to all streams
 * @property {() => Promise<Record<string, any>>} totals of its frame; none for the floor
 * @property {() => Promise<void>} stop
 */

/** Builds the floor and the client. @throws {HoldfastError} NO_CARGO */
export function buildBare() {
  const { error, status } = spawnSync('cargo', ['build', '--release', '--locked', '--quiet'], {
    cwd: BARE,
    stdio: 'inherit',
  });
  if (error || status !== 0) {
    throw new HoldfastError(
      'NO_CARGO',
      `the bench needs cargo to build scripts/lab/bare: ${error?.message ?? status}`,
    );
  }
}

/** A program of ours that takes orders on its input and answers each with a line. */
class Program {
  /** @param {'floor' | 'client' | 'hiccup'} name @param {string[]} args @param {string[]} by what starts it, if not we */
  constructor(name, args, by = []) {
    const [command, ...words] = [...by, bareProgram(name), ...args];
    this.child = spawn(command, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.lines = createInterface(this.child.stdout)[Symbol.asyncIterator]();
    this.exit = once(this.child, 'exit');
  }

  /** @returns {Promise<string[]>} the words of its next line */
  async answer() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error(`${this.child.spawnfile} ended`);
    return value.split(' ');
  }

  /** @param {string} order */
  ask(order) {
    this.child.stdin.write(`${order}\n`);
    return this.answer();
  }

  async stop() {
    this.child.stdin.end();
    await this.exit;
  }
}

/** Tells how long the machine itself stood still: a thread on each core that nothing but the host can delay. */
export class Hiccups {
  constructor() {
    this.programs = cpus().map((_, cpu) => {
      return new Program('hiccup', [], ['chrt', '--fifo', '99', 'taskset', '--cpu-list', String(cpu)]);
    });
  }

  async ready() {
    for (const program of this.programs) await program.answer();
  }

  /** @returns {Promise<number>} ms, the longest since the last time, of all cores */
  async take() {
    const answers = await Promise.all(this.programs.map((program) => program.ask('read')));
    return Math.max(...answers.map(([, us]) => Number(us))) / 1000;
  }

  async stop() {
    for (const program of this.programs) await program.stop();
  }
}

/** Opens streams and reads them. */
export class Client extends Program {
  /** @param {number} port */
  constructor(port) {
    super('client', [String(port), `/?channel=${CHANNEL}`, String(CONCURRENCY)]);
  }

  /** @param {number} streams @returns {Promise<number>} ms that it took */
  async open(streams) {
    return Number((await this.ask(`open ${streams}`))[2]);
  }

  async close() {
    await this.ask('close');
  }

  /** @returns {Promise<number>} bytes that came after the welcomes */
  async read() {
    return Number((await this.ask('read'))[1]);
  }
}

/**
 * @param {import('node:test').TestContext} t
 * @param {Kind} kind
 * @param {{ pingIntervalMs?: number, streams?: number, gcIntervalMs?: number }} [how] gcIntervalMs 0 leaves garbage to V8
 * @returns {Promise<Subject>}
 */
export function startSubject(t, kind, { pingIntervalMs = NEVER_MS, streams = 0, gcIntervalMs = 0 } = {}) {
  if (kind === 'floor') return startFloor(pingIntervalMs);
  const gc = gcIntervalMs ? ['--gc-interval', String(gcIntervalMs)] : [];
  const args = ['--ping-interval', String(pingIntervalMs), '--streams', String(streams), ...gc];
  return startHoldfast(t, kind, args, gcIntervalMs ? ['--expose-gc'] : []);
}

/** @param {number} pingIntervalMs @returns {Promise<Subject>} */
async function startFloor(pingIntervalMs) {
  const floor = new Program('floor', pingIntervalMs === NEVER_MS ? [] : [String(pingIntervalMs)]);
  const port = Number((await floor.answer())[1]);
  return {
    port,
    pids: [floor.child.pid ?? 0],
    publish: async (message) => void (await floor.ask(`publish ${message.length}`)),
    totals: async () => ({}),
    stop: () => floor.stop(),
  };
}

/**
 * @param {import('node:test').TestContext} t @param {'http' | 'hold'} transport @param {string[]} args
 * @param {string[]} nodeArgs @returns {Promise<Subject>}
 */
async function startHoldfast(t, transport, args, nodeArgs) {
  const usual = [
    '--transport',
    transport,
    '--host',
    '0.0.0.0',
    '--workers',
    '2',
    '--refresh',
    '1000',
    '--drain',
    '0',
  ];
  const server = await startServer(t, [...usual, ...args], { nodeArgs });
  const { workers } = await server.frame();
  return {
    port: server.port,
    pids: [server.pid, ...workers.map(({ pid }) => pid)],
    publish: async (body) => {
      const url = `http://127.0.0.1:${server.adminPort}/publish?channel=${CHANNEL}`;
      const { status } = await fetch(url, { method: 'POST', body });
      if (status !== 202) throw new Error(`publish: ${status}`);
    },
    totals: async () => (await server.frame()).totals,
    stop: async () => void (await server.stop()),
  };
}

/**
 * CPU that processes have used: the run time of all their threads, which is their utime and stime, but in ns
 * where those come in steps of 10 ms.
 * @param {number[]} pids
 * @returns {number} µs
 */
export function cpuUs(pids) {
  let ns = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]);
    }
  }
  return ns / 1000;
}

/** @param {number[]} pids @returns {number} memory of the processes, shared pages by share (PSS), in bytes */
export function pssBytes(pids) {
  const kilobytes = pids.map(
    (pid) => /^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1],
  );
  return kilobytes.reduce((sum, kb) => sum + Number(kb) * 1024, 0);
}
