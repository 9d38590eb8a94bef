/*
 * The options of `Hold`, each with what it takes and what it is by default, and the checks of what the methods are
 * given. Native takes numbers as they come, and would wrap or panic where one is out of range.
 */
import { Server } from 'node:net';
import { MOST_CONNECTIONS } from '../lib/descriptors.js';
import { HoldfastError } from '../lib/errors.js';
import { FORMATS } from './wire.js';

/**
 * @typedef {object} Check
 * @property {string} expected
 * @property {(value: unknown) => boolean} takes
 */

/** @param {number} min @param {number} max @returns {Check} */
const whole = (min, max) => ({
  expected: `a whole number from ${min} to ${max}`,
  takes: (value) => Number.isInteger(value) && Number(value) >= min && Number(value) <= max,
});

/** @type {Check} */
const FUNCTION = { expected: 'a function', takes: (value) => typeof value === 'function' };
/** @type {Check} */
const NAMES = {
  expected: 'an array of names of headers, in lower case',
  takes: (value) => Array.isArray(value) && value.every((name) => /^[!#$%&'*+.^_`|~0-9a-z-]+$/.test(name)),
};
/** @type {Check} */
const PAYLOAD = {
  expected: 'an object of two texts, { text, events }',
  takes: (value) => {
    const { text, events } = /** @type {Record<string, unknown>} */ (value ?? {});
    return typeof text === 'string' && typeof events === 'string';
  },
};
/** @type {Check} */
const SERVER = {
  expected: 'a server of node:http (of Express: createServer(app), of Fastify: fastify.server)',
  takes: (value) => value instanceof Server,
};
/** @type {Check} */
const SWITCH = { expected: 'true or false', takes: (value) => typeof value === 'boolean' };

const DAY_MS = 86_400_000;
/** What native has in a byte, and in 32 bits. */
const MOST_SHARDS = 2 ** 8 - 1;
const MOST = 2 ** 32 - 1;
/** Channels that a stream may be opened with; native counts them in 16 bits. `subscribe` adds to them. */
const MOST_CHANNELS = 1024;

/** @type {Record<keyof import('./hold.js').HoldOptions, Check>} */
const CHECKS = {
  decide: FUNCTION,
  headers: NAMES,
  server: SERVER,
  onClose: FUNCTION,
  onError: FUNCTION,
  ping: PAYLOAD,
  pingIntervalMs: whole(10, DAY_MS),
  shards: whole(1, MOST_SHARDS),
  capacity: whole(0, MOST),
  connectionLimit: whole(1, MOST_CONNECTIONS),
  nagle: SWITCH,
  maxHeadBytes: whole(64, 2 ** 20),
  headTimeoutMs: whole(1, DAY_MS),
  maxBacklogBytes: whole(0, 2 ** 30),
  seat: whole(0, MOST),
  seats: whole(0, MOST),
};

const DEFAULTS = {
  decide: () => /** @type {import('./hold.js').HoldDecision} */ ({ pass: true }),
  headers: /** @type {string[]} */ ([]),
  ping: { text: FORMATS.text.ping, events: FORMATS.events.ping },
  pingIntervalMs: 20_000,
  shards: 1,
  nagle: false,
  maxHeadBytes: 8192,
  headTimeoutMs: 10_000,
  maxBacklogBytes: 65_536,
  seat: 0,
  seats: 0,
};

/**
 * @param {import('./hold.js').HoldOptions} options what is undefined in it is as its default
 * @param {{ capacity: number, connectionLimit: number }} limits of a table of descriptors
 * @throws {HoldfastError} BAD_OPTION
 */
export function settingsOf(options, limits) {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  for (const [name, value] of given) {
    if (!Object.hasOwn(CHECKS, name))
      throw badOption(`there is no option '${name}': there are ${Object.keys(CHECKS).join(', ')}`);
    const { expected, takes } = CHECKS[/** @type {keyof typeof CHECKS} */ (name)];
    if (!takes(value)) throw badOption(`${name} got ${shown(value)}: expected ${expected}`);
  }
  const chosen = /** @type {import('./hold.js').HoldOptions} */ (Object.fromEntries(given));
  return { ...DEFAULTS, ...limits, ...chosen };
}

/**
 * The options of `Hold` among others.
 * @param {Record<string, any>} options
 * @returns {import('./hold.js').HoldOptions}
 */
export function holdOptionsIn(options) {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(CHECKS, name)));
}

/** @param {number} id @throws {HoldfastError} BAD_ARGUMENT where it can't be one */
export function checkId(id) {
  if (!Number.isSafeInteger(id) || id < 0)
    throw badArgument(`an id is a number that adopt or onClose gave, not ${shown(id)}`);
}

/** @param {string} channel @throws {HoldfastError} BAD_ARGUMENT */
export function checkChannel(channel) {
  if (typeof channel !== 'string') throw badArgument(`a channel is a text, not ${shown(channel)}`);
}

/** @param {readonly string[]} channels @throws {HoldfastError} BAD_ARGUMENT */
export function checkChannels(channels) {
  if (!Array.isArray(channels)) throw badArgument(`channels are an array of texts, not ${shown(channels)}`);
  if (channels.length > MOST_CHANNELS)
    throw badArgument(
      `a stream is opened with ${MOST_CHANNELS} channels at most, not ${channels.length}: subscribe it to the rest`,
    );
  // Not forEach, which passes over what was left out of an array.
  for (const channel of channels) checkChannel(channel);
}

/** @param {string} response @throws {HoldfastError} BAD_ARGUMENT */
export function checkResponse(response) {
  if (typeof response !== 'string')
    throw badArgument(`an answer is a whole response as a text of Latin-1, not ${shown(response)}`);
}

/** @param {number} port @throws {HoldfastError} BAD_ARGUMENT */
export function checkPort(port) {
  if (!whole(0, 65_535).takes(port)) throw badArgument(`a port is from 0 to 65535, not ${shown(port)}`);
}

/** @param {number} ms @throws {HoldfastError} BAD_ARGUMENT */
export function checkPeriod(ms) {
  if (!whole(0, DAY_MS).takes(ms))
    throw badArgument(`a period is ${whole(0, DAY_MS).expected} of ms, not ${shown(ms)}`);
}

/** @param {string} line */
function badOption(line) {
  return new HoldfastError('BAD_OPTION', line);
}

/** @param {string} line */
export function badArgument(line) {
  return new HoldfastError('BAD_ARGUMENT', line);
}

/** @param {unknown} value */
function shown(value) {
  if (typeof value === 'string') return `'${value}'`;
  if (typeof value === 'function') return 'a function';
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? 'an object' : String(value);
}
