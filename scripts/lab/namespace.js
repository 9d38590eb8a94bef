/*
 * A network of its own for a run of very many streams. The kernel finds the socket of a packet by a hash table, which
 * is as large as the machine was given at its start: with two million sockets each packet goes through a list of eight
 * and more. A network namespace can have a table of the size that is needed, and settings that end with it.
 */
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { onSignals } from '../../lib/signals.js';
import { hasEnded } from './clean.js';
import { findCommand } from './install.js';

const ENTRIES = '/proc/sys/net/ipv4/tcp_child_ehash_entries';
const REMEMBERED = '/proc/sys/net/ipv4/tcp_max_tw_buckets';
const POLL_MS = 10;
const MARK = 'HOLDFAST_OWN_NETWORK';
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP']);
/** Both ends of a stream, and the half of the table free. */
const ENTRIES_A_STREAM = 4;
const MOST_ENTRIES = 16_777_216;

/**
 * Where a server listens, and the addresses by which its clients dial it.
 * @typedef {{ host: string, hosts: string }} Network
 */

/** @type {Network} */
export const NETWORK = { host: '127.0.0.1', hosts: '127.0.0.1' };
/**
 * The kernel keeps a list of the local addresses and ports of clients, in a table whose size is given, too. Each can be
 * used once for each address of the server: the more there are, the shorter are its lists.
 * @type {Network}
 */
const OWN_NETWORK = { host: '0.0.0.0', hosts: '127.0.0.1-127.0.0.16' };

/** @returns {Network} that many streams are best had in; all addresses only where nobody else can reach them */
export function networkOfMany() {
  return hasOwnNetwork() ? OWN_NETWORK : NETWORK;
}

/** @returns {boolean} whether this process is in one that was made for it */
export function hasOwnNetwork() {
  return process.env[MARK] === 'yes';
}

/** @returns {string} why there can be none; '' where there can */
export function ownNetworkProblem() {
  if (process.getuid?.() !== 0) return 'only root can make one';
  const missing = ['unshare', 'ip', 'sh'].find((name) => !findCommand(name));
  if (missing) return `${missing} is not here (packages util-linux and iproute2)`;
  if (!existsSync(ENTRIES)) return 'the kernel is older than 6.1';
  if (spawnSync('unshare', ['--net', 'ip', 'link', 'set', 'lo', 'up']).status !== 0)
    return 'unshare is refused';
  try {
    writeFileSync(ENTRIES, readFileSync(ENTRIES));
    return '';
  } catch {
    return 'its settings are read-only here';
  }
}

/**
 * Runs this program once more, in a network of its own, and ends as it does.
 * @param {number} streams
 * @returns {Promise<number>} its status
 */
export async function runInOwnNetwork(streams) {
  const before = readFileSync(ENTRIES, 'utf8');
  const entries = Math.min(2 ** Math.ceil(Math.log2(streams * ENTRIES_A_STREAM)), MOST_ENTRIES);
  const [script, ...args] = process.argv.slice(1);
  // With its table grows how many closed connections it remembers, for a minute each: that stays as it is.
  const remembered = `echo ${readFileSync(REMEMBERED, 'utf8').trim()} > ${REMEMBERED}`;
  const command = `ip link set lo up && ${remembered} && exec "$@"`;
  const words = ['--net', 'sh', '-c', command, 'sh', process.execPath, ...process.execArgv, script, ...args];
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let child;
  // Ctrl-C reaches it by the terminal; whoever signals this process alone means both.
  const byTerminal = process.stdin.isTTY;
  onSignals(SIGNALS, (signal) => (signal === 'SIGINT' && byTerminal) || child?.kill(signal));
  try {
    writeFileSync(ENTRIES, String(entries));
    child = spawn('unshare', words, { stdio: 'inherit', env: { ...process.env, [MARK]: 'yes' } });
    const status = statusOf(child);
    while (!hasEnded(child) && networkOf('self') === networkOf(String(child.pid))) await after(POLL_MS);
    return status;
  } finally {
    writeFileSync(ENTRIES, before); // the table was made with the network
  }
}

/** @param {import('node:child_process').ChildProcess} child @returns {Promise<number>} to exit with as it does */
function statusOf(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  });
}

/** @param {string} pid @returns {string} '' where it has gone */
function networkOf(pid) {
  try {
    return readlinkSync(`/proc/${pid}/ns/net`);
  } catch {
    return '';
  }
}
