/*
 * The nats broker, with administrators and other programs who do what they should not, and long outages.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { startGate } from './helpers/gate.js';
import { natsBinaries, startCluster, startNats } from './helpers/nats.js';
import { dataOf, draft, managerOf, openNode, untilFollowed } from './helpers/natsnode.js';
import { run } from './helpers/server.js';
import { until } from './helpers/until.js';

const BINARIES = await natsBinaries();
const SUBJECT = 'holdfast.TEST.p.other';
const NS = 1_000_000;

for (const { version, path, problem } of BINARIES) {
  const skip = problem || false;

  test(`NATS ${version}: a node starts although the last publications were deleted`, { skip }, async (t) => {
    const server = await startNats(t, { path });
    const one = await openNode(t, [server]);
    await one.broker.append(['1', '2', '3'].map((text) => draft(text)));
    const { manager } = await managerOf(t, server);
    await manager.streams.deleteMessage('TEST', 3);
    const late = await openNode(t, [server]);
    assert.deepEqual([late.broker.last, late.broker.epoch], [3, one.broker.epoch]);
    await until(() => late.broker.state?.lagMs === 0, 'it is up to date');
    assert.deepEqual(await late.broker.append([draft('4')]), [{ sequence: 4, isNew: true }]);
    await untilFollowed(one, 4);
    await untilFollowed(late, 1);
    assert.deepEqual(dataOf(late.followed), ['4']);
  });

  test(`NATS ${version}: what is purged while a node is away is a gap, and the node does not wait for it`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const gate = await startGate(t, server.port);
    const one = await openNode(t, [server]);
    const away = await openNode(t, [gate]);
    await one.broker.append([draft('1')]);
    await untilFollowed(away, 1);
    gate.cut();
    await one.broker.append([draft('2'), draft('3')]);
    const { manager } = await managerOf(t, server);
    await manager.streams.purge('TEST');
    await gate.restore();
    await until(() => away.broker.state?.isConnected && away.broker.state.lagMs === 0, 'it is up to date');
    assert.deepEqual([away.resets, away.broker.first, away.broker.last], [1, 4, 3]);
    await until(() => one.broker.first === 4, 'the other node knows what was purged');
    assert.deepEqual([one.resets, one.broker.last], [0, 3]);
  });

  test(`NATS ${version}: a stream that somebody made without direct reads is read all the same`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const { manager } = await managerOf(t, server);
    await manager.streams.add({ name: 'TEST', subjects: ['holdfast.TEST.p.*', 'holdfast.TEST.c.*'] });
    const one = await openNode(t, [server]);
    await one.broker.append(['1', '2', '3'].map((text) => draft(text)));
    const small = await openNode(t, [server], { historyCount: 1 });
    assert.deepEqual(dataOf(await small.broker.read(0, 10)), ['1', '2']);
    await server.stop('SIGKILL');
    await server.start();
    await until(() => one.broker.state?.isConnected && one.broker.state.lagMs === 0, 'it follows again');
    assert.equal(one.resets, 0);
  });

  test(`NATS ${version}: if an administrator deletes its consumer, a node makes another one`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const node = await openNode(t, [server]);
    const { manager } = await managerOf(t, server);
    for await (const { name } of manager.consumers.list('TEST')) await manager.consumers.delete('TEST', name);
    const beganMs = performance.now();
    assert.deepEqual(await node.broker.append([draft('a')]), [{ sequence: 1, isNew: true }]);
    assert.ok(performance.now() - beganMs < 1500, 'it is answered although this node does not have it yet');
    await untilFollowed(node, 1);
    assert.equal(node.resets, 0);
  });

  test(`NATS ${version}: publications that another stream would get are refused`, { skip }, async (t) => {
    const server = await startNats(t, { path });
    const one = await openNode(t, [server]);
    await one.broker.append([draft('1')]);
    const { manager } = await managerOf(t, server);
    await manager.streams.update('TEST', { subjects: ['elsewhere'] });
    await manager.streams.add({ name: 'OTHER', subjects: ['holdfast.TEST.p.*', 'holdfast.TEST.c.*'] });
    await assert.rejects(one.broker.append([draft('2')]), {
      code: 'STORE',
      message: 'the stream OTHER in NATS has taken over the subjects of this hub',
    });
  });

  test(`NATS ${version}: what is too large is refused before anything of the call is sent`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path, more: 'max_payload: 10000' });
    const one = await openNode(t, [server]);
    const large = draft('x'.repeat(10_000));
    await assert.rejects(one.broker.append([draft('1'), large, draft('2')]), { code: 'TOO_LARGE' });
    assert.equal(one.broker.last, 0);
    const { manager } = await managerOf(t, server);
    await manager.streams.update('TEST', { max_msg_size: 1000 });
    await assert.rejects(one.broker.append([draft('x'.repeat(2000))]), { code: 'TOO_LARGE' });
    assert.deepEqual(await one.broker.append([draft('3')]), [{ sequence: 1, isNew: true }]);
  });
}

const [OLD, CURRENT] = BINARIES;

test("what other programs write is nobody's if it can't be written into an event stream", {
  skip: CURRENT.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: CURRENT.path });
  const one = await openNode(t, [server]);
  const { nc } = await managerOf(t, server);
  const bad = [
    { type: 'a\nid: b' },
    { type: '' },
    { id: 'a\rb' },
    { id: '' },
    { id: '#abc' },
    { id: ' earliest' },
    { retry: -5 },
    { retry: 0 },
    { retry: 1.5 },
    { retry: 2 ** 40 },
    { data: '\ud800' },
    { topics: ['a', '\ud800'] },
    { topics: Array.from({ length: 10_001 }, () => 'a') },
  ];
  for (const more of bad) await nc.request(SUBJECT, JSON.stringify({ topics: ['a'], data: '', ...more }));
  await untilFollowed(one, bad.length);
  assert.deepEqual(
    one.followed.map(({ topics }) => topics),
    bad.map(() => []),
  );
});

test('a retry is one publication, even if NATS has forgotten its id before this node has seen it', {
  skip: CURRENT.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: CURRENT.path });
  const { manager } = await managerOf(t, server);
  await manager.streams.add({
    name: 'TEST',
    subjects: ['holdfast.TEST.p.*', 'holdfast.TEST.c.*'],
    duplicate_window: 1000 * NS,
    allow_direct: true,
  });
  const gate = await startGate(t, server.port);
  const away = await openNode(t, [gate]);
  const other = await openNode(t, [server]);
  gate.cut();
  await until(() => !away.broker.state?.isConnected, 'it is cut off');
  assert.deepEqual(await other.broker.append([draft('a', { id: 'urn:a' })]), [{ sequence: 1, isNew: true }]);
  await after(2000);
  const again = away.broker.append([draft('a', { id: 'urn:a' })]);
  await after(100);
  await gate.restore();
  assert.deepEqual(await again, [{ sequence: 1, isNew: false }]);
  assert.equal(other.broker.last, 1);
});

test('publishers who are refused during an outage leave nothing behind', {
  skip: OLD.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: OLD.path });
  const { broker } = await openNode(t, [server]);
  await server.stop('SIGKILL');
  const drafts = Array.from({ length: 300 }, (_, i) => draft(String(i)));
  const outcomes = await Promise.allSettled(drafts.map((one) => broker.append([one])));
  assert.ok(outcomes.every(({ status }) => status === 'rejected'));
  const { link } = /** @type {import('../broker/nats.js').NatsBroker} */ (broker);
  assert.ok(link.waiting.size <= 1, `${link.waiting.size}`); // the follower
});

for (const { version, path, problem } of BINARIES)
  test(`NATS ${version}: a node that starts before the cluster is complete waits for it`, {
    skip: problem || false,
  }, async (t) => {
    const servers = await startCluster(t, { path });
    await servers[2].stop('SIGKILL');
    const opening = openNode(t, servers, { replicas: 3 });
    const isOpen = await Promise.race([opening.then(() => true), after(3000, false)]);
    assert.equal(isOpen, false);
    await servers[2].start();
    assert.deepEqual(await (await opening).broker.append([draft('a')]), [{ sequence: 1, isNew: true }]);
  });

test('a write that fails while the connection is given up does not end the process', {
  skip: CURRENT.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: CURRENT.path });
  const script = `
    import { Link } from './broker/nats/link.js';
    const signal = new AbortController().signal;
    const link = await Link.open({ servers: ['${server.url}'] }, { onNote: () => {}, signal });
    const { transport } = link.nc.protocol;
    transport.socket.end();
    transport.send(Buffer.from('PING'));
    transport.discard();
    await link.close();
  `;
  const { exit, output } = run(t, process.execPath, ['--input-type=module', '--eval', script]);
  assert.deepEqual([(await exit).code, output.stderr], [0, '']);
});
