/*
 * Drones on this machine, as child processes. Those of `run` end with the command, however it ends: their IPC channel
 * to it closes. Those of `start` are released and outlive it; later commands find them by the files they register with.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { untilListening } from '../../lib/listening.js';
import { freePort } from '../../lib/port.js';
import { askStats, tell } from '../ask.js';
import { hasEnded, release, spawnDrone } from './child.js';
import { isAlive, openFolder, openLog, openRunFolder, readEntry, readFolder } from './registry.js';

const HOST = '127.0.0.1';
/** The control port of the first drone, if it is free. */
const FIRST_PORT = 8889;
const POLL_MS = 20;
/** A start that takes longer has failed. It may include asking the target for its consent, which takes seconds. */
const START_MS = 60_000;
/** A drone that has not ended by then is killed. */
const END_MS = 5000;

/** @typedef {import('../ask.js').Member & { pid: number }} LocalMember */
/** @typedef {import('node:child_process').ChildProcess} ChildProcess */
/** @typedef {import('./registry.js').Entry} Entry */

/**
 * @param {object} options
 * @param {string} options.folder where drones register
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
    /** Drones that end with this process. @type {Set<ChildProcess>} */
    this.children = new Set();
    /** Files of drones that have answered with the right pid. @type {Set<string>} */
    this.known = new Set();
    this.isClosed = false;
    this.onExit = () => this.killAll();
    process.on('exit', this.onExit);
  }

  /**
   * @param {number} count @param {import('../texts.js').Texts} params
   * @returns {Promise<LocalMember[]>}
   * @throws {HoldfastError} the error of the first that failed; then all of them are ended
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
   * @param {import('../texts.js').Texts} params @param {number} port
   * @returns {Promise<LocalMember>}
   */
  async begin(params, port) {
    const log = openLog(this.folder);
    try {
      const child = spawnDrone({ params, port, folder: this.folder, log: log.fd });
      this.children.add(child);
      if (this.isClosed) child.kill('SIGKILL');
      try {
        await untilListening(child, START_MS);
        return this.memberIn(this.fileOf(child.pid ?? 0));
      } catch (error) {
        child.kill('SIGKILL');
        this.children.delete(child);
        // Another process may have taken the port since it was found free.
        if (port !== 0 && !this.isClosed && !(await isFree(port))) return await this.begin(params, 0);
        const line = log.lastLine().replace(/^drone: /, '');
        throw new HoldfastError('NO_DRONE', line || `a drone did not start: ${messageOf(error)}`);
      }
    } finally {
      log.close();
    }
  }

  /** @param {string} file of a drone that is listening @returns {LocalMember} */
  memberIn(file) {
    const entry = readEntry(file);
    if (!entry) throw new HoldfastError('NO_DRONE', `can't read ${file}`);
    this.known.add(file);
    return memberOf(entry);
  }

  /** @param {number} pid */
  fileOf(pid) {
    return join(this.folder, `${pid}.json`);
  }

  /** @returns {Promise<LocalMember[]>} those that run, including late ones */
  async list() {
    const entries = readFolder(this.folder);
    const areDrones = await Promise.all(entries.map((entry) => this.isDrone(entry)));
    for (const [i, { file }] of entries.entries()) if (!areDrones[i]) rmSync(file, { force: true });
    return entries.filter((_, i) => areDrones[i]).map(memberOf);
  }

  /** The pid of a drone that was killed may belong to another process by now, and so may its port. @param {Entry} entry */
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

  /** @param {import('../ask.js').Member} member of a run @returns {boolean} whether its process has ended */
  hasEnded({ name }) {
    return ![...this.children].some((child) => String(child.pid) === name && !hasEnded(child));
  }

  /**
   * @param {number | 'all'} count the drones started last end first
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
    if (!(await endsInTime(member.pid))) {
      kill(member.pid, 'SIGKILL');
      await endsInTime(member.pid);
    }
    rmSync(this.fileOf(member.pid), { force: true });
  }

  /** Lets the drones outlive this process. */
  async release() {
    const children = [...this.children];
    this.children.clear();
    await Promise.all(children.map(release));
  }

  /** Ends the drones that must not outlive the command. */
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
      if (!hasEnded(child)) child.kill('SIGKILL');
      if (child.pid) rmSync(this.fileOf(child.pid), { force: true });
    }
    this.children.clear();
    if (this.isOwn) rmSync(this.folder, { recursive: true, force: true });
  }
}

/** @param {Entry} entry @returns {LocalMember} */
function memberOf({ pid, url, token }) {
  return { name: String(pid), url, token, place: 'local', pid };
}

/** @param {number} pid @returns {Promise<boolean>} false if it still runs */
async function endsInTime(pid) {
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
