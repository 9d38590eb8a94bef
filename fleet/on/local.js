/*
 * Drones on this machine, as child processes. Two kinds: those of `start` outlive the command, which finds them again
 * by the files they register with; those of `run` are its own, and end when it does, however it ends (they see the
 * channel to it close).
 */
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { codeOf, HoldfastError } from '../../lib/errors.js';
import { freePort } from '../../lib/port.js';
import { askStats, tell } from '../ask.js';
import { isAlive, openFolder, openRunFolder, openWords, readFolder } from './registry.js';

const DRONE = fileURLToPath(new URL('../drone.js', import.meta.url));
const HOST = '127.0.0.1';
/** Where the first drone of a machine is looked for. */
const FIRST_PORT = 8889;
const POLL_MS = 20;
/** A start that takes longer has failed: the target may be asked for its consent, for seconds. */
const START_MS = 60_000;
/** What has not ended by then is killed. */
const END_MS = 5000;

/** @typedef {import('../ask.js').Member & { pid: number }} LocalMember */
/** @typedef {import('node:child_process').ChildProcess} ChildProcess */

/**
 * @param {object} options
 * @param {string} options.folder where drones are registered
 * @param {boolean} [options.isOwn] whether they end with the command
 */
export function local({ folder, isOwn = false }) {
  return new Local(openFolder(folder), isOwn);
}

class Local {
  /** @param {string} folder @param {boolean} isOwn */
  constructor(folder, isOwn) {
    this.isOwn = isOwn;
    this.folder = isOwn ? openRunFolder(folder) : folder;
    /** Children that end with this process: those of a run, and those that are not registered yet. @type {Set<ChildProcess>} */
    this.children = new Set();
    /** Files of drones that have answered by their pids. @type {Set<string>} */
    this.known = new Set();
    this.isClosed = false;
    this.onExit = () => this.killAll();
    process.on('exit', this.onExit);
  }

  /**
   * @param {number} count @param {Record<string, string>} params
   * @returns {Promise<LocalMember[]>}
   * @throws {HoldfastError} what the first said that could not; then none of these is left
   */
  async start(count, params) {
    const isFirst = !this.isOwn && (await isFree(FIRST_PORT));
    const begun = Array.from({ length: count }, (_, i) =>
      this.begin(params, isFirst && i === 0 ? FIRST_PORT : 0),
    );
    const outcomes = await Promise.allSettled(begun);
    const failed = outcomes.find(({ status }) => status === 'rejected');
    if (failed) {
      await Promise.all(
        outcomes.map((outcome) => outcome.status === 'fulfilled' && this.end(outcome.value).catch(() => {})),
      );
      throw /** @type {PromiseRejectedResult} */ (failed).reason;
    }
    return outcomes.map((outcome) => /** @type {PromiseFulfilledResult<LocalMember>} */ (outcome).value);
  }

  /**
   * @param {Record<string, string>} params @param {number} port
   * @returns {Promise<LocalMember>}
   */
  async begin(params, port) {
    const words = openWords(this.folder);
    try {
      const child = this.spawn(params, port, words.fd);
      const member = await this.untilRegistered(child);
      if (member) return member;
      const line = words.lastLine();
      // Another took the port between the look and the start.
      if (port !== 0 && /in use/.test(line) && !this.isClosed) return await this.begin(params, 0);
      throw new HoldfastError('NO_DRONE', line.replace(/^drone: /, '') || `a drone ended (${endOf(child)})`);
    } finally {
      words.close();
    }
  }

  /** @param {Record<string, string>} params @param {number} port @param {number} words */
  spawn(params, port, words) {
    const flags = Object.entries(params).flatMap(([name, value]) => [`--${name}`, value]);
    const args = [DRONE, '--quiet', '--listen-port', String(port), '--register', this.folder, ...flags];
    const child = spawn(process.execPath, args, {
      // A group of its own: Ctrl-C is for the command, which asks its drones for their figures before it ends them.
      detached: true,
      cwd: '/',
      stdio: ['ignore', 'ignore', words, ...(this.isOwn ? [/** @type {const} */ ('ipc')] : [])],
    });
    child.on('error', () => {}); // untilRegistered sees it
    this.children.add(child);
    if (this.isClosed) child.kill('SIGKILL');
    return child;
  }

