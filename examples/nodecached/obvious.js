#!/usr/bin/env node
/*
 * memcached the obvious way: strings, a Map, and one write per answer. server.js is what it became.
 *
 * The Map keeps its keys in the order of their use: a key that is used is deleted and added again, and the first is evicted.
 */
import { createServer } from 'node:net';
import { listen, ONLY_FINAL, readOptions, VERSION } from './options.js';

/** @typedef {{ value: string, flags: number, expiresAt: number, cas: number }} Item `expiresAt` in ms; 0: never */
/** What a command sees. @typedef {{ words: string[], value: string }} Request */

const NAME = 'nodecached/obvious.js';
const MOST_KEY = 250;
const MOST_VALUE = 1_048_500;
const MOST_LINE = 1 << 20;
const MOST_RELATIVE = 60 * 60 * 24 * 30;
/** A guess of what an item takes besides its strings. */
const ITEM_BYTES = 150;
const BAD_FORMAT = 'CLIENT_ERROR bad command line format';

const options = readOptions(NAME, ONLY_FINAL);
/** @type {Map<string, Item>} */
const items = new Map();
let bytes = 0;
let lastCas = 0;
let connections = 0;

/** @param {string} key @param {Item} item */
const sizeOf = (key, item) => ITEM_BYTES + key.length + item.value.length;

/** @param {string} key @returns {boolean} */
function remove(key) {
  const item = items.get(key);
  if (item) bytes -= sizeOf(key, item);
  return items.delete(key);
}

/** @param {string} key @returns {Item | undefined} */
function find(key) {
  const item = items.get(key);
  if (!item) return undefined;
  remove(key);
  if (item.expiresAt !== 0 && item.expiresAt <= Date.now()) return undefined;
  items.set(key, item);
  bytes += sizeOf(key, item);
  return item;
}

/** @param {string} key @param {Omit<Item, 'cas'>} item */
function store(key, item) {
  remove(key);
  const made = { ...item, cas: ++lastCas };
  items.set(key, made);
  bytes += sizeOf(key, made);
  for (const oldest of items.keys()) {
    if (bytes <= options.memory * 1024 * 1024) break;
    remove(oldest);
  }
  return 'STORED';
}

/** @param {string} exptime @returns {number} */
function expiryOf(exptime) {
  const seconds = Number(exptime);
  if (seconds === 0) return 0;
  if (seconds < 0) return 1;
  return seconds > MOST_RELATIVE ? seconds * 1000 : Date.now() + seconds * 1000;
}

/** @param {string[]} keys @param {boolean} withCas */
function get(keys, withCas) {
  const values = keys.map((key) => {
    const item = find(key);
    if (!item) return '';
    const cas = withCas ? ` ${item.cas}` : '';
    return `VALUE ${key} ${item.flags} ${item.value.length}${cas}\r\n${item.value}\r\n`;
  });
  return `${values.join('')}END`;
}

/** @param {string[]} words @param {boolean} withCas */
function getAndTouch([, exptime, ...keys], withCas) {
  for (const key of keys) touch(key, exptime);
  return get(keys, withCas);
}

/** @param {string} key @param {string} exptime */
function touch(key, exptime) {
  const item = find(key);
  if (item) item.expiresAt = expiryOf(exptime);
  return item ? 'TOUCHED' : 'NOT_FOUND';
}

/** @param {Request} request @returns {Omit<Item, 'cas'>} */
const itemOf = ({ words: [, , flags, exptime], value }) => ({
  value,
  flags: Number(flags),
  expiresAt: expiryOf(exptime),
});

/** @param {Request} request @param {(old: string, value: string) => string} join */
function extend({ words: [, key], value }, join) {
  const old = find(key);
  return old ? store(key, { ...old, value: join(old.value, value) }) : 'NOT_STORED';
}

/** @param {Request} request */
function compare(request) {
  const [, key, , , , cas] = request.words;
  const old = find(key);
  if (!old) return 'NOT_FOUND';
  return old.cas === Number(cas) ? store(key, itemOf(request)) : 'EXISTS';
}

/** @param {string[]} words @param {(value: bigint, delta: bigint) => bigint} calculate */
function count([, key, delta], calculate) {
  if (!/^\d+$/.test(delta)) return 'CLIENT_ERROR invalid numeric delta argument';
  const item = find(key);
  if (!item) return 'NOT_FOUND';
  if (!/^\d{1,20} *$/.test(item.value)) return 'CLIENT_ERROR cannot increment or decrement non-numeric value';
  const result = String(calculate(BigInt(item.value.trim()), BigInt(delta)));
  store(key, { ...item, value: result.padEnd(item.value.length) });
  return result;
}

