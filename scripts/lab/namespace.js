/*
 * A separate network for a run with very many streams. The kernel finds the socket of a packet in a hash table whose size
 * is fixed when the machine starts: with two million sockets, each packet searches a list of eight or more. A network
 * namespace can have a table of the right size, and its settings disappear with it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { onSignals } from '../../lib/signals.js';
import { hasEnded } from './clean.js';
import { findCommand } from './install.js';

const ENTRIES = '/proc/sys/net/ipv4/tcp_child_ehash_entries';
const REMEMBERED_CLOSED = '/proc/sys/net/ipv4/tcp_max_tw_buckets';
const POLL_MS = 10;
const MARK = 'HOLDFAST_OWN_NETWORK';
/** A limit of the whole machine that can't be read from within a network namespace. */
const TCP_MEMORY = '/proc/sys/net/ipv4/tcp_mem';
const TCP_MEMORY_OF_MACHINE = 'HOLDFAST_TCP_MEMORY';
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
/** Two ends per stream, in a table that stays half empty. */
const ENTRIES_PER_STREAM = 4;
const MOST_ENTRIES = 16_777_216;

/**
 * Where a server listens, and the addresses that its clients dial.
 * @typedef {{ host: string, hosts: string }} Network
 */

/** @type {Network} */
export const NETWORK = { host: '127.0.0.1', hosts: '127.0.0.1' };
/**
 * The kernel also keeps the clients' local addresses and ports in a table of fixed size. Each can be used once per address
 * of the server, so more addresses mean shorter lists.
 * @type {Network}
 */
const OWN_NETWORK = { host: '0.0.0.0', hosts: '127.0.0.1-127.0.0.16' };

/** @returns {Network} the best one for many streams: listening on all addresses only where nobody else can reach them */
export function networkOfMany() {
  return hasOwnNetwork() ? OWN_NETWORK : NETWORK;
}

/** @returns {boolean} whether this process runs in its own network */
export function hasOwnNetwork() {
  return process.env[MARK] === 'yes';
}

/** @returns {number} pages of buffers that all TCP sockets of the machine may have together; Infinity if that is not known */
export function limitOfTcpPages() {
  const text = existsSync(TCP_MEMORY) ? readFileSync(TCP_MEMORY, 'utf8') : process.env[TCP_MEMORY_OF_MACHINE];
  return Number(text?.trim().split(/\s+/)[2] ?? Number.POSITIVE_INFINITY);
}

/** @returns {string} why there can't be one; '' if there can */
export function ownNetworkProblem() {
  if (process.getuid?.() !== 0) return 'only root can create a network namespace';
  const missing = ['unshare', 'ip', 'sh'].find((name) => !findCommand(name));
  if (missing) return `${missing} is not installed (packages util-linux and iproute2)`;
  if (!existsSync(ENTRIES)) return 'it needs Linux 6.1';
  if (spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status !== 0)
    return 'unshare is not allowed here';
  try {
    writeFileSync(ENTRIES, readFileSync(ENTRIES));
    return '';
  } catch {
    return 'network settings are read-only here';
  }
}

/**
 * Runs this program again in its own network, and waits for it.
 * @param {number} streams
 * @returns {Promise<number>} its status
 */
export async function runInOwnNetwork(streams) {
  const before = readFileSync(ENTRIES, 'utf8');
  const entries = Math.min(2 ** Math.ceil(Math.log2(streams * ENTRIES_PER_STREAM)), MOST_ENTRIES);
  const [script, ...args] = process.argv.slice(1);
  // A larger table also remembers more closed connections, for a minute each: keep that number as it is.
  const keepRemembered = `echo ${readFileSync(REMEMBERED_CLOSED, 'utf8').trim()} > ${REMEMBERED_CLOSED}`;
  const command = `ip link set lo up && ${keepRemembered} && exec "$@"`;
  const words = ['--net', 'sh', '-c', command, 'sh', process.execPath, ...process.execArgv, script, ...args];
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  // The terminal sends Ctrl-C to the child, too; a signal to this process alone is passed on.
  const isInTerminal = process.stdin.isTTY;
  onSignals(SIGNALS, (signal) => (signal === 'SIGINT' && isInTerminal) || child?.kill(signal));
  try {
    writeFileSync(ENTRIES, String(entries));
    const own = { [MARK]: 'yes', [TCP_MEMORY_OF_MACHINE]: readFileSync(TCP_MEMORY, 'utf8').trim() };
    child = spawn('unshare', words, { stdio: 'inherit', env: { ...process.env, ...own } });
    const status = statusOf(child);
    while (!hasEnded(child) && networkOf('self') === networkOf(String(child.pid))) await after(POLL_MS);
    return status;
  } finally {
    writeFileSync(ENTRIES, before); // the namespace has its table by now
  }
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number>} the status to exit with */
function statusOf(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

/** @param {string} pid @returns {string} '' if it has ended */
function networkOf(pid) {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return '';
  }
}
