/*
 * The one table of the options of a `Hold`, and therefore of a transport: the values each accepts, its default, and whether
 * the native core reads it. Native options are in the order of native/core/src/options.rs; test/native.parity.test.js
 * compares the two.
 */
import { Server } from 'node:net';
import { isRange, LOOPBACK } from '../lib/addresses.js';
import { descriptorLimit, limitsOf, MOST_CONNECTIONS } from '../lib/descriptors.js';
import { HoldfastError } from '../lib/errors.js';
import { shown } from '../lib/shown.js';
import { DAY_MS, whole } from './checks.js';
import { ENCODERS } from './encodings.js';

/** Shard numbers are one byte, and one of them stands for streams held in JS. */
export const MOST_SHARDS = 255;
const MOST = 2 ** 32 - 1;
/** A client that acknowledges nothing for two ping intervals, and at least for this time, is dead. */
const USER_TIMEOUT_MIN_MS = 5000;

/** @typedef {import('./checks.js').Check} Check */

/** @type {Check} */
const FUNCTION = { expected: 'a function', accepts: (value) => typeof value === 'function' };
/** @type {Check} */
const SWITCH = { expected: 'true or false', accepts: (value) => typeof value === 'boolean' };
/** `address` asks for the address of the client. */
const POLICY_KEYS = ['headers', 'address', 'decide'];
/** @type {Check} */
const POLICY = {
  expected: 'an object { headers, address, decide }: header names in lower case, a boolean, and a function',
  accepts: (value) => {
    if (isPlain(value) && !Object.keys(value).every((key) => POLICY_KEYS.includes(key))) return false;
    const { headers = [], address = false, decide } = /** @type {Record<string, unknown>} */ (value ?? {});
    return typeof decide === 'function' && typeof address === 'boolean' && areHeaderNames(headers);
  },
};
/** @type {Check} */
const RANGES = {
  expected: "an array of addresses or ranges, such as '10.0.0.0/8'",
  accepts: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string' && isRange(one)),
};
/** @type {Check} */
const PINGS = {
  expected: 'an object of two strings that are not empty, { text, events }',
  accepts: (value) => {
    const { text, events } = /** @type {Record<string, unknown>} */ (value ?? {});
    return isText(text) && isText(events);
  },
};
/** @type {Check} */
const SERVER = {
  expected: 'a server of node:http (Express: createServer(app), Fastify: fastify.server)',
  accepts: (value) => value instanceof Server,
};

/** @type {import('./policy.js').Policy} */
const PASS_EVERYTHING = { headers: [], decide: () => ({ pass: true }) };
const PINGS_BY_ENCODING = { text: ENCODERS.text.ping, events: ENCODERS.events.ping };

/**
 * @typedef {object} Option
 * @property {string} name
 * @property {Check | null} check null if the application can't set it
 * @property {(settings: Settings) => unknown} default computed from the options before it
 * @property {boolean} isNative
 */

// biome-ignore format: a table reads best with one row per line
/** @type {readonly Option[]} */
export const OPTIONS = [
  inJs('policy', POLICY, () => PASS_EVERYTHING),
  inJs('server', SERVER, () => undefined),
  inJs('onClose', FUNCTION, () => undefined),
  inJs('onMessage', FUNCTION, () => undefined),
  inJs('onError', FUNCTION, () => undefined),
  inJs('ping', PINGS, () => PINGS_BY_ENCODING),
  inJs('maxQueueBytes', whole(1024, 2 ** 40), () => 16_777_216),
  inJs('proxies', RANGES, () => LOOPBACK),
  inNative('shards', whole(1, MOST_SHARDS), () => 1),
  inNative('phase', whole(0, MOST), () => 0),
  inNative('phases', whole(1, MOST), ({ shards }) => shards),
  inNative('ownTables', null, () => process.env.HOLDFAST_UNSHARE !== 'off'),
  inNative('capacity', whole(0, MOST), () => limitsOf(descriptorLimit()).capacity),
  inNative('connectionLimit', whole(1, MOST_CONNECTIONS), () => limitsOf(descriptorLimit()).connectionLimit),
  inNative('pingIntervalMs', whole(10, DAY_MS), () => 20_000),
  inNative('idlePings', SWITCH, () => false),
  inNative('nagle', SWITCH, () => false),
  inNative('maxHeadBytes', whole(64, 2 ** 20), () => 8192),
  inNative('headTimeoutMs', whole(1, DAY_MS), () => 10_000),
  inNative('keepAliveTimeoutMs', whole(1, DAY_MS), () => 5000),
  inNative('maxHeadsPerAddress', whole(1, MOST), () => 256),
  inNative('answerTimeoutMs', whole(1, DAY_MS), () => 10_000),
  inNative('maxBacklogBytes', whole(0, 2 ** 30), () => 65_536),
  inNative('maxChannelBytes', whole(0, 2 ** 40), () => 16_777_216),
  inNative('userTimeoutMs', null, ({ pingIntervalMs }) => Math.max(2 * pingIntervalMs, USER_TIMEOUT_MIN_MS)),
  inNative('reportsAddresses', null, ({ policy }) => policy.address === true),
  inNative('maxMessageBytes', whole(1, 2 ** 24), () => 65_536),
  inNative('takesMessages', null, ({ onMessage }) => onMessage !== undefined),
];

const GIVEN = OPTIONS.filter(({ check }) => check !== null).map(({ name }) => name);

