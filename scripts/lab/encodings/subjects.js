/*
 * The servers that are compared, and the clients that dial them.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { HoldfastError } from '../../../lib/errors.js';
import { freePort } from '../../../lib/port.js';
import { pinned } from '../cores.js';
import { Helper } from '../helper.js';
import { cacheFolder } from '../install.js';
import { buildWithUWebSockets } from '../peers/uwebsockets.js';
import { bun, prepareBun } from '../peers.js';
import { ROOT, startServer } from '../server.js';
import { startProgram } from '../starting.js';
import { noHold } from '../transports.js';

const FOLDER = fileURLToPath(new URL('servers/', import.meta.url));
const OWN_PACKAGE = pathToFileURL(join(ROOT, 'index.js')).href;
const HOST = '127.0.0.1';
/** An interval so long that no ping is due during a measurement. */
const NEVER_MS = 3_600_000;
/** For a slow server on a busy machine to open all streams. */
const TIMEOUT_MS = 240_000;
/** Streams being opened at a time. */
const CONCURRENCY = 512;
const CHANNEL = 'all';
/** Longer than any part of the experiment takes, so that no poll ends before its message comes. */
const WAIT_S = 60;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('../../../fleet/drone/params.js').Format} Format */

/**
 * @typedef {object} Kind of server, and what its clients are
 * @property {string} name
 * @property {string} text
 * @property {Format} format
 * @property {boolean} isOurs
 * @property {'streams' | 'requests'} what `requests`: its connections are idle between requests
 * @property {string} [path] of requests
 * @property {boolean} [hasNoMemory] whether idle connections can't be counted
 * @property {string} [skip]
 * @property {(lab: Lab) => Promise<string>} [prepare] returns why it has to be skipped, or ''
 * @property {string[]} [command] of a server that is not server.js
 */

const own = (/** @type {Format} */ format, /** @type {string} */ text) => ({
  name: format,
  text: `${text}: our server with the native transport, two workers`,
  format,
  isOurs: true,
  what: /** @type {const} */ ('streams'),
  skip: noHold(),
});

/** @param {string} name of a file in servers/ @returns {string} */
const file = (name) => join(FOLDER, `${name}.js`);

/** @returns {Kind[]} */
export function kinds() {
  const requests = { format: /** @type {const} */ ('text'), what: /** @type {const} */ ('requests') };
  const node = [process.execPath, file('node-http')];
  const kept = {
    ...requests,
    isOurs: true,
    skip: noHold(),
    command: [process.execPath, file('hold'), OWN_PACKAGE],
  };
  const onBun = { prepare: prepareBun, isOurs: false };
  const onUWebSockets = { prepare: buildUWebSockets, isOurs: false, command: [uWebSockets()] };
  return [
    own('events', 'Server-Sent Events'),
    own('ndjson', 'lines of JSON'),
    own('websocket', 'WebSockets'),
    {
      name: 'ws',
      text: `WebSockets with ws ${wsVersion()} on node:http, one process`,
      format: 'websocket',
      isOurs: false,
      what: 'streams',
      command: [process.execPath, file('ws')],
    },
    {
      name: 'bun',
      text: 'WebSockets of Bun, which is built on uWebSockets, one process',
      format: 'websocket',
      what: 'streams',
      ...onBun,
      command: ['bun', file('bun')],
    },
    {
      name: 'uwebsockets',
      text: 'WebSockets of uWebSockets through its C interface, one process; the library is the one in the PyPI package socketify',
      format: 'websocket',
      what: 'streams',
      ...onUWebSockets,
    },
    own('poll', 'polls'),
    {
      name: 'node-http-poll',
      text: 'polls with node:http in a few lines, one process',
      format: 'poll',
      isOurs: false,
      what: 'streams',
      command: node,
    },
    { name: 'answer', text: 'a Hold whose policy answers requests', path: '/bench', ...kept },
    {
      name: 'refusal',
      text: 'a Hold whose policy refuses requests with 404',
      path: '/nothing',
      hasNoMemory: true,
      ...kept,
    },
    {
      name: 'node-http',
      text: 'node:http that answers requests',
      path: '/bench',
      isOurs: false,
      ...requests,
      command: node,
    },
    {
      name: 'bun-http',
      text: 'Bun that answers requests',
      path: '/bench',
      ...requests,
      ...onBun,
      command: ['bun', file('bun')],
    },
    {
      name: 'uwebsockets-http',
      text: 'uWebSockets that answers requests',
      path: '/bench',
      hasNoMemory: true, // it closes idle connections after 10 s
      ...requests,
      ...onUWebSockets,
    },
  ];
}

/** Streams of ours are so small that the heap of V8 moves as much as thousands of them. */
const MORE_OF_OURS = 4;