/** @param {string} delay */
function flush(delay) {
  const drop = () => {
    items.clear();
    bytes = 0;
  };
  if (Number(delay) > 0) setTimeout(drop, Number(delay) * 1000).unref();
  else drop();
  return 'OK';
}

/** @type {Record<string, (request: Request) => string>} */
const COMMANDS = {
  get: ({ words }) => get(words.slice(1), false),
  gets: ({ words }) => get(words.slice(1), true),
  gat: ({ words }) => getAndTouch(words, false),
  gats: ({ words }) => getAndTouch(words, true),
  set: (request) => store(request.words[1], itemOf(request)),
  add: (request) => (find(request.words[1]) ? 'NOT_STORED' : store(request.words[1], itemOf(request))),
  replace: (request) => (find(request.words[1]) ? store(request.words[1], itemOf(request)) : 'NOT_STORED'),
  append: (request) => extend(request, (old, value) => old + value),
  prepend: (request) => extend(request, (old, value) => value + old),
  cas: compare,
  incr: ({ words }) => count(words, (value, delta) => (value + delta) % 2n ** 64n),
  decr: ({ words }) => count(words, (value, delta) => (delta > value ? 0n : value - delta)),
  touch: ({ words: [, key, exptime] }) => touch(key, exptime),
  delete: ({ words: [, key] }) => (remove(key) ? 'DELETED' : 'NOT_FOUND'),
  flush_all: ({ words: [, delay] }) => flush(delay),
  version: () => `VERSION ${VERSION}`,
  verbosity: () => 'OK',
  stats: () => `STAT pid ${process.pid}\r\nSTAT curr_items ${items.size}\r\nSTAT bytes ${bytes}\r\nEND`,
};

/** Words of those commands that may end with noreply, without that. @type {Record<string, number>} */
const WORDS = {
  set: 5,
  add: 5,
  replace: 5,
  append: 5,
  prepend: 5,
  cas: 6,
  incr: 3,
  decr: 3,
  touch: 3,
  delete: 2,
  flush_all: 1,
  verbosity: 2,
};
const STORAGE = ['set', 'add', 'replace', 'append', 'prepend', 'cas'];

/** @param {import('node:net').Socket} socket */
function serve(socket) {
  let input = '';
  socket.setEncoding('latin1');
  socket.on('data', (text) => {
    input += text;
    for (let end = run(socket, input); end > 0; end = run(socket, input)) input = input.slice(end);
    if (input.length > MOST_LINE + MOST_VALUE) socket.destroy();
  });
  socket.on('error', () => {});
  socket.on('close', () => connections--);
}

/** @param {import('node:net').Socket} socket @param {string} input @returns {number} length of the first request; 0: it is not complete */
function run(socket, input) {
  const lineEnd = input.indexOf('\n') + 1;
  if (lineEnd === 0) return 0;
  const words = input.slice(0, lineEnd).trim().split(/ +/);
  const length = STORAGE.includes(words[0]) && words.length > 4 ? Number(words[4]) : -1;
  const end = length >= 0 ? lineEnd + length + 2 : lineEnd;
  if (input.length < end) return 0;
  const request = { words, value: input.slice(lineEnd, end - 2) };
  if (words[0] === 'quit') socket.end();
  else {
    const answer = answerTo(request, length, input.slice(lineEnd, end));
    if (!isQuiet(words)) socket.write(`${answer}\r\n`, 'latin1');
  }
  return end;
}

/** @param {string[]} words */
const isQuiet = (words) => words.at(-1) === 'noreply' && words.length > WORDS[words[0]];

/** @param {Request} request @param {number} length of the value, or -1 @param {string} data the value and its end @returns {string} */
function answerTo(request, length, data) {
  const { words } = request;
  const [name, key] = words;
  const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined;
  if (!command) return 'ERROR';
  if (words.length < WORDS[name]) return 'ERROR';
  if (key?.length > MOST_KEY) return BAD_FORMAT;
  if (STORAGE.includes(name)) {
    if (!(length >= 0)) return BAD_FORMAT;
    if (length > MOST_VALUE) return 'SERVER_ERROR object too large for cache';
    if (!data.endsWith('\r\n')) return 'CLIENT_ERROR bad data chunk';
  } else if (name.startsWith('g') && key === undefined) return 'ERROR';
  return command(request);
}

const server = createServer({ noDelay: true }, (socket) => {
  connections++;
  if (connections > options.connections) socket.write('ERROR Too many open connections\r\n');
  if (connections > options.connections) socket.destroySoon();
  serve(socket);
});
listen(server, options, NAME);
