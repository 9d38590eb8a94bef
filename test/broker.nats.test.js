/*
 * The nats broker against real servers: what several nodes agree on, and what they do when something breaks.
 */
import assert from 'node:assert/strict';
import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { NatsServer, natsBinaries, startCluster, startNats } from './helpers/nats.js';
import { dataOf, draft, managerOf, openNode, untilFollowed } from './helpers/natsnode.js';
import { quietPort } from './helpers/port.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const BINARIES = await natsBinaries();
const [OLD, CURRENT] = BINARIES;

for (const { version, path, problem } of BINARIES) {
  const skip = problem || false;

  test(`NATS ${version}: a node that is behind finds an id that it is about to hear of`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const [one, other] = [await openNode(t, [server]), await openNode(t, [server])];
    const { copy } = /** @type {any} */ (other.broker);
    const append = copy.append.bind(copy);
    copy.append = async (/** @type {unknown} */ drafts) => {
      await after(200);
      return append(drafts);
    };
    await one.broker.append([draft('a', { id: 'urn:a' }), draft('b', { id: 'urn:b' })]);
    assert.equal(other.broker.last, 0, 'it is behind');
    const found = ['urn:b', 'urn:a', 'urn:c'].map((id) => other.broker.find(id));
    assert.deepEqual(await Promise.all(found), [2, 1, undefined]);
  });

  test(`NATS ${version}: nodes share one order, and cursors of one mean the same on the other`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const [one, other] = [await openNode(t, [server]), await openNode(t, [server])];
    assert.deepEqual([one.broker.epoch, one.broker.key], [other.broker.epoch, other.broker.key]);
    assert.deepEqual([one.broker.first, one.broker.last], [1, 0]);
    const texts = Array.from({ length: 50 }, (_, i) => String(i));
    await Promise.all(texts.map((text, i) => (i % 2 ? one : other).broker.append([draft(text)])));
    await untilFollowed(one, 50);
    await untilFollowed(other, 50);
    assert.deepEqual(
      one.followed.map(({ sequence, data }) => [sequence, data]),
      other.followed.map(({ sequence, data }) => [sequence, data]),
    );
    assert.deepEqual(
      one.followed.map(({ sequence }) => sequence),
      texts.map((_, i) => i + 1),
    );
    assert.deepEqual(new Set(dataOf(one.followed)), new Set(texts));
    const late = await openNode(t, [server]);
    assert.deepEqual(dataOf(await late.broker.read(0, 100)), dataOf(one.followed));
  });

  test(`NATS ${version}: a publication that is sent again, to another node too, is stored once`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const [one, other] = [await openNode(t, [server]), await openNode(t, [server])];
    const first = await one.broker.append([draft('a', { id: 'urn:1' })]);
    const again = await Promise.all([
      other.broker.append([draft('a', { id: 'urn:1' })]),
      one.broker.append([draft('a', { id: 'urn:1' })]),
    ]);
    assert.deepEqual(first, [{ sequence: 1, isNew: true }]);
    assert.deepEqual(again.flat(), [
      { sequence: 1, isNew: false },
      { sequence: 1, isNew: false },
    ]);
    await one.broker.append([draft('end', { key: 'k' })]);
    await other.broker.append([draft('end', { key: 'k' })]);
    await untilFollowed(other, 2);
    assert.deepEqual(dataOf(other.followed), ['a', 'end']);
    assert.equal(await other.broker.find('urn:1'), 1);
  });

  test(`NATS ${version}: topics may contain what subjects can't`, { skip }, async (t) => {
    const server = await startNats(t, { path });
    const node = await openNode(t, [server]);
    const topics = [
      'with a space',
      'dots.in.it',
      '*',
      '>',
      'a.*.>',
      '😀',
      '',
      'x'.repeat(4000),
      'line\r\nbreak',
      '$JS.API',
      '\u0000',
    ];
    for (const topic of topics) await node.broker.append([draft(topic, { topics: [topic, 'other'] })]);
    await untilFollowed(node, topics.length);
    assert.deepEqual(
      node.followed.map((one) => one.topics[0]),
      topics,
    );
    assert.deepEqual(
      (await node.broker.read(0, 100)).map((one) => one.topics),
      topics.map((topic) => [topic, 'other']),
    );
  });

  test(`NATS ${version}: what a node does not have itself is read from the stream`, { skip }, async (t) => {
    const server = await startNats(t, { path });
    const one = await openNode(t, [server]);
    for (let i = 0; i < 30; i++)
      await one.broker.append(Array.from({ length: 10 }, (_, j) => draft(String(10 * i + j + 1))));
    const small = await openNode(t, [server], { historyCount: 20 });
    assert.ok(
      small.notes.some((line) => /--history-count is 20, but the stream has 1000/.test(line)),
      String(small.notes),
    );
    assert.deepEqual([small.broker.first, small.broker.last], [1, 300]);
    /** @type {string[]} */
    const read = [];
    for (let after = 0, page; ; after = page[page.length - 1].sequence) {
      page = await small.broker.read(after, 130);
      if (page.length === 0) break;
      read.push(...dataOf(page));
    }
    assert.deepEqual(
      read,
      Array.from({ length: 300 }, (_, i) => String(i + 1)),
    );
    const { manager } = await managerOf(t, server);
    await manager.streams.deleteMessage('TEST', 100);
    assert.deepEqual(dataOf(await small.broker.read(97, 100)), ['98', '99']);
    const next = dataOf(await small.broker.read(99, 2));
    assert.ok(next.length > 0, 'the next one that is there');
    assert.deepEqual(next, ['101', '102'].slice(0, next.length));
  });

  test(`NATS ${version}: a stream that is purged moves on; one that is created again is another epoch`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const node = await openNode(t, [server]);
    await node.broker.append([draft('a'), draft('b'), draft('c')]);
    const { manager } = await managerOf(t, server);
    await manager.streams.purge('TEST', { keep: 1 });
    await until(() => node.broker.first === 3, 'the node knows what was purged');
    assert.deepEqual(dataOf(await node.broker.read(0, 10)), ['c']);
    const { epoch, key } = node.broker;
    await manager.streams.delete('TEST');
    await until(() => node.resets === 1, 'the node begins anew');
    assert.notDeepEqual([node.broker.epoch, node.broker.key], [epoch, key]);
    assert.deepEqual([node.broker.first, node.broker.last], [1, 0]);
    assert.deepEqual(await node.broker.append([draft('d')]), [{ sequence: 1, isNew: true }]);
    assert.deepEqual(dataOf(node.followed), ['a', 'b', 'c', 'd']);
  });

  test(`NATS ${version}: a node that comes back with its store continues, or begins anew if too much is gone`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const store = temporaryFolder(t);
    const one = await openNode(t, [server]);
    await one.broker.append([draft('1'), draft('2')]);
    const away = await openNode(t, [server], { store });
    await away.broker.close();
    await one.broker.append([draft('3'), draft('4')]);
    const back = await openNode(t, [server], { store });
    assert.deepEqual(dataOf(await back.broker.read(0, 10)), ['1', '2', '3', '4']);
    await back.broker.close();
    await one.broker.append([draft('5'), draft('6')]);
    const { manager } = await managerOf(t, server);
    await manager.streams.purge('TEST', { keep: 1 });
    const late = await openNode(t, [server], { store });
    assert.deepEqual([late.broker.first, late.broker.last, late.broker.epoch], [6, 6, one.broker.epoch]);
    assert.deepEqual(dataOf(await late.broker.read(0, 10)), ['6']);
  });

  test(`NATS ${version}: the last publications of cached topics are there for a new node, however old they are`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const short = { historyCount: 20 };
    const one = await openNode(t, [server], short);
    const of = (/** @type {string} */ data, /** @type {string[]} */ ...topics) => draft(data, { topics });
    const [a, b, c] = ['cached/a', 'cached/b', 'cached/c'];
    for (const each of [of('1', a), of('2', b, 'other', a), of('3', c), of('4', 'other'), of('5', c, c)])
      await one.broker.append([each]);
    const { manager } = await managerOf(t, server);
    const isFilled = async () => (await manager.streams.info('TEST_LAST')).state.messages === 3;
    await until(isFilled, 'JetStream has filled the second stream'); // in its own time
    for (let i = 0; i < 40; i++) await one.broker.append([draft(`x${i}`)]);
    await one.broker.append([of('6', a)]);
    assert.deepEqual(dataOf(await one.broker.latest()), ['2', '5', '6'], String(one.notes));
    const other = await openNode(t, [server], short);
    assert.deepEqual(dataOf(await other.broker.latest()), ['2', '5', '6']);
    assert.ok(other.broker.first > 5);
    await one.broker.append([of('7', b)]);
    await untilFollowed(other, 1);
    assert.deepEqual(dataOf(await other.broker.latest()), ['5', '6', '7']);
    await manager.streams.delete('TEST');
    await until(() => other.resets > 0 && one.resets > 0, 'there is a new epoch');
    assert.deepEqual(await other.broker.latest(), []);
    await other.broker.append([of('8', a)]);
    assert.deepEqual(dataOf(await (await openNode(t, [server], short)).broker.latest()), ['8']);
  });

  test(`NATS ${version}: while it is down publishers are refused, and what was acknowledged is there afterwards`, {
    skip,
  }, async (t) => {
    const server = await startNats(t, { path });
    const [one, other] = [await openNode(t, [server]), await openNode(t, [server])];
    await one.broker.append([draft('before')]);
    await server.stop('SIGKILL');
    await until(() => !one.broker.state?.isConnected, 'the node knows it');
    await assert.rejects(one.broker.append([draft('meanwhile')]), {
      code: 'BUSY',
      message: /nothing was stored/,
    });
    assert.ok((one.broker.state?.lagMs ?? 0) > 0);
    const late = one.broker.append([draft('late')]);
    await server.start();
    assert.deepEqual(await late, [{ sequence: 2, isNew: true }]);
    await untilFollowed(other, 2);
    assert.deepEqual(dataOf(other.followed), ['before', 'late']);
    assert.equal(other.resets, 0);
    await until(() => other.broker.state?.isConnected && other.broker.state.lagMs === 0, 'it is up to date');
  });

  test(`NATS ${version}: a leader that dies under load loses, repeats and reorders nothing`, {
    skip,
  }, async (t) => {
    const servers = await startCluster(t, { path });
    const nodes = [await openNode(t, servers, { replicas: 3 }), await openNode(t, servers, { replicas: 3 })];
    const { manager } = await managerOf(t, servers[0]);
    /** @type {Map<string, number>} sequences of what was acknowledged */
    const acked = new Map();
    let isOver = false;
    const publishers = nodes.flatMap(({ broker }, n) =>
      [0, 1, 2].map(async (k) => {
        for (let i = 0; !isOver; i++) {
          const data = `${n} ${k} ${i}`;
          for (let isStored = false; !isStored; ) {
            try {
              const [receipt] = await broker.append([draft(data, { id: `urn:${data}` })]);
              acked.set(data, receipt.sequence);
              isStored = true;
            } catch (error) {
              assert.equal(/** @type {{ code?: string }} */ (error).code, 'BUSY');
            }
          }
        }
      }),
    );
    await until(() => acked.size > 300, 'they publish');
    const leader = (await manager.streams.info('TEST')).cluster?.leader;
    const dead = servers.find(({ name }) => name === leader);
    assert.ok(dead);
    await dead.stop('SIGKILL');
    const before = acked.size;
    await until(() => acked.size > before + 300, 'they publish with another leader');
    await dead.start();
    const between = acked.size;
    await until(() => acked.size > between + 300, 'they publish with all servers');
    isOver = true;
    await Promise.all(publishers);
    for (const node of nodes) await until(() => node.followed.length >= acked.size, 'everything is there');
    for (const { followed, resets } of nodes) {
      assert.equal(resets, 0);
      assert.equal(followed.length, acked.size);
      assert.deepEqual(
        followed.map(({ sequence }) => sequence),
        followed.map((_, i) => i + 1),
      );
      for (const { data, sequence } of followed) assert.equal(acked.get(data), sequence);
    }
    assert.deepEqual(dataOf(nodes[0].followed), dataOf(nodes[1].followed));
  });

  test(`NATS ${version}: if it forgets what it has acknowledged, all nodes begin a new epoch`, {
    skip,
  }, async (t) => {
    const folder = temporaryFolder(t);
    const port = await quietPort();
    const server = await new NatsServer(t, { path, name: 'n1', port, folder }).start();
    const [one, other] = [await openNode(t, [server]), await openNode(t, [server])];
    await one.broker.append([draft('1'), draft('2')]);
    await server.stop();
    cpSync(join(folder, 'n1'), join(folder, 'backup'), { recursive: true });
    await server.start();
    await one.broker.append([draft('3'), draft('4')]);
    await untilFollowed(other, 4);
    const { epoch } = one.broker;
    await server.stop('SIGKILL');
    rmSync(join(folder, 'n1'), { recursive: true });
    cpSync(join(folder, 'backup'), join(folder, 'n1'), { recursive: true });
    await server.start();
    await until(
      () =>
        one.resets > 0 &&
        other.resets > 0 &&
        one.broker.epoch === other.broker.epoch &&
        one.broker.state?.isConnected &&
        other.broker.state?.isConnected,
      'both have begun anew',
    );
    assert.notEqual(one.broker.epoch, epoch);
    assert.deepEqual(dataOf(await one.broker.read(0, 10)), ['1', '2']);
    assert.deepEqual(await other.broker.append([draft('5')]), [{ sequence: 3, isNew: true }]);
  });
}

