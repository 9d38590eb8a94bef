/*
 * A nats broker that is closed while it is busy, with a real server.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBroker } from '../broker/index.js';
import { OPTIONS } from './helpers/brokers.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { until } from './helpers/until.js';

const [OLD] = await natsBinaries();
const skip = OLD.problem || false;
/** Messages: the copy gets them in several parts. */
const MANY = 2000;

/** @param {import('node:test').TestContext} t */
async function openNode(t) {
  const server = await startNats(t, { path: OLD.path });
  /** @type {string[]} */
  const notes = [];
  const nats = { servers: [server.url], stream: 'TEST', replicas: 1 };
  const broker = /** @type {import('../broker/nats.js').NatsBroker} */ (
    await openBroker({ ...OPTIONS, historyCount: MANY, onNote: (line) => notes.push(line), nats })
  );
  return { broker, notes };
}

test('it closes while it looks at the stream, before it follows it again', { skip }, async (t) => {
  const { broker } = await openNode(t);
  const { streams } = broker.replica.manager;
  const info = streams.info.bind(streams);
  let isAsked = false;
  /** @type {() => void} */
  let answer = () => {};
  streams.info = async (...asked) => {
    isAsked = true;
    await new Promise((resolve) => {
      answer = () => resolve(undefined);
    });
    return info(...asked);
  };
  broker.replica.follower.end('a message is missing');
  await until(() => isAsked && !broker.progress.isFollowing, 'it looks at the stream');
  const closed = broker.close();
  await until(() => broker.progress.isOver, 'it closes');
  answer();
  await closed;
});

test('it closes in the middle of many messages without taking the rest for removed', { skip }, async (t) => {
  const { broker, notes } = await openNode(t);
  const { copy } = broker;
  const { follower } = broker.replica;
  const append = copy.append.bind(copy);
  let resets = 0;
  copy.follow(
    () => {},
    () => void resets++,
  );
  /** @type {Promise<void> | null} */
  let closed = null;
  copy.append = async (drafts) => {
    await until(() => follower.received === MANY, 'all messages have come');
    if (drafts.length > 1) closed ??= broker.close();
    return append(drafts);
  };
  const { nc } = broker.link;
  const data = JSON.stringify({ topics: ['a'], data: 'b' });
  for (let i = 0; i < MANY; i++) nc.publish('holdfast.TEST.p.a', data);
  await until(() => closed !== null, 'it closes');
  await closed;
  assert.deepEqual([resets, copy.first], [0, 1]);
  assert.ok(copy.last < MANY, `${copy.last} publications`);
  assert.doesNotMatch(notes.join('\n'), /were removed/);
});