  /** @param {ChildProcess} child @returns {Promise<LocalMember | null>} null where it ended before */
  async untilRegistered(child) {
    const endMs = Date.now() + START_MS;
    while (Date.now() < endMs && child.pid && !hasEnded(child)) {
      const found = readFolder(this.folder).find(({ pid }) => pid === child.pid);
      if (found) {
        this.known.add(found.file);
        if (!this.isOwn) child.unref();
        return memberOf(found);
      }
      await after(POLL_MS);
    }
    child.kill('SIGKILL');
    this.children.delete(child);
    return null;
  }

  /** @returns {Promise<LocalMember[]>} those that run, late ones with them */
  async list() {
    const entries = readFolder(this.folder);
    const areDrones = await Promise.all(entries.map((entry) => this.isDrone(entry)));
    for (const [i, { file }] of entries.entries()) if (!areDrones[i]) rmSync(file, { force: true });
    return entries.filter((_, i) => areDrones[i]).map(memberOf);
  }

  /**
   * The pid of one that was killed may be another program's by now, and so may its port.
   * @param {ReturnType<typeof readFolder>[number]} entry
   */
  async isDrone(entry) {
    if (!isAlive(entry.pid)) return false;
    if (this.known.has(entry.file)) return true;
    try {
      const { drone } = await askStats(memberOf(entry));
      if (drone?.pid !== entry.pid) return false;
      this.known.add(entry.file);
      return true;
    } catch (error) {
      return codeOf(error) === 'LATE';
    }
  }

  /** @param {import('../ask.js').Member} member of a run @returns {boolean} whether its process has gone */
  hasEnded({ name }) {
    return ![...this.children].some((child) => String(child.pid) === name && !hasEnded(child));
  }

  /**
   * @param {number | 'all'} count the last that were started go first
   * @returns {Promise<number>}
   */
  async stop(count) {
    const members = await this.list();
    const chosen = count === 'all' ? members : members.slice(Math.max(0, members.length - count));
    await Promise.all(chosen.map((member) => this.end(member)));
    return chosen.length;
  }

  /** @param {LocalMember} member */
  async end(member) {
    await tell(member, 'stop').catch(() => kill(member.pid, 'SIGTERM'));
    if (!(await isGone(member.pid))) {
      kill(member.pid, 'SIGKILL');
      await isGone(member.pid);
    }
    rmSync(join(this.folder, `${member.pid}.json`), { force: true });
  }

  /** From here on those that were started stand for themselves. */
  release() {
    this.children.clear();
  }

  /** Ends what must not outlive the command. */
  async close() {
    this.isClosed = true;
    for (const child of this.children) child.kill('SIGTERM');
    const endMs = Date.now() + END_MS;
    while ([...this.children].some((child) => !hasEnded(child)) && Date.now() < endMs) await after(POLL_MS);
    this.killAll();
    process.off('exit', this.onExit);
  }

  killAll() {
    for (const child of this.children) {
      if (child.pid && !hasEnded(child)) child.kill('SIGKILL');
      if (child.pid) rmSync(join(this.folder, `${child.pid}.json`), { force: true });
    }
    this.children.clear();
    if (this.isOwn) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** @param {{ pid: number, url: string, token: string }} entry @returns {LocalMember} */
function memberOf({ pid, url, token }) {
  return { name: String(pid), url, token, place: 'local', pid };
}

/** @param {ChildProcess} child */
function hasEnded({ exitCode, signalCode }) {
  return exitCode !== null || signalCode !== null;
}

/** @param {ChildProcess} child */
function endOf({ exitCode, signalCode }) {
  return signalCode ?? `status ${exitCode ?? 'unknown'}`;
}

/** @param {number} pid @returns {Promise<boolean>} whether it has ended by itself in time */
async function isGone(pid) {
  const endMs = Date.now() + END_MS;
  while (isAlive(pid) && Date.now() < endMs) await after(POLL_MS);
  return !isAlive(pid);
}

/** @param {number} pid @param {'SIGTERM' | 'SIGKILL'} signal */
function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {} // it has ended
}

/** @param {number} port */
async function isFree(port) {
  return freePort(port, HOST).then(
    () => true,
    () => false,
  );
}
