/*
 * What wrk prints. Pure.
 */
import { HoldfastError } from '../../../lib/errors.js';

/**
 * @typedef {object} WrkFigures
 * @property {number} requests that were answered, with whatever status
 * @property {number} seconds
 * @property {number} perSecond
 * @property {number} bytes read
 * @property {{ avg: number, max: number, p50: number, p75: number, p90: number, p99: number }} ms latency
 * @property {{ connect: number, read: number, write: number, timeout: number, status: number }} errors `timeout`: answers that
 *   took longer than its timeout. `status`: other than 2xx and 3xx
 */

/** @type {Record<string, number>} */
const MS = { us: 0.001, ms: 1, s: 1000, m: 60_000, h: 3_600_000 };
/** It divides by 1024. */
const SIZES = ['B', 'KB', 'MB', 'GB', 'TB'];
const NUMBER = String.raw`(\d+(?:\.\d+)?)`;

/** @param {string} text with --latency @returns {WrkFigures} @throws {HoldfastError} WRK if it measured nothing */
export function parseWrk(text) {
  const [, avg, max] = find(text, /^ +Latency +(\S+) +\S+ +(\S+) +\S+%$/m);
  const totals = new RegExp(`^ +(\\d+) requests in (\\S+), ${NUMBER}(\\w+) read$`, 'm');
  const [, requests, time, size, unit] = find(text, totals);
  const [, perSecond] = find(text, new RegExp(`^Requests/sec: +${NUMBER}$`, 'm'));
  const percentile = (/** @type {number} */ n) => msOf(find(text, new RegExp(`^ +${n}% +(\\S+) *$`, 'm'))[1]);
  return {
    requests: Number(requests),
    seconds: msOf(time) / 1000,
    perSecond: Number(perSecond),
    bytes: Number(size) * 1024 ** SIZES.indexOf(unit),
    ms: {
      avg: msOf(avg),
      max: msOf(max),
      p50: percentile(50),
      p75: percentile(75),
      p90: percentile(90),
      p99: percentile(99),
    },
    errors: errorsIn(text),
  };
}

/** @param {string} text @returns {WrkFigures['errors']} wrk has a line for them only if there are any */
function errorsIn(text) {
  const socket = /^ +Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)$/m.exec(text);
  const [connect, read, write, timeout] = (socket?.slice(1) ?? [0, 0, 0, 0]).map(Number);
  const status = Number(/^ +Non-2xx or 3xx responses: (\d+)$/m.exec(text)?.[1] ?? 0);
  return { connect, read, write, timeout, status };
}

/** @param {WrkFigures['errors']} errors @returns {string} 'read 6, timeout 2'; '' if there are none */
export function errorsText(errors) {
  return Object.entries(errors)
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

/** @param {string} text such as 592.00us @returns {number} */
function msOf(text) {
  const [, value, unit] = find(text, new RegExp(`^${NUMBER}(us|ms|s|m|h)$`));
  return Number(value) * MS[unit];
}

/** @param {string} text @param {RegExp} pattern */
function find(text, pattern) {
  const found = pattern.exec(text);
  if (found) return found;
  const line = text.trim().split('\n').at(-1);
  throw new HoldfastError('WRK', `wrk printed nothing that matches ${pattern}; its last line: ${line}`);
}
