/*
 * What /proc says of processes: the CPU that they have used, and the memory that is theirs.
 */
import { readdirSync, readFileSync } from 'node:fs';

/** @param {number} pid @returns {number[]} it and all below it, as they are now */
export function familyOf(pid) {
  const family = [pid];
  for (const parent of family) family.push(...childrenOf(parent));
  return family;
}

/** @param {number} pid @returns {number[]} */
function childrenOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
    );
  } catch {
    return []; // it has gone
  }
}

/**
 * The run time of all their threads, which is their utime and stime, but in ns where those come in steps of 10 ms.
 * Threads that have ended are not in it.
 * @param {number[]} pids @returns {number} µs
 */
export function cpuUs(pids) {
  let ns = 0;
  for (const pid of pids) {
    for (const thread of readdirSync(`/proc/${pid}/task`)) {
      ns += Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]);
    }
  }
  return ns / 1000;
}

/** @param {number[]} pids @returns {number} bytes, pages that are shared by their share (PSS) */
export function pssBytes(pids) {
  const kilobytes = pids.map((pid) => /^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
  return kilobytes.reduce((/** @type {number} */ sum, kb) => sum + Number(kb) * 1024, 0);
}

/** @param {string} path @returns {string} '' where it went meanwhile */
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