test("messages of others in the stream are nobody's, and the order goes on", {
  skip: CURRENT.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: CURRENT.path });
  const node = await openNode(t, [server]);
  const { nc } = await managerOf(t, server);
  const subject = 'holdfast.TEST.p.other';
  for (const text of ['', 'no JSON', '[]', 'null', '{"topics":"news","data":""}', '{"topics":[],"data":""}'])
    await nc.request(subject, text);
  await node.broker.append([draft('ours')]);
  await untilFollowed(node, 7);
  assert.deepEqual(
    node.followed.map(({ topics, sequence }) => [sequence, topics.length]),
    [1, 2, 3, 4, 5, 6].map((i) => [i, 0]).concat([[7, 1]]),
  );
});

test('a publication that is larger than NATS takes is refused at once', {
  skip: OLD.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: OLD.path, more: 'max_payload: 10000' });
  const node = await openNode(t, [server]);
  await assert.rejects(node.broker.append([draft('x'.repeat(10_000))]), {
    code: 'TOO_LARGE',
    message: /at most 9488/,
  });
});

test("a stream that can't be used is an error that says why", {
  skip: CURRENT.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: CURRENT.path });
  const { manager } = await managerOf(t, server);
  const configs = /** @type {const} */ ([
    [
      { subjects: ['other.>'] },
      /has the subjects other\.>: holdfast\.S0\.p\.\* and holdfast\.S0\.c\.\* must be among them/,
    ],
    [{ retention: 'interest' }, /has the retention 'interest': it must be 'limits'/],
    [{ discard: 'new' }, /discards 'new': it must be 'old'/],
    [{ max_msgs_per_subject: 1 }, /max_msgs_per_subject, which leaves gaps/],
    [{ no_ack: true }, /does not acknowledge/],
  ]);
  for (const [i, [config, message]] of configs.entries()) {
    const stream = `S${i}`;
    await manager.streams.add(
      /** @type {any} */ ({
        name: stream,
        subjects: [`holdfast.${stream}.p.*`, `holdfast.${stream}.c.*`],
        ...config,
      }),
    );
    await assert.rejects(openNode(t, [server], { stream }), { code: 'NATS', message });
  }
});

test('a server of NATS that refuses the password is an error; one that is not there is waited for', {
  skip: OLD.problem || false,
}, async (t) => {
  const server = await startNats(t, { path: OLD.path, more: 'authorization { user: ann, password: "p w" }' });
  await assert.rejects(openNode(t, [server]), {
    code: 'NATS',
    message: /^NATS at 127\.0\.0\.1:\d+ can't be used: .*[Aa]uthorization/,
  });
  await server.stop();
  const withPassword = { url: server.url.replace('//', '//ann:p%20w@') };
  const opening = openNode(t, [/** @type {NatsServer} */ (withPassword)]);
  await new Promise((resolve) => setTimeout(resolve, 100));
  await server.start();
  const { broker } = await opening;
  assert.deepEqual(await broker.append([draft('a')]), [{ sequence: 1, isNew: true }]);
});
