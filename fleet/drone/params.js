/*
 * The parameters of a drone, which flags, `set` and the fleet command change. One table.
 */
import { isIP } from 'node:net';
import { HoldfastError } from '../../lib/errors.js';
import { choice, either, integer, option, text } from '../../lib/options.js';
import { isLoopback } from './consent.js';

const DAY_MS = 86_400_000;
const MOST_STREAMS = 10_000_000;
const MOST_PORTS = 4096;
const MOST_HOSTS = 256;
/** Above this, the kernel takes long to find a free port of a local address. */
const STREAMS_PER_SOURCE = 8000;
const MOST_SOURCES = 65_536;

/**
 * @typedef {object} Params
 * @property {number} n streams to keep open
 * @property {string} host
 * @property {number[]} port ports, used in turn
 * @property {number} ramp streams to open per second
 * @property {number} concurrency
 * @property {string} path
 * @property {string} channel '' for none
 * @property {'text' | 'events'} accept
 * @property {'auto' | string[]} sources
 * @property {'auto' | number} interval ms
 * @property {number} timeout ms
 * @property {'holdfast' | 'any'} expect
 */

/** '8888', '8888,8890-8893' @type {import('../../lib/options.js').Kind} */
const PORTS = {
  expected: 'ports from 1 to 65535, as in 8888 or 8888-8891,9000',
  word: 'PORTS',
  read: (given) => portsIn(given),
};

/** '127.0.0.2', '10.0.0.5-10.0.0.20,10.0.1.1' @type {import('../../lib/options.js').Kind} */
const SOURCES = {
  expected: 'addresses of this machine, as in 127.0.0.2-127.0.0.60 or 10.0.0.5,10.0.0.6',
  word: 'ADDRESSES',
  read: (given) => sourcesIn(given),
};

/** @type {import('../../lib/options.js').Kind} */
const PATH = {
  expected: 'a path that begins with / and has no spaces',
  word: 'PATH',
  read: (given) => (/^\/[\x21-\x7e]*$/.test(given) ? given : undefined),
};

/** @type {import('../../lib/options.js').Kind} */
const HOST = {
  expected: `a host name, an IP address, several addresses of one server, as in 10.0.0.5,10.0.0.6, or a range of loopback, as in 127.0.0.1-127.0.0.8; at most ${MOST_HOSTS}`,
  word: 'HOST',
  read: (given) => {
    if (/^[\d.]+[-,][\d.,-]+$/.test(given)) return areHosts(given) ? given : undefined;
    return isIP(given) !== 0 || /^[a-z0-9.-]{1,253}$/i.test(given) ? given : undefined;
  },
};

// biome-ignore format: a table reads best with one row per line
export const PARAMS = [
  option('n', 'n', integer(0, MOST_STREAMS), 0, 'streams to keep open'),
  option('host', 'host', HOST, '127.0.0.1', 'server to load: this machine, or one started with --accept-load'),
  option('port', 'port', PORTS, [8888], 'port of the server, or several to use in turn'),
  option('ramp', 'ramp', integer(1, 1_000_000), 1000, 'streams to open per second'),
  option('concurrency', 'concurrency', integer(1, 100_000), 1000, 'most streams being opened at a time; checked ten times per second, so at most ten times as many per second'),
  option('path', 'path', PATH, '/', 'path of the request'),
  option('channel', 'channel', text('NAME', 'the name of a channel'), '', 'channel to listen to; without one, messages are errors'),
  option('accept', 'accept', choice('text', 'events'), 'text', 'format of the streams: text, or Server-Sent Events'),
  option('sources', 'sources', either('auto', SOURCES), 'auto', 'local addresses to dial from; auto: the kernel chooses, or 127.0.0.2 and up for loopback'),
  option('interval', 'interval', either('auto', integer(1, DAY_MS)), 'auto', 'ms between two pings of the server; auto: ask the server'),
  option('timeout', 'timeout', integer(10, DAY_MS), 10_000, 'ms until a stream must be open'),
  option('expect', 'expect', choice('holdfast', 'any'), 'holdfast', 'what streams must contain: exactly what Holdfast sends, or anything after a 200'),
];

