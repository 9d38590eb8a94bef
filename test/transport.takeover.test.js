/*
 * Processes that take over each other's streams: Hold.takeOver and hold.handOver.
 */
import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { describe, test } from 'node:test';
import { Hold } from 'holdfast';
import { withCode } from './helpers/codes.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { newPath, openStream, startReady } from './helpers/takeover.js';
import { until } from './helpers/until.js';

/** @typedef {import('./helpers/takeover.js').Ready} Ready */

/** @param {Ready} program @returns {string[]} the tags of the streams that it took, in order */
const tagsOf = ({ adopted }) => adopted.map(({ tag }) => tag).sort();

/**
 * @param {import('node:test').TestContext} t @param {{ from?: object, to?: object }} options
 * @param {(old: Ready) => Promise<void>} [before] the handover
 */
async function handedOver(t, { from = {}, to = {} }, before = async () => {}) {
  const path = newPath(t);
  const old = await startReady(t, { path, name: 'old', ...from });
  await before(old);
  const next = await startReady(t, { path, name: 'new', port: old.port, ...to });
  const { value: moved } = await old.untilAnswer('moved');
  return { path, old, next, moved };
}

describe('takeOver', NEEDS_NATIVE, () => {
  for (const [from, to] of [
    [1, 1],
    [1, 3],
    [3, 1],
    [2, 3],
  ])
    test(`takes all streams from ${from} shards to ${to}, with connection, channels and tag`, async (t) => {
      /** @type {Awaited<ReturnType<typeof openStream>>[]} */
      const clients = [];
      const { old, next, moved } = await handedOver(
        t,
        { from: { shards: from }, to: { shards: to } },
        async ({ port }) => {
          for (let i = 0; i < 20; i++)
            clients.push(await openStream(t, port, `/${i % 2 ? 'held' : 'adopted'}/tag${i},all,own${i}`));
        },
      );
      assert.equal(moved, 20);
      assert.deepEqual(tagsOf(next), clients.map((_, i) => `tag${i}`).sort());
      for (const { tag, channels } of next.adopted)
        assert.deepEqual(channels.sort(), ['all', `own${tag.slice(3)}`]);
      assert.equal(await next.ask('publish', { channel: 'all', message: 'all;' }), 20);
      for (const i of clients.keys()) await next.ask('publish', { channel: `own${i}`, message: `own${i};` });
      for (const [i, client] of clients.entries()) {
        await client.untilRead(new RegExp(`own${i};`));
        // A stream is pinged at once if the new table has no row left for its phase.
        assert.equal(client.body().replace('ping', ''), `Welcome!all;own${i};`);
        assert.equal(client.closed, false);
      }
      const [before, after] = [await old.ask('state'), await next.ask('state')];
      assert.deepEqual([before.streams, after.streams, after.opened], [0, 20, 0]);
      assert.deepEqual([before.closed, before.problems, after.problems], [[], [], []]);
    });

  test('tells the tag as it was given, and what was subscribed later', async (t) => {
    const { next } = await handedOver(t, {}, async ({ port }) => {
      await openStream(t, port, `/held/${encodeURI('é€😀')},news`);
      await openStream(t, port, '/adopted/,');
    });
    assert.deepEqual(
      next.adopted.map(({ tag, channels }) => [tag, channels]).sort(),
      [
        ['', ['']],
        ['é€😀', ['news']],
      ].sort(),
    );
  });

  test('keeps pings in their rhythm', async (t) => {
    const pings = { pingIntervalMs: 400 };
    /** @type {number[]} */
    const atMs = [];
    await handedOver(t, { from: pings, to: pings }, async ({ port }) => {
      const client = await openStream(t, port, '/held/x,news');
      client.socket.on('data', (data) => {
        if (String(data).includes('ping')) atMs.push(performance.now());
      });
      await until(() => atMs.length > 0, 'a ping of the old process');
    });
    const count = atMs.length;
    await until(() => atMs.length > count + 2, 'pings of the new process');
    const gaps = atMs.slice(1).map((ms, i) => ms - atMs[i]);
    // A ping that both wrote would come too soon, one that neither wrote too late.
    assert.ok(
      gaps.every((ms) => ms > 200 && ms < 780),
      String(gaps),
    );
  });

  test('goes on from process to process', async (t) => {
    const path = newPath(t);
    const first = await startReady(t, { path, name: '0' });
    const client = await openStream(t, first.port, '/held/x,news');
    for (let i = 1; i <= 4; i++) {
      const next = await startReady(t, { path, name: String(i), port: first.port, shards: i });
      await next.ask('publish', { channel: 'news', message: `${i};` });
      assert.deepEqual(tagsOf(next), ['x']);
    }
    await client.untilRead(/4;/);
    // A stream is pinged at once if the new table has no row left for its phase.
    assert.equal(client.body().replaceAll('ping', ''), 'Welcome!1;2;3;4;');
  });

  test('passes on what the old process publishes and ends later, and counts the streams of both', async (t) => {
    const { old, next } = await handedOver(t, {}, async ({ port }) => {
      await openStream(t, port, '/held/x,news,left');
      await openStream(t, port, '/held/y,news');
    });
    assert.equal(await old.ask('publish', { channel: 'news', message: 'later' }), 2);
    await old.ask('end', { channel: 'left' });
    await until(async () => (await next.ask('state')).streams === 1, 'the end of one');
    assert.deepEqual((await next.ask('state')).closed, ['revoked']);
    assert.equal(await old.ask('publish', { channel: 'news', message: 'last' }), 1);
    await next.ask('leave');
    await next.exit;
    assert.equal(
      await until(async () => (await old.ask('publish', { channel: 'news', message: '' })) === 0, '0'),
      true,
    );
  });

  test('ends streams that the new process has no room for, as close does', async (t) => {
    const { next, moved, old } = await handedOver(t, { to: { capacity: 2 } }, async ({ port }) => {
      for (let i = 0; i < 5; i++) await openStream(t, port, `/held/${i},news`);
    });
    assert.deepEqual([moved, next.adopted.length], [2, 2]);
    assert.deepEqual((await old.ask('state')).closed, ['drain', 'drain', 'drain']);
  });

  test('is a new Hold if nobody offers anything', async (t) => {
    const path = newPath(t);
    const hold = await Hold.takeOver(path, { onAdopted: () => assert.fail('nothing to adopt') });
    t.after(() => hold.close());
    assert.equal(hold.counters().streams, 0);
    assert.ok((await hold.listen(0)) > 0);
    await assert.rejects(hold.listen(0), withCode('LISTENING'));
  });

  test('works without listening sockets', async (t) => {
    const { next, moved } = await handedOver(t, { from: { port: null }, to: { port: null } });
    assert.deepEqual([moved, next.adopted], [0, []]);
  });

  test('refuses to listen elsewhere than the process before', async (t) => {
    const path = newPath(t);
    const old = await startReady(t, { path });
    const next = await startReady(t, { path, port: null, offers: false });
    const other = old.port === 65_535 ? 1 : old.port + 1;
    const said = await next.ask('listen', { port: other });
    assert.match(said, /^LISTENING .*has taken over the port \d+ of 127\.0\.0\.1.*not on \d+/);
    assert.equal(await next.ask('listen', { port: old.port }), old.port);
    assert.match(await next.ask('listen', { port: old.port }), /^LISTENING/);
  });

  test('lets requests wait until the new process listens', async (t) => {
    const path = newPath(t);
    const old = await startReady(t, { path });
    const next = await startReady(t, { path, port: null });
    await old.untilAnswer('moved');
    const early = openStream(t, old.port, '/held/x,news');
    await until(async () => (await next.ask('state')).connections === 1, 'the connection');
    for (let i = 0; i < 5; i++) await next.ask('publish', { channel: 'news', message: '' }); // whatever can happen has
    assert.equal((await next.ask('state')).streams, 0);
    await next.ask('listen', { port: old.port });
    await early;
    assert.equal((await next.ask('state')).streams, 1);
  });

  test('offers only to its own user', async (t) => {
    const path = newPath(t);
    await startReady(t, { path });
    assert.equal((statSync(path).mode & 0o777).toString(8), '600');
  });
});
