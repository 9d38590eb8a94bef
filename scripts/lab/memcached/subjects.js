/*
 * The servers that are compared, and how each is started.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NOTHING, STEPS } from '../../../examples/nodecached/steps.js';
import { coreCount } from '../cores.js';
import { findCommand } from '../install.js';

const NODECACHED = fileURLToPath(new URL('../../../examples/nodecached/', import.meta.url));
const HOST = '127.0.0.1';

/**
 * @typedef {object} Subject
 * @property {string} name of its run
 * @property {string} title in tables and charts
 * @property {string} text
 * @property {'memcached' | 'redis'} protocol
 * @property {boolean} isPinned to one core, with the client on another; otherwise both use all cores
 * @property {number} threads that answer requests
 * @property {boolean} isWhole all cells are measured, not just those with 50 connections
 * @property {boolean} answersRight false for the server that does nothing
 * @property {boolean} hasMemory its memory is measured
 * @property {(port: number) => string[]} command
 * @property {string} missing why it can't run here, or ''
 */

const BASE = {
  protocol: /** @type {const} */ ('memcached'),
  isPinned: true,
  threads: 1,
  isWhole: true,
  answersRight: true,
  hasMemory: false,
  missing: '',
};
const CORES = { ...BASE, isPinned: false };

/** The runs that are compared with each other. */
export const NAMES = {
  nothing: 'nothing',
  nodecached: 'nodecached',
  memcached: 'memcached',
  redis: 'redis',
  nodecachedCores: 'cores-nodecached',
  memcachedFree: 'cores-memcached-1',
  memcachedCores: 'cores-memcached',
};

/** @returns {Subject[]} */
export function subjects() {
  return [nothing(), ...steps(), ...others(), ...onAllCores()];
}

/** @param {string} run @returns {Subject} */
export function subjectOf(run) {
  const found = subjects().find(({ name }) => name === run);
  if (!found) throw new Error(`no server is called '${run}'`);
  return found;
}

/** @returns {Subject} */
function nothing() {
  const { text, file } = NOTHING;
  const command = script(file);
  return { ...BASE, name: NAMES.nothing, title: 'do nothing', text, answersRight: false, command };
}

/** From the obvious server to the final one. @returns {Subject[]} */
export function steps() {
  return STEPS.map(({ name, file, text }, i) => {
    const isEnd = i === 0 || i === STEPS.length - 1;
    const isLast = i === STEPS.length - 1;
    return {
      ...BASE,
      name: isLast ? NAMES.nodecached : `step-${i + 1}`,
      title: isLast ? 'nodecached' : `${i + 1}. ${name}`,
      text: `step ${i + 1}, ${name}: ${text}`,
      isWhole: isEnd,
      hasMemory: isEnd,
      command: script(file),
    };
  });
}

/** @returns {Subject[]} */
function others() {
  return [
    {
      ...BASE,
      name: NAMES.memcached,
      title: 'memcached',
      text: 'memcached -t 1',
      hasMemory: true,
      command: memcached(1),
      missing: missing('memcached'),
    },
    {
      ...BASE,
      name: NAMES.redis,
      title: 'redis',
      text: 'redis-server without persistence, loaded in its own protocol (RESP)',
      protocol: 'redis',
      hasMemory: true,
      command: (port) => [
        ...[findCommand('redis-server'), '--port', String(port), '--bind', HOST],
        ...['--save', '', '--appendonly', 'no'],
      ],
      missing: missing('redis-server'),
    },
  ];
}

/** @returns {Subject[]} */
function onAllCores() {
  const threads = Math.max(2, coreCount());
  return [
    {
      ...CORES,
      name: NAMES.nodecachedCores,
      title: `nodecached -t ${threads}`,
      text: `nodecached -t ${threads}`,
      threads,
      hasMemory: true,
      command: script('server.js', ['-t', String(threads)]),
    },
    {
      ...CORES,
      name: NAMES.memcachedFree,
      title: 'memcached -t 1',
      text: 'memcached -t 1, not pinned to a core',
      command: memcached(1),
      missing: missing('memcached'),
    },
    {
      ...CORES,
      name: NAMES.memcachedCores,
      title: `memcached -t ${threads}`,
      text: `memcached -t ${threads}`,
      threads,
      command: memcached(threads),
      missing: missing('memcached'),
    },
  ];
}

/** @param {string} file of nodecached, relative to its folder @param {string[]} [args] @returns {(port: number) => string[]} */
function script(file, args = []) {
  return (port) => [process.execPath, join(NODECACHED, file), '-p', String(port), '-l', HOST, ...args];
}

/** @param {number} threads @returns {(port: number) => string[]} */
function memcached(threads) {
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
  return (port) => {
    const where = ['-p', String(port), '-l', HOST];
    return [findCommand('memcached'), '-t', String(threads), ...where, ...user];
  };
}

/** @param {string} program also the name of its Debian package @returns {string} */
function missing(program) {
  return findCommand(program) ? '' : `${program} is not installed (Debian: ${program})`;
}
