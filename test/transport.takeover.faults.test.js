/*
 * Handovers that go wrong: until streams have moved, the old process goes on as if nothing had happened.
 */
import assert from 'node:assert/strict';
import { existsSync, lstatSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { describe, test } from 'node:test';
import { Hold } from 'holdfast';
import { StreamHolder } from '../transport/holder.js';
import { withCode } from './helpers/codes.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { newPath, openStream, startProgram, startReady } from './helpers/takeover.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @param {number} [count] of streams */
async function startOld(t, count = 50) {
  const path = newPath(t);
  const old = await startReady(t, { path, name: 'old', shards: 2 });
  const targets = Array.from({ length: count }, (_, i) => `/held/${i},news`);
  const clients = await Promise.all(targets.map((target) => openStream(t, old.port, target)));
  return { path, old, clients };
}

/** All streams are still there, and can be taken over. @param {TestContext} t @param {Awaited<ReturnType<typeof startOld>>} parts */
async function untilTakenByAnother(t, { path, old, clients }) {
  assert.equal(await old.ask('publish', { channel: 'news', message: 'before;' }), clients.length);
  const fresh = await openStream(t, old.port, '/adopted/fresh,news');
  const next = await startReady(t, { path, name: 'next', port: old.port });
  assert.equal((await old.untilAnswer('moved')).value, clients.length + 1);
  assert.equal(await next.ask('publish', { channel: 'news', message: 'after;' }), clients.length + 1);
  for (const client of [...clients, fresh]) await client.untilRead(/after;/);
  return next;
}

/** @param {string} received */
const withoutPings = (received) => received.replaceAll('ping', '');

/** Somebody who says this, and hears the answer. @param {string} path @param {string} line @returns {Promise<string>} */
function say(path, line) {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(path, () => socket.write(`${line}\n`)).setEncoding('utf8');
    socket.on('data', (data) => {
      heard += data;
    });
    socket.on('close', () => resolve(heard)).on('error', reject);
  });
}

