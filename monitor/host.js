/*
 * CPU, memory and sockets of the whole machine, from /proc. The parsers are pure; `readHost` reads the files.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { parseMeminfo } from '../lib/meminfo.js';

/** The page size's key in the auxiliary vector (getauxval(3), AT_PAGESZ). */
const AT_PAGESZ = 6n;

/**
 * @typedef {object} Host
 * @property {CpuTimes} cpu since the machine started
 * @property {import('../lib/meminfo.js').Meminfo} memory
 * @property {Sockets} sockets
 */

/**
 * In clock ticks of the kernel, summed over all cores.
 * @typedef {{ cores: number, user: number, sys: number, idle: number, total: number }} CpuTimes
 *
 * `tcp` counts the TCP sockets of all namespaces, IPv4 and IPv6, like the slab does (`inuse` counts only IPv4 in
 * this namespace).
 * @typedef {{ tcp: number, bufferBytes: number }} Sockets
 */

/**
 * /proc/stat: nice counts as user, interrupts count as sys, iowait counts as idle (proc(5)).
 * @param {string} text @returns {CpuTimes}
 */
export function parseStat(text) {
  const [, ...fields] = lineOf(text, 'cpu ').split(/\s+/);
  const [user, nice, system, idle, iowait, irq, softirq, steal = 0] = fields.map(Number);
  const times = { user: user + nice, sys: system + irq + softirq, idle: idle + iowait };
  const total = times.user + times.sys + times.idle + steal;
  return { cores: text.match(/^cpu\d+ /gm)?.length ?? 1, ...times, total };
}

/**
 * /proc/net/sockstat: `mem` is in pages.
 * @param {string} text @param {number} pageBytes @returns {Sockets}
 */
export function parseSockstat(text, pageBytes) {
  const tcp = lineOf(text, 'TCP:');
  const udp = lineOf(text, 'UDP:');
  const pages = numberAfter(tcp, 'mem') + numberAfter(udp, 'mem');
  return { tcp: numberAfter(tcp, 'alloc'), bufferBytes: pages * pageBytes };
}

/** /proc/self/auxv: pairs of 64-bit words. @param {Buffer} bytes @returns {number} the page size */
export function parsePageSize(bytes) {
  for (let at = 0; at + 16 <= bytes.length; at += 16) {
    if (bytes.readBigUInt64LE(at) === AT_PAGESZ) return Number(bytes.readBigUInt64LE(at + 8));
  }
  return 4096;
}

/** @param {string} text @param {string} start @returns {string} '' if there is none */
function lineOf(text, start) {
  return text.split('\n').find((line) => line.startsWith(start)) ?? '';
}

/** @param {string} line @param {string} word @returns {number} */
function numberAfter(line, word) {
  const words = line.split(/\s+/);
  const at = words.indexOf(word);
  return at === -1 ? 0 : Number(words[at + 1]);
}

let pageBytes = 0;

/** @returns {Promise<Host | null>} null if there is no /proc */
export async function readHost() {
  try {
    pageBytes ||= parsePageSize(readFileSync('/proc/self/auxv'));
    const paths = ['/proc/stat', '/proc/meminfo', '/proc/net/sockstat'];
    const [stat, meminfo, sockstat] = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
    return {
      cpu: parseStat(stat),
      memory: parseMeminfo(meminfo),
      sockets: parseSockstat(sockstat, pageBytes),
    };
  } catch {
    return null;
  }
}
