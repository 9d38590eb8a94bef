/*
 * Which process uses a store. Only one may, because it keeps the last sequence in memory.
 */
import { readFileSync, readlinkSync } from 'node:fs';
import { codeOf, HoldfastError } from '../../lib/errors.js';

/**
 * @typedef {object} Owner
 * @property {number} pid
 * @property {string} started when, by the clock of the system: another process may get the same pid later
 * @property {string} boot which start of the machine
 * @property {string} space of process ids: those of a container mean nothing in another one
 * @property {number} token random; the owner checks in each transaction that it still is
 * @property {boolean} syncs whether each of its transactions is on the disk
 */

/**
 * Makes this process the owner, within a transaction.
 * @param {import('lmdb').Database<any, string>} meta
 * @param {{ token: number, syncs: boolean, folder: string }} claim
 * @returns {{ isLossy: boolean }} whether the last owner may have lost publications that clients have seen
 * @throws {HoldfastError} STORE if another process has it
 */
export function takeOver(meta, { token, syncs, folder }) {
  /** @type {Owner | undefined} if it did not close the store */
  const before = meta.get('owner');
  const isOther = before !== undefined && before.token !== token;
  if (isOther && isRunning(before)) {
    const line = `--store ${folder} is in use by process ${before.pid}: stop that server, or use another folder`;
    throw new HoldfastError('STORE', line);
  }
  const { pid } = process;
  meta.put('owner', { pid, started: startOf(pid), boot: bootId(), space: pidSpace(), token, syncs });
  return { isLossy: isOther && !before.syncs && (before.boot === '' || before.boot !== bootId()) };
}

/** @param {Owner} owner @returns {boolean} whether it certainly still runs. If it can't be known, the token decides later */
function isRunning({ pid, started, boot, space }) {
  if (boot !== bootId() || space !== pidSpace()) return false;
  return started === '' ? canSignal(pid) : startOf(pid) === started;
}

/** @param {number} pid @returns {string} '' if there is none, or no /proc */
function startOf(pid) {
  const stat = readOr(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? ''; // its name may have spaces and brackets
}

function bootId() {
  return readOr(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

function pidSpace() {
  return readOr(() => readlinkSync('/proc/self/ns/pid'));
}

/** @param {() => string} read @returns {string} '' if it can't be read */
function readOr(read) {
  try {
    return read();
  } catch {
    return '';
  }
}

/** @param {number} pid @returns {boolean} */
function canSignal(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return codeOf(error) === 'EPERM';
  }
}
