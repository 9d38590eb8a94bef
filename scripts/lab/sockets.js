/*
 * The sockets of processes, from /proc.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** States in /proc/net/tcp. */
const LISTENS = '0A';

/** @param {number[]} pids @returns {number} how many sockets they have open, without stdin, stdout and stderr, which may be some */
export function socketsOf(pids) {
  return filesOf(pids).filter(({ fd, link }) => fd > 2 && link.startsWith('socket:')).length;
}

/** @param {number[]} pids @param {number} port @returns {boolean} whether one of them listens there, with IPv4; not just anybody */
export function isListening(pids, port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .map((line) => line.trim().split(/\s+/));
  const listeners = lines.filter(([, local, , state]) => state === LISTENS && local.endsWith(suffix));
  const links = new Set(listeners.map((fields) => `socket:[${fields[9]}]`));
  return links.size > 0 && filesOf(pids).some(({ link }) => links.has(link));
}

/** @param {number[]} pids @returns {{ fd: number, link: string }[]} what they have open */
function filesOf(pids) {
  return pids.flatMap((pid) => descriptorsOf(pid).map((fd) => ({ fd: Number(fd), link: linkOf(pid, fd) })));
}

/** @param {number} pid @returns {string[]} */
function descriptorsOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/fd`);
  } catch {
    return []; // it has ended
  }
}

/** @param {number} pid @param {string} fd */
function linkOf(pid, fd) {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return ''; // it was closed in the meantime
  }
}
