/*
 * CPU and memory of processes, from /proc.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';

/** The index of `cutime` in /proc/self/stat, behind the name; `cstime` is the next one. Both are in ticks of the kernel. */
const CUTIME = 13;
const TICK_US = 10_000;

/** @param {number} pid @returns {number[]} it and all its descendants, at this moment */
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
    return []; // it has ended
  }
}

/**
 * The run time of all their threads. That is utime + stime, but in ns, while those come in steps of 10 ms. Threads that
 * have ended are not included.
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

/** @returns {number} µs of all children of this process that have ended, and of theirs: in steps of 10 ms */
export function endedCpuUs() {
  const fields = read('/proc/self/stat').split(') ').at(-1)?.split(' ') ?? [];
  return (Number(fields[CUTIME]) + Number(fields[CUTIME + 1])) * TICK_US;
}

/** What is added to a priority: then a thread, or a group of processes, has about a third of its usual share. */
const LOWER = 5;

/**
 * What they do takes place on other machines in reality, and must not take much CPU from the server for a while. Only root can undo it,
 * so nobody else does it.
 * @param {number[]} pids @returns {() => void} gives them the share that they had
 */
export function lowerPriority(pids) {
  if (process.getuid?.() !== 0) return () => {};
  const threads = pids.flatMap((pid) => readdirSync(`/proc/${pid}/task`).map(Number));
  const before = new Map(threads.map((thread) => [thread, getPriority(thread)]));
  const { PRIORITY_LOW, PRIORITY_NORMAL } = constants.priority;
  for (const [thread, priority] of before) setPriority(thread, Math.min(PRIORITY_LOW, priority + LOWER));
  for (const pid of pids) setGroupPriority(pid, PRIORITY_NORMAL + LOWER);
  return () => {
    for (const [thread, priority] of before) setPriority(thread, priority);
    for (const pid of pids) setGroupPriority(pid, PRIORITY_NORMAL);
  };
}

/**
 * Processes with a session of their own are a group for the scheduler (sched(7), autogroup): groups have equal shares, whatever the
 * priorities in them.
 * @param {number} pid @param {number} priority
 */
function setGroupPriority(pid, priority) {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, String(priority));
  } catch {
    // This kernel has no such groups.
  }
}

/** @param {number[]} pids @returns {number} bytes of PSS: shared pages count in part */
export function pssBytes(pids) {
  const kilobytes = pids.map((pid) => /^Pss:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0);
  return kilobytes.reduce((/** @type {number} */ sum, kb) => sum + Number(kb) * 1024, 0);
}

/**
 * Memory that belongs to them alone, without code and files. Unlike PSS it does not depend on who else runs the same program.
 * @param {number[]} pids @returns {number} bytes
 */
export function anonymousBytes(pids) {
  const kilobytes = pids.map(
    (pid) => /^Pss_Anon:\s+(\d+)/m.exec(read(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0,
  );
  return kilobytes.reduce((/** @type {number} */ sum, kb) => sum + Number(kb) * 1024, 0);
}

/** @param {string} path @returns {string} '' if the process has ended */
function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