/** @param {string} given a list @returns {boolean} */
function areHosts(given) {
  const addresses = sourcesIn(given, MOST_HOSTS);
  return addresses !== undefined && (!given.includes('-') || addresses.every(isLoopback));
}

/** @param {string} given @returns {number[] | undefined} */
function portsIn(given) {
  const ports = [];
  for (const part of given.split(',')) {
    const found = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
    if (!found) return undefined;
    const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
    if (first === 0 || last < first || last > 65_535 || ports.length + last - first >= MOST_PORTS)
      return undefined;
    for (let port = first; port <= last; port++) ports.push(port);
  }
  return ports;
}

/** @param {string} given @param {number} [most] @returns {string[] | undefined} */
function sourcesIn(given, most = MOST_SOURCES) {
  const all = [];
  for (const part of given.split(',')) {
    const [first, last = first, ...more] = part.split('-');
    if (more.length > 0 || isIP(first) === 0 || isIP(first) !== isIP(last)) return undefined;
    if (first === last) all.push(first);
    else {
      const range = isIP(first) === 4 ? rangeOf(first, last) : undefined;
      if (!range || all.length + range.length > most) return undefined;
      for (const address of range) all.push(address);
    }
  }
  return all.length <= most ? all : undefined;
}

/** @param {string} first @param {string} last both IPv4 @returns {string[] | undefined} */
function rangeOf(first, last) {
  const [from, to] = [numberOf(first), numberOf(last)];
  if (to < from || to - from >= MOST_SOURCES) return undefined;
  return Array.from({ length: to - from + 1 }, (_, i) => addressOf(from + i));
}

/** @param {string} address IPv4 */
function numberOf(address) {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** @param {number} number */
function addressOf(number) {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
}

/**
 * Enough addresses of the loopback range, from 127.0.0.2 on, for so many streams.
 * @param {number} streams
 * @param {number} from how many addresses to skip: those of other drones
 * @param {number} ports destinations: pairs of an address and a port of the target
 * @returns {string[]}
 */
export function loopbackSources(streams, from, ports) {
  const count = Math.max(1, Math.ceil(streams / (STREAMS_PER_SOURCE * ports)));
  return Array.from({ length: count }, (_, i) => addressOf(numberOf('127.0.0.2') + from + i));
}

/** @param {string} host the parameter @returns {string[]} each of them */
export function hostsOf(host) {
  return isIP(host) === 0 && /^[\d.]+[-,]/.test(host) ? (sourcesIn(host) ?? [host]) : [host];
}

/** @returns {Params} */
export function defaultParams() {
  const values = Object.fromEntries(PARAMS.map(({ key, default: value }) => [key, value]));
  return /** @type {Params} */ (/** @type {unknown} */ (values));
}

/**
 * @param {Params} params
 * @param {Iterable<[string, string]>} changes names and values as text
 * @returns {Params} a copy with the changes
 * @throws {HoldfastError} BAD_PARAM
 */
export function changedParams(params, changes) {
  /** @type {Record<string, unknown>} */
  const changed = { ...params };
  for (const [name, given] of changes) {
    const param = PARAMS.find(({ flag }) => flag === name);
    if (!param) {
      const names = PARAMS.map(({ flag }) => flag).join(', ');
      throw new HoldfastError('BAD_PARAM', `unknown parameter '${name}': expected one of ${names}`);
    }
    const value = name === 'channel' && given === '' ? '' : param.kind.read(given);
    if (value === undefined)
      throw new HoldfastError('BAD_PARAM', `${name} got '${given}': expected ${param.kind.expected}`);
    changed[param.key] = value;
  }
  return /** @type {Params} */ (/** @type {unknown} */ (changed));
}

/**
 * The head of the request that opens a stream.
 * @param {Params} params @returns {string}
 */
export function requestOf({ host, port, path, channel, accept }) {
  const target = channel
    ? `${path}${path.includes('?') ? '&' : '?'}channel=${encodeURIComponent(channel)}`
    : path;
  const [first] = hostsOf(host);
  const name = isIP(first) === 6 ? `[${first}]` : first;
  const wanted = accept === 'events' ? 'Accept: text/event-stream\r\n' : '';
  return `GET ${target} HTTP/1.1\r\nHost: ${name}:${port[0]}\r\n${wanted}\r\n`;
}