describe('a handover', NEEDS_NATIVE, () => {
  for (const [how, what] of /** @type {const} */ ([
    [{ dieAt: 1 }, 'before it has connected'],
    [{ dieAfter: 1 }, 'after it has connected'],
    [{ dieAt: 2 }, 'before streams move'],
    [{ dieAfter: 2 }, 'while streams move'],
  ]))
    test(`is undone if the new process is killed ${what}`, async (t) => {
      const parts = await startOld(t, 500);
      const { path, old, clients } = parts;
      await old.ask('flood', { channel: 'news', everyMs: 1 });
      const killed = startProgram(t, { path, name: 'killed', port: old.port, ...how });
      assert.deepEqual(await killed.exit, { code: null, signal: 'SIGKILL' });
      await until(async () => (await old.ask('state')).problems.length > 0, 'the problem');
      const last = await old.ask('stopFlood');
      const expected = Array.from({ length: last }, (_, i) => `old:${i};`).join('');
      await untilTakenByAnother(t, parts);
      for (const client of clients)
        assert.equal(withoutPings(client.body()), `Welcome!${expected}before;after;`);
      const { problems, closed } = await old.ask('state');
      assert.match(problems.join(), /^the streams can't be handed over: [^:]*$/);
      assert.deepEqual(closed, []);
    });

  test('that has moved streams goes on where they are: the old process listens again if they are lost', async (t) => {
    const { path, old, clients } = await startOld(t, 20);
    const killed = startProgram(t, { path, name: 'killed', port: old.port, dieAt: 3 });
    await killed.exit;
    for (const client of clients) await client.untilClosed();
    await until(async () => (await old.ask('state')).problems.length > 0, 'the problem');
    const fresh = await openStream(t, old.port, '/held/fresh,news');
    const next = await startReady(t, { path, name: 'next', port: old.port });
    await next.ask('publish', { channel: 'news', message: 'after;' });
    await fresh.untilRead(/after;/);
  });

  test('is undone if the new process is too slow', async (t) => {
    const parts = await startOld(t);
    const socket = connect(parts.path);
    t.after(() => socket.destroy());
    socket.write('{"type":"takeOver","protocol":1,"shards":1}\n'); // and then nothing
    await until(async () => (await parts.old.ask('state')).problems.length > 0, 'the problem');
    const { problems } = await parts.old.ask('state');
    assert.match(problems[0], /at 'connect', no answer within 5000 ms/);
    await untilTakenByAnother(t, parts);
  });

  test('is refused if the versions differ, or somebody else takes over', async (t) => {
    const parts = await startOld(t, 3);
    const { path } = parts;
    const refused = await say(path, '{"type":"takeOver","protocol":2,"shards":1}');
    assert.match(JSON.parse(refused).problem, /version 1 of the protocol, this one 2/);
    assert.match(await say(path, '{"type":"takeOver","protocol":1,"shards":0}'), /number of shards is 0/);
    for (const line of ['nonsense', '5', 'null', '{"type":"handover"}', '{"type":"done"}'])
      assert.equal(await say(path, line), '');
    const first = connect(path);
    t.after(() => first.destroy());
    first.write('{"type":"takeOver","protocol":1,"shards":1}\n');
    await new Promise((resolve) => first.once('data', resolve));
    assert.match(await say(path, '{"type":"takeOver","protocol":1,"shards":1}'), /already taking over/);
    first.destroy();
    await until(async () => (await parts.old.ask('state')).problems.length > 0, 'the first has left');
    await untilTakenByAnother(t, parts);
  });

  test('rejects takeOver with what the old process says, or that it has ended', async (t) => {
    for (const [answer, message] of /** @type {[string, RegExp][]} */ ([
      ['{"type":"refused","problem":"not today"}\n', /handed over: not today$/],
      ['{"type":"new"}\n', /there is no message 'new'$/],
      ['what?\n', /has ended, or does not answer$/],
      ['', /has ended, or does not answer$/],
    ])) {
      const path = newPath(t);
      const server = createServer((socket) => void socket.once('data', () => socket.end(answer)));
      await new Promise((resolve) => server.listen(path, () => resolve(undefined)));
      t.after(() => server.close());
      await assert.rejects(Hold.takeOver(path), { code: 'HANDOVER', message });
    }
  });
});

describe('an offer', NEEDS_NATIVE, () => {
  test('takes the place of a socket that nobody listens at, and of nothing else', async (t) => {
    const path = newPath(t);
    const killed = await startReady(t, { path });
    process.kill(killed.pid, 'SIGKILL');
    await killed.exit;
    assert.ok(lstatSync(path).isSocket());
    const live = await startReady(t, { path });
    const hold = new Hold();
    t.after(() => hold.close());
    await assert.rejects(hold.handOver(path), withCode('BUSY'));
    await live.ask('withdraw');
    assert.equal((await live.untilAnswer('moved')).problem, 'withdrawn');
    assert.ok(!existsSync(path));
    writeFileSync(path, 'text');
    await assert.rejects(hold.handOver(path), { code: 'HANDOVER', message: /is not a socket/ });
    await assert.rejects(hold.handOver(`${path}/missing`), withCode('HANDOVER'));
  });

  test('can be withdrawn, made again, and ends with the Hold', async (t) => {
    const path = newPath(t);
    const hold = new Hold();
    const abort = new AbortController();
    const first = hold.handOver(path, { signal: abort.signal });
    await assert.rejects(hold.handOver(newPath(t)), withCode('BUSY'));
    await until(() => existsSync(path), 'the socket');
    abort.abort();
    await assert.rejects(first, { name: 'AbortError' });
    assert.ok(!existsSync(path));
    await assert.rejects(hold.handOver(path, { signal: abort.signal }), { name: 'AbortError' });
    const early = new AbortController();
    const third = hold.handOver(path, { signal: early.signal });
    early.abort();
    await assert.rejects(third, { name: 'AbortError' });
    assert.ok(!existsSync(path));
    const second = hold.handOver(path);
    await until(() => existsSync(path), 'the socket');
    await Promise.all([hold.close(), assert.rejects(second, withCode('CLOSED'))]);
    assert.ok(!existsSync(path));
    await assert.rejects(hold.handOver(path), withCode('CLOSED'));
  });

  test('needs valid arguments, and the native core', async (t) => {
    const hold = new Hold();
    const inJs = new StreamHolder({}, null);
    t.after(() => Promise.all([hold.close(), inJs.close()]));
    const path = newPath(t);
    for (const [given, options] of /** @type {any[]} */ ([
      [undefined, {}],
      ['', {}],
      ['a\0b', {}],
      [`/tmp/${'x'.repeat(103)}`, {}],
      [path, { period: 1 }],
      [path, { periodMs: -1 }],
      [path, { signal: {} }],
      [path, null],
    ]))
      await assert.rejects(hold.handOver(given, options), withCode('BAD_ARGUMENT'));
    await assert.rejects(inJs.handOver(path), withCode('NOT_NATIVE'));
    await assert.rejects(Hold.takeOver(''), withCode('BAD_ARGUMENT'));
    await assert.rejects(Hold.takeOver(path, { onAdopted: /** @type {any} */ (5) }), withCode('BAD_OPTION'));
    await assert.rejects(Hold.takeOver(path, /** @type {any} */ ({ shard: 2 })), withCode('BAD_OPTION'));
  });
});
