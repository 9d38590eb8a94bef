/*
 * The parameters of a drone, which flags, `set` and the fleet command change. One table.
 */
import { HoldfastError } from '../../lib/errors.js';
import { choice, either, integer, option, text } from '../../lib/options.js';
import { isHost, MOST_HOSTS, portsIn, sourcesIn } from './addresses.js';
import { formats, tls, topics } from './optional.js';

const DAY_MS = 86_400_000;
const MOST_STREAMS = 10_000_000;

/**
 * @typedef {object} StreamParams
 * @property {number} n streams to keep open
 * @property {string} host
 * @property {number[]} port ports, used in turn
 * @property {number} ramp streams to open per second
 * @property {number} concurrency
 * @property {string} path
 * @property {string} channel '' for none
 * @property {Format} format
 * @property {'auto' | string[]} sources
 * @property {'auto' | number} interval ms
 * @property {number} timeout ms
 * @property {'holdfast' | 'any'} expect
 * @property {number} churn streams per second
 */

/** @typedef {'text' | 'events' | 'ndjson' | 'poll' | 'websocket'} Format of streams */
/** @typedef {StreamParams & import('./formats/params.js').FormatParams & import('./tls/params.js').TlsParams
 * & import('./topics/params.js').TopicParams} Params only the first part where the others are not available */

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
  read: (given) => (isHost(given) ? given : undefined),
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
  option('format', 'format', choice('text', 'events', ...(formats?.FORMATS ?? [])), 'text', 'format of the streams: text, Server-Sent Events, lines of JSON, polls (one request after the other on a connection), or WebSockets; with topics, text means events'),
  option('sources', 'sources', either('auto', SOURCES), 'auto', 'local addresses to dial from; auto: the kernel chooses, or 127.0.0.2 and up for loopback'),
  option('interval', 'interval', either('auto', integer(1, DAY_MS)), 'auto', 'ms between two pings of the server; auto: ask the server'),
  option('timeout', 'timeout', integer(10, DAY_MS), 10_000, 'ms until a stream must be open'),
  option('churn', 'churn', integer(0, 1_000_000), 0, 'streams per second, chosen at random, to close and open again with their cursors'),
  option('expect', 'expect', choice('holdfast', 'any'), 'holdfast', 'what streams must contain: exactly what Holdfast sends, or anything after a 200'),
  ...(formats?.FORMAT_PARAMS ?? []),
  ...(tls?.TLS_PARAMS ?? []),
  ...(topics?.TOPIC_PARAMS ?? []),
];

/** @returns {Params} */
export function defaultParams() {
  const values = Object.fromEntries(PARAMS.map(({ key, default: value }) => [key, value]));
  return /** @type {Params} */ (/** @type {unknown} */ (values));
}

/**
 * @param {Params} params
 * @param {Iterable<[string, string]>} changes names and values as text; a parameter that repeats can be there several times
 * @returns {Params} a copy with the changes
 * @throws {HoldfastError} BAD_PARAM
 */
export function changedParams(params, changes) {
  /** @type {Record<string, unknown>} */
  const changed = { ...params };
  /** @type {Map<string, unknown[]>} */
  const lists = new Map();
  for (const [name, given] of changes) {
    const { key, kind, ...param } = paramOf(name);
    const isRemoved = given === '' && String(param.default) === '';
    const value = isRemoved ? param.default : kind.read(given);
    if (value === undefined)
      throw new HoldfastError('BAD_PARAM', `${name} got '${given}': expected ${kind.expected}`);
    if (kind.repeats && !isRemoved) lists.set(key, [...(lists.get(key) ?? []), value]);
    changed[key] = lists.get(key) ?? value;
  }
  const result = /** @type {Params} */ (/** @type {unknown} */ (changed));
  const conflict = topics?.conflictIn(result);
  if (conflict) throw new HoldfastError('BAD_PARAM', conflict);
  return result;
}

/** @param {string} name @returns {import('../../lib/options.js').Option} @throws {HoldfastError} BAD_PARAM */
function paramOf(name) {
  const param = PARAMS.find(({ flag }) => flag === name);
  if (param) return param;
  const names = PARAMS.map(({ flag }) => flag).join(', ');
  throw new HoldfastError('BAD_PARAM', `unknown parameter '${name}': expected one of ${names}`);
}
