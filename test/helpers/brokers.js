/*
 * Every broker, opened in the same way.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openBroker } from '../../broker/index.js';
import { prepareInheritance } from '../../broker/inherit.js';
import { RemoteBroker } from '../../broker/remote.js';
import { SwitchBroker } from '../../broker/switch.js';
import { natsBinaries, startNats } from './nats.js';

let streams = 0;
const SERVER = fileURLToPath(new URL('../fixtures/broker.server.js', import.meta.url));

/** @typedef {import('../../broker/index.js').Broker} Broker */
/** @typedef {Parameters<typeof openBroker>[0]} Options */

/** @type {Options} `isCached` is the same in the fixture */
export const OPTIONS = {
  store: '',
  syncs: true,
  historyCount: 1000,
  historyAgeMs: 3_600_000,
  historyBytes: 1_048_576,
  isCached: (topic) => topic.startsWith('cached/'),
  maxQueueBytes: 1_048_576,
};

/**
 * A remote broker, with the real one in another process. `close` ends that too.
 * @param {Options} options
 * @param {{ answerMs?: number }} [more]
 * @returns {Promise<Broker & { pid: number, handOver: () => Promise<void> }>} `handOver`: the real one is closed, so that another one continues
 */
export async function openRemote(options, { answerMs = 30_000 } = {}) {
  const child = fork(SERVER);
  child.send({ type: 'open', options });
  const [{ place }] = await once(child, 'message');
  const send = (/** @type {any} */ message) => void (child.connected && child.send(message));
  const remote = new RemoteBroker({ place, send, maxQueueBytes: options.maxQueueBytes, answerMs });
  child.on('message', (/** @type {any} */ message) => {
    if (message.type === 'feed') remote.feed(message);
    else if (message.type === 'handedOver') handedOver.resolve();
    else if (message.type === 'reset') remote.reset(message);
    else remote.answer(message);
  });
  const exited = once(child, 'exit');
  const handedOver = { resolve: () => {} };
  const handOver = () => {
    /** @type {Promise<void>} */
    const done = new Promise((resolve) => {
      handedOver.resolve = resolve;
    });
    send({ type: 'handOver' });
    return done;
  };
  /** @type {Promise<void> | null} */
  let closing = null;
  const end = async () => {
    await RemoteBroker.prototype.close.call(remote);
    send({ type: 'close' });
    await exited;
  };
  const close = () => {
    closing ??= end();
    return closing;
  };
  return Object.assign(remote, { pid: child.pid ?? 0, close, handOver });
}

/** @param {Options} options @returns {Options} with a new folder, which is removed at the end */
export function onDisk(options) {
  const store = mkdtempSync(join(tmpdir(), 'holdfast-store-'));
  process.on('exit', () => rmSync(store, { recursive: true, force: true }));
  return { ...options, store };
}

/** One that has been exchanged for its heir. @param {Broker} first @param {Options} options @returns {Promise<Broker>} */
async function inherited(first, options) {
  const broker = new SwitchBroker(first, options);
  const inheritance = await prepareInheritance(broker, options);
  await inheritance.switch(async () => (options.store === '' ? undefined : first.close()));
  return broker;
}

/** @param {Options} options @returns {Promise<Broker>} */
async function inheritedOnDisk(options) {
  const placed = onDisk(options);
  return inherited(await openBroker(placed), placed);
}

/** @typedef {{ name: string, open: (options: Options) => Promise<Broker>, skip?: string, isShared?: boolean }} Kind `isShared` with other nodes */

/** @type {Kind[]} */
export const BROKERS = [
  { name: 'memory', open: openBroker },
  { name: 'disk', open: (options) => openBroker(onDisk(options)) },
  { name: 'disk without sync', open: (options) => openBroker({ ...onDisk(options), syncs: false }) },
  { name: 'remote of memory', open: openRemote },
  { name: 'remote of disk', open: (options) => openRemote(onDisk(options)) },
  {
    name: 'switch of a remote',
    open: async (options) => new SwitchBroker(await openRemote(options), options),
  },
  {
    name: 'memory that was inherited',
    open: async (options) => inherited(await openRemote(options), options),
  },
  { name: 'disk that was inherited', open: inheritedOnDisk },
];

/** @returns {Promise<Kind[]>} each broker in a stream of its own, on servers that end with this file of tests */
export async function natsBrokers() {
  const binaries = await natsBinaries();
  const kinds = [];
  for (const { version, path, problem } of binaries) {
    const servers = problem ? [] : [(await startNats({ after }, { path, more: 'max_payload: 8388608' })).url];
    const inStream = (/** @type {Options} */ options) => ({
      ...options,
      nats: { servers, stream: `S${++streams}`, replicas: 1 },
    });
    kinds.push(
      {
        name: `NATS ${version}`,
        open: (/** @type {Options} */ options) => openBroker(inStream(options)),
        skip: problem,
        isShared: true,
      },
      {
        name: `NATS ${version} with a store`,
        open: (/** @type {Options} */ options) => openBroker(inStream(onDisk(options))),
        skip: problem,
        isShared: true,
      },
    );
  }
  return kinds;
}