/** @param {import('../plan.js').Plan} plan @param {Kind} kind @returns {number} streams with which its memory is measured */
export function highestOf({ streams }, { isOurs, what }) {
  return isOurs && what === 'streams' ? MORE_OF_OURS * streams : streams;
}

/** @param {string} name @returns {Kind} */
export function kindOf(name) {
  const found = kinds().find((one) => one.name === name);
  if (!found) throw new HoldfastError('RUN', `there is no run '${name}'`);
  return found;
}

function wsVersion() {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).dependencies.ws;
}

function uWebSockets() {
  return join(cacheFolder(), 'uwebsockets-websocket');
}

/** @param {Lab} lab @returns {Promise<string>} why it can't be built; '' on success */
function buildUWebSockets(lab) {
  return buildWithUWebSockets(lab, join(FOLDER, 'uwebsockets.c'), uWebSockets());
}

/**
 * @typedef {object} Subject
 * @property {Kind} kind
 * @property {number} port
 * @property {() => number[]} pids of all its processes
 * @property {() => void} check throws when it has ended
 * @property {(message: string) => Promise<void>} publish to all streams
 * @property {() => Promise<void>} stop
 *
 * @typedef {object} How
 * @property {string} name for its CSV
 * @property {number} [pingIntervalMs] 0 for none
 * @property {number} [streams] that ours has to have room for
 * @property {boolean} [collects] whether ours collects garbage every second
 * @property {boolean} [isPinned] to one core
 */

/** @param {Lab} lab @param {Kind} kind @param {How} how @returns {Promise<Subject>} */
export async function startSubject(
  lab,
  kind,
  { name, pingIntervalMs = 0, streams, collects = false, isPinned = false },
) {
  if (kind.command) return startOther(lab, kind, { pingIntervalMs, isPinned });
  const args = ['--transport', 'hold', '--workers', '2', '--refresh', '1000', '--anonymous'];
  args.push('--ping-interval', String(pingIntervalMs || NEVER_MS));
  if (streams) args.push('--streams', String(streams));
  if (collects) args.push('--gc-interval', '1000');
  const server = await startServer(lab, { name, args, nodeFlags: collects ? ['--expose-gc'] : [] });
  return {
    kind,
    port: server.port,
    pids: () => server.pids(),
    check: () => server.check(),
    publish: (message) => server.publish(CHANNEL, message),
    stop: () => server.stop(),
  };
}

/** @param {Lab} lab @param {Kind} kind @param {{ pingIntervalMs: number, isPinned: boolean }} how @returns {Promise<Subject>} */
async function startOther(lab, kind, { pingIntervalMs, isPinned }) {
  const port = await freePort(0, HOST);
  const [program, ...args] = kind.command ?? [];
  const command = [program === 'bun' ? bun() : program, ...args, String(port), String(pingIntervalMs)];
  const words = isPinned ? [...pinned('server'), ...command] : command;
  const isReady = (/** @type {{ said: string }} */ { said }) => /^listening$/m.test(said);
  const started = await startProgram(lab, { name: kind.name, words, isReady });
  const publish = async (/** @type {string} */ body) => {
    const { status } = await fetch(`http://${HOST}:${port}/publish`, { method: 'POST', body });
    if (status !== 202) throw new HoldfastError('PEER', `${kind.name} answered /publish with ${status}`);
  };
  return { kind, port, check() {}, publish, ...started };
}

export class Clients {
  /** @param {Lab} lab */
  constructor(lab) {
    this.helper = new Helper(lab, 'crowd');
  }

  /** @param {Subject} subject @param {{ streams: number, pingIntervalMs?: number }} how */
  async aim({ kind, port }, { streams, pingIntervalMs = NEVER_MS }) {
    const { format, what, path = `/?channel=${CHANNEL}` } = kind;
    const params = {
      port,
      n: streams,
      format,
      path,
      wait: WAIT_S,
      interval: pingIntervalMs,
      expect: what === 'requests' ? 'any' : 'holdfast',
      timeout: TIMEOUT_MS,
      concurrency: CONCURRENCY,
    };
    await this.helper.ask(
      'aim',
      Object.entries(params).map(([name, value]) => [name, String(value)]),
    );
  }

  /** @param {number} streams @returns {Promise<number>} ms it took until there were so many */
  open(streams) {
    return this.helper.ask('open', streams);
  }

  /** Closes all. */
  close() {
    return this.helper.ask('close');
  }

  /** @returns {Promise<Record<string, number>>} counts since the start */
  async counts() {
    return (await this.helper.ask('take')).counts;
  }

  stop() {
    return this.helper.stop();
  }
}