/**
 * @typedef {object} HoldOptions
 * @property {import('./policy.js').Policy} [policy] decides about each request; without it every request is passed on
 * @property {import('node:http').Server} [server] gets what is passed on
 * @property {(id: number, reason: import('../lib/reasons.js').CloseReason) => void} [onClose] called for every stream
 *   that ends, and with 'over-capacity' for each request that could not be held for lack of room
 * @property {(id: number, data: string) => void} [onMessage] called with each message of a WebSocket client; without it, one that
 *   sends something is closed
 * @property {(error: unknown) => void} [onError] called with what `decide` or `onClose` threw, and when a shard failed;
 *   without it these become process warnings
 * @property {{ text: string, events: string }} [ping] payload of a ping, for each encoding
 * @property {number} [shards] threads, each with as many streams as a process may have descriptors
 * @property {number} [phase] position of its first shard among all on this machine, so that they don't all wake up together
 * @property {number} [phases] number of shards on this machine
 * @property {number} [capacity] most streams per shard; further requests get 503
 * @property {number} [connectionLimit] most connections per shard; if there are more, the oldest that was
 *   answered is cut, or else the oldest without a complete head; if there is none, they wait, or without native are cut
 * @property {number} [pingIntervalMs]
 * @property {boolean} [idlePings] no ping for a stream that has got a message since the last one; WebSockets always get theirs
 * @property {boolean} [nagle]
 * @property {number} [maxHeadBytes]
 * @property {number} [headTimeoutMs]
 * @property {number} [keepAliveTimeoutMs] how long a connection is kept open for the next request after an answer
 * @property {number} [maxMessageBytes] most bytes of a message from a WebSocket client
 * @property {number} [maxHeadsPerAddress] incomplete request heads per shard of one address (IPv6: of a /64); with more,
 *   the oldest connection is cut
 * @property {readonly string[]} [proxies] addresses and ranges to which `maxHeadsPerAddress` does not apply
 * @property {number} [answerTimeoutMs] how long a promised decision may take
 * @property {number} [maxBacklogBytes]
 * @property {number} [maxQueueBytes] most bytes of messages that wait for delivery; with more, `publish` and `send` throw BUSY
 * @property {number} [maxChannelBytes] memory that channels may take per shard; requests that need more get 503
 */

/**
 * All options with their defaults filled in, and values derived from them.
 * @typedef {Required<Omit<HoldOptions, 'server' | 'onClose' | 'onMessage' | 'onError'>>
 *   & Pick<HoldOptions, 'server' | 'onClose' | 'onMessage' | 'onError'>
 *   & { ownTables: boolean, userTimeoutMs: number, reportsAddresses: boolean, takesMessages: boolean }} Settings
 */

/** @param {string} name @param {Check | null} check @param {Option['default']} byDefault @returns {Option} */
function inJs(name, check, byDefault) {
  return { name, check, default: byDefault, isNative: false };
}

/** @param {string} name @param {Check | null} check @param {Option['default']} byDefault @returns {Option} */
function inNative(name, check, byDefault) {
  return { name, check, default: byDefault, isNative: true };
}

/**
 * @param {HoldOptions} options undefined ones get their defaults
 * @returns {Settings}
 * @throws {HoldfastError} BAD_OPTION
 */
export function settingsOf(options) {
  if (typeof options !== 'object' || options === null)
    throw badOption(`the options of a Hold must be an object, not ${shown(options)}`);
  const given = /** @type {Record<string, unknown>} */ (options);
  const unknown = Object.keys(given).find((name) => given[name] !== undefined && !GIVEN.includes(name));
  if (unknown !== undefined)
    throw badOption(`there is no option '${unknown}': the options are ${GIVEN.join(', ')}`);
  const settings = /** @type {Settings} */ ({});
  for (const option of OPTIONS)
    Object.assign(settings, { [option.name]: settingOf(option, given, settings) });
  return settings;
}

/** @param {Option} option @param {Record<string, unknown>} given @param {Settings} settings */
function settingOf({ name, check, default: byDefault }, given, settings) {
  const value = check && Object.hasOwn(given, name) ? given[name] : undefined;
  if (!check || value === undefined) return byDefault(settings);
  if (!check.accepts(value)) throw badOption(`${name} got ${shown(value)}: expected ${check.expected}`);
  return value;
}

/**
 * Picks the options of a `Hold` from others.
 * @param {Record<string, any>} options
 * @returns {HoldOptions}
 */
export function holdOptionsIn(options) {
  return Object.fromEntries(Object.entries(options).filter(([name]) => GIVEN.includes(name)));
}

/** @param {Settings} settings @returns {Float64Array} the native options, in their order */
export function nativeOptions(settings) {
  const values = /** @type {Record<string, any>} */ (settings);
  return Float64Array.from(
    OPTIONS.filter(({ isNative }) => isNative),
    ({ name }) => Number(values[name]),
  );
}

/**
 * Without shards, JS holds what all of them would, within the one descriptor table of the process.
 * @param {Settings} settings
 */
export function limitsInJs({ shards, capacity, connectionLimit, maxChannelBytes }) {
  const most = limitsOf(descriptorLimit());
  return {
    capacity: Math.min(shards * capacity, most.capacity),
    connectionLimit: Math.min(shards * connectionLimit, most.connectionLimit),
    maxChannelBytes: shards * maxChannelBytes,
  };
}

/** @param {unknown} value @returns {value is object} whether it is an object without a class, which has no other state */
function isPlain(value) {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

/** @param {unknown} value */
function isText(value) {
  return typeof value === 'string' && value !== '';
}

/** @param {unknown} names @returns {boolean} whether they are in lower case */
function areHeaderNames(names) {
  return (
    Array.isArray(names) &&
    names.every((name) => typeof name === 'string' && /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name))
  );
}

/** @param {string} line */
function badOption(line) {
  return new HoldfastError('BAD_OPTION', line);
}
