/*
 * Several nodes on a real server of NATS: who is alive, who is subscribed to what, and revocations.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Lease } from '../hub/nodes/lease.js';
import { startGate } from './helpers/gate.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { Order, startNode } from './helpers/nodes.js';
import { until } from './helpers/until.js';

/** Only goodbyes and messages count. */
const PATIENT = { beatMs: 100, leaseMs: 600_000 };

/** @param {{ list: () => Promise<any[]> }} one @param {{ list: () => Promise<any[]> }} other */
async function untilSame(one, other) {
  const idsOf = async (/** @type {typeof one} */ node) => (await node.list()).map(({ id }) => id);
  const wanted = (await idsOf(one)).sort().join();
  await until(async () => (await idsOf(other)).sort().join() === wanted, 'the same list');
}

/** @param {Order} order @param {string[]} events in any order */
async function untilTold(order, ...events) {
  const wanted = events.sort().join();
  let told = '';
  await until(
    async () => {
      told = (await order.told()).sort().join();
      return told === wanted;
    },
    () => `announced: ${wanted}, not ${told}`,
  );
}

for (const { version, path, problem } of await natsBinaries()) {
  describe(`nodes on NATS ${version}`, { skip: problem || false }, () => {
    /** @param {import('node:test').TestContext} t */
    const begin = async (t) => {
      const nats = await startNats(t, { path });
      return { nats, order: new Order() };
    };

    test('every node lists the streams of all, with the same ids, and each event is announced once', async (t) => {
      const { nats, order } = await begin(t);
      const [a, b] = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      a.enter(1, 'early');
      await a.untilCount(2);
      b.enter(1, 'b');
      b.enter(2, 'short');
      b.leave(2);
      for (const node of [a, b]) await node.untilListed('early', 'b');
      const late = await startNode(t, nats.url, order);
      for (const node of [a, b, late]) await node.untilListed('early', 'b');
      const idsOf = async (/** @type {typeof a} */ node) => (await node.list()).map(({ id }) => id).sort();
      assert.deepEqual(await idsOf(a), await idsOf(late));
      assert.deepEqual(await idsOf(b), await idsOf(late));
      await untilTold(order, '+early', '+b', '+short', '-short');
      a.presence.retire(a.worker);
      for (const node of [a, b, late]) await node.untilListed('b');
      assert.equal(late.presence.count, 1);
    });

    test('the streams of a node that dies leave, and their end is announced once', async (t) => {
      const { nats, order } = await begin(t);
      const [a, b, dead] = [
        await startNode(t, nats.url, order),
        await startNode(t, nats.url, order),
        await startNode(t, nats.url, order),
      ];
      for (const node of [a, b, dead]) await node.untilCount(3);
      a.enter(1, 'a');
      for (let i = 1; i <= 700; i++) dead.enter(i, `d${i}`);
      const ofDead = Array.from({ length: 700 }, (_, i) => `d${i + 1}`);
      for (const node of [a, b]) await node.untilListed('a', ...ofDead);
      await untilTold(order, '+a', ...ofDead.map((name) => `+${name}`));
      await dead.kill();
      for (const node of [a, b]) {
        await node.untilListed('a');
        await node.untilCount(2);
        assert.match(node.notes.join('\n'), /was not heard any more: 2 nodes are left/);
      }
      await a.presence.flush();
      await b.presence.flush();
      await untilTold(order, '+a', ...ofDead.flatMap((name) => [`+${name}`, `-${name}`]));
    });

    test('a node that stops says goodbye, and leaves at once', async (t) => {
      const { nats, order } = await begin(t);
      const options = { lease: PATIENT };
      const [a, b] = [
        await startNode(t, nats.url, order, options),
        await startNode(t, nats.url, order, options),
      ];
      b.enter(1, 'b');
      await a.untilListed('b');
      await b.bus.close();
      await a.untilListed();
      await untilTold(order, '+b', '-b');
      assert.match(a.notes.join('\n'), /has stopped: no other node is left/);
    });

    test('a node that goes on in another process stays the same node for the others', async (t) => {
      const { nats, order } = await begin(t);
      const [a, b] = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      for (const node of [a, b]) await node.untilCount(2);
      a.enter(1, 'one');
      a.enter(2, 'two');
      b.enter(1, 'b');
      for (const node of [a, b]) await node.untilListed('one', 'two', 'b');
      await b.nodes.revoke([{ subject: 'ann' }]);
      const before = await b.list();
      await a.presence.flush();
      const heritage = {
        identity: a.presence.identity,
        entries: a.presence.export(a.worker, [1, 11, 2, 12], {}),
        before: await a.nodes.handOver(),
      };
      a.presence.retire(a.worker);
      const next = await startNode(t, nats.url, order, { heritage: JSON.parse(JSON.stringify(heritage)) });
      await a.nodes.stop(); // it says nothing
      await a.kill();
      next.enter(1, 'new');
      for (const node of [next, b]) await node.untilListed('one', 'two', 'b', 'new');
      const idsOf = (/** @type {any[]} */ list) =>
        list.filter(({ match }) => match !== 'new').map(({ id }) => id);
      assert.deepEqual(idsOf(await b.list()).sort(), idsOf(before).sort());
      next.leave(11);
      for (const node of [next, b]) await node.untilListed('two', 'b', 'new');
      await untilTold(order, '+one', '+two', '+b', '+new', '-one');
      assert.deepEqual(next.revoked, [], 'it knew the revocation');
      const late = await startNode(t, nats.url, order, { isListed: false });
      await until(() => late.revoked.length === 1, 'the revocation');
      await b.untilCount(3);
      assert.ok(!b.notes.some((line) => / has stopped| was not heard/.test(line)), `${b.notes}`);
      await next.kill();
      await b.untilListed('b');
      await untilTold(order, '+one', '+two', '+b', '+new', '-one', '-two', '-new');
    });

    test('as long as a node is not connected, nobody is dead; what it has missed comes afterwards', async (t) => {
      const { nats, order } = await begin(t);
      const gate = await startGate(t, nats.port);
      const [a, b] = [
        await startNode(t, gate.url, order),
        await startNode(t, nats.url, order, { lease: PATIENT }),
      ];
      a.enter(1, 'a');
      b.enter(1, 'b1');
      b.enter(2, 'b2');
      for (const node of [a, b]) await node.untilListed('a', 'b1', 'b2');
      gate.cut();
      await until(() => a.nodes.lease.isDeaf, 'it does not hear itself');
      b.leave(1);
      b.enter(3, 'b3');
      a.enter(2, 'a2');
      const now = a.nodes.lease.now();
      await until(() => a.nodes.lease.now() > now + 2 * a.nodes.lease.leaseMs, 'two leases have passed');
      await a.untilListed('a', 'a2', 'b1', 'b2');
      await gate.restore();
      for (const node of [a, b]) await node.untilListed('a', 'a2', 'b2', 'b3');
      await untilTold(order, '+a', '+b1', '+b2', '-b1', '+b3', '+a2');
    });

    test('a node that was away for too long announces its streams again, and all agree', async (t) => {
      const { nats, order } = await begin(t);
      const gate = await startGate(t, nats.port);
      const away = await startNode(t, gate.url, order);
      const others = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      for (const node of [away, ...others]) await node.untilCount(3);
      away.enter(1, 'x');
      away.enter(2, 'y');
      others[0].enter(1, 'o');
      for (const node of [away, ...others]) await node.untilListed('x', 'y', 'o');
      await untilTold(order, '+x', '+y', '+o');
      gate.silence();
      for (const node of others) await node.untilListed('o');
      await until(() => away.nodes.lease.isDeaf, 'it does not hear itself');
      await untilTold(order, '+x', '+y', '+o', '-x', '-y');
      gate.cut(); // so that the order refuses what comes now
      await until(() => !away.link.isConnected, 'it notices');
      away.leave(2);
      away.enter(3, 'z');
      away.enter(4, 'short');
      away.leave(4);
      await away.untilListed('x', 'z', 'o');
      gate.resume();
      await gate.restore();
      for (const node of [away, ...others]) {
        await node.untilListed('x', 'z', 'o');
        await node.untilCount(3);
      }
      await untilTold(order, '+x', '+y', '+o', '-x', '-y', '+x', '+z', '+short', '-short');
      assert.equal(away.nodes.life, 2);
      away.leave(1);
      for (const node of others) await node.untilListed('z', 'o');
      await away.kill();
      for (const node of others) await node.untilListed('o');
      const began = ['+x', '+y', '+o', '+x', '+z', '+short'];
      await untilTold(order, ...began, '-x', '-y', '-short', '-x', '-z');
    });

    test('when NATS is gone for a while, nobody is declared dead', async (t) => {
      const { nats, order } = await begin(t);
      const all = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      for (const [i, node] of all.entries()) node.enter(1, `s${i}`);
      for (const node of all) await node.untilListed('s0', 's1');
      await nats.stop('SIGKILL');
      await until(() => all.every(({ nodes }) => nodes.lease.isDeaf), 'they notice');
      all[0].enter(2, 'new');
      const now = all[0].nodes.lease.now();
      await until(() => all[0].nodes.lease.now() > now + 2000, 'two leases have passed');
      await nats.start();
      for (const node of all) await node.untilListed('s0', 's1', 'new');
      await untilTold(order, '+s0', '+s1', '+new');
    });

    test('messages that are lost are noticed by their numbers', async (t) => {
      const { nats, order } = await begin(t);
      const [a, b] = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      b.enter(1, 'b1');
      await a.untilListed('b1');
      const publish = b.bus.publish.bind(b.bus);
      const lose = (/** @type {string} */ type, /** @type {number} */ count) => {
        b.bus.publish = (name, object) => {
          if (/** @type {any} */ (object).type === type && count-- > 0) return false;
          return publish(name, object);
        };
      };
      lose('change', 1);
      b.enter(2, 'b2');
      await a.untilListed('b1', 'b2'); // a beat has shown it
      lose('change', 1);
      b.leave(1);
      await new Promise(setImmediate);
      b.enter(3, 'b3');
      await a.untilListed('b2', 'b3');
      a.presence.others.forget(b.nodes.id);
      a.nodes.peers.delete(b.nodes.id);
      const request = b.bus.request.bind(b.bus);
      let lost = 0;
      b.bus.request = (name, object, waitMs) =>
        lost++ === 0 ? Promise.reject(new Error('lost')) : request(name, object, waitMs);
      await a.untilListed('b2', 'b3');
      assert.ok(lost > 1);
      assert.deepEqual((await order.told()).sort(), ['+b1', '+b2', '+b3', '-b1']);
    });

    test('a large table and long texts come in parts of less than 256 KB', async (t) => {
      const { nats, order } = await begin(t);
      const a = await startNode(t, nats.url, order, { lease: PATIENT });
      let largest = 0;
      let parts = 0;
      a.link.nc.subscribe('holdfast.TEST.>', {
        callback: (_, { data }) => {
          largest = Math.max(largest, data.length);
          if (Buffer.from(data).includes('"type":"part"')) parts++;
        },
      });
      const long = Array.from({ length: 100 }, (_, i) => `${'ü'.repeat(2000)}${i}`);
      a.enter(1, long.join('\n='));
      for (let i = 2; i <= 20_000; i++) a.enter(i, `https://x.example/${i}`);
      await a.presence.flush();
      const b = await startNode(t, nats.url, order, { lease: PATIENT });
      await until(
        () => b.presence.count === 20_099,
        () => `all of them, not ${b.presence.count}`,
      );
      const other = long.map((one) => `${one}x`);
      a.enter(20_001, other.join('\n='));
      a.leave(1);
      await untilSame(a, b);
      assert.ok(
        parts > 10 && largest > 100_000 && largest <= 262_144,
        `${parts} parts, up to ${largest} bytes`,
      );
    });

    test('streams that change while a table is on its way are listed rightly', async (t) => {
      const { nats, order } = await begin(t);
      const a = await startNode(t, nats.url, order, { lease: PATIENT });
      for (let i = 0; i < 10_000; i++) a.enter(i, `${i}`);
      const b = await startNode(t, nats.url, order, { lease: PATIENT });
      await until(() => b.presence.count > 0, 'it begins');
      for (let i = 0; i < 10_000; i += 2) {
        a.leave(i);
        a.enter(20_000 + i, 'more');
        if (i % 500 === 0) await new Promise(setImmediate);
      }
      await untilSame(a, b);
      assert.equal(b.presence.count, 10_000);
    });

    test('a table that does not fit is cut, which is noted once', async (t) => {
      const { nats, order } = await begin(t);
      const a = await startNode(t, nats.url, order);
      for (let i = 0; i < 1000; i++) a.enter(i, `${i}`);
      const b = await startNode(t, nats.url, order, { mostBytes: 50_000 });
      await until(() => b.presence.isFull, 'it is full');
      await until(() => [...b.nodes.peers.values()].every(({ state }) => state === 'whole'), 'the end');
      assert.ok(b.presence.bytes < 51_000 && b.presence.count > 300, `${b.presence.bytes} bytes`);
      assert.equal(b.notes.filter((line) => line.includes('raise --max-presence')).length, 1);
      a.presence.retire(a.worker);
      await until(() => b.presence.bytes === 0 && !b.presence.isFull, 'there is room again');
    });

    test('whatever is on the bus, nodes go on, and note it once', async (t) => {
      const { nats, order } = await begin(t);
      const [a, b] = [await startNode(t, nats.url, order), await startNode(t, nats.url, order)];
      await a.untilCount(2);
      const from = 'x'.repeat(22);
      const sender = { from, life: 1 };
      const rows = [1, 'x', [], [1], [1, 1, 1], [-1, 1, '8=a'], [1, 1.5, '8=a'], [1, 1, '8=a', 2]];
      const part = { type: 'part', ...sender, ask: 1, index: 0, number: 0, key: `${'A'.repeat(22)}==` };
      const stray = [
        '',
        '{',
        'null',
        '7',
        '[]',
        '{}',
        '\xff\xfe',
        JSON.stringify('x'.repeat(1_000_000)),
        ...['constructor', '__proto__', 'beat', 'change', 'part', 'revoke'].map((type) =>
          JSON.stringify({ type }),
        ),
        JSON.stringify({ type: 'beat', from: '../x', life: 1, number: 0, listed: true }),
        JSON.stringify({ type: 'beat', ...sender, number: -1, listed: true }),
        JSON.stringify({ type: 'beat', ...sender, life: '1', number: 0, listed: true }),
        ...rows.map((row) =>
          JSON.stringify({ type: 'change', ...sender, number: 1, entered: [row], left: [], retired: [] }),
        ),
        JSON.stringify({ ...part, key: 'short', rows: [], isLast: true }),
        JSON.stringify({ ...part, rows: {}, isLast: true }),
        JSON.stringify({ type: 'revoke', ...sender, id: from, list: [7] }),
        JSON.stringify({ type: 'revoke', ...sender, id: from, list: [{ topic: { toString: 1 } }] }),
        JSON.stringify({ type: 'late', ...sender, of: 99 }),
        JSON.stringify({ type: 'departed', ...sender, nodes: [[a.nodes.id, 99]] }),
        JSON.stringify({ type: 'want', ...sender, ids: Array.from({ length: 2000 }, () => from) }),
        JSON.stringify({ type: 'bye', ...sender }),
      ];
      const { nc } = b.link;
      for (const text of stray)
        for (const name of ['nodes', `to.${a.nodes.id}`]) nc.publish(`holdfast.TEST.${name}`, text);
      // A node that exists, and whose streams are nonsense.
      nc.subscribe(`holdfast.TEST.to.${from}`, {
        callback: (_, message) => {
          const { type, ask } = message.json();
          if (type !== 'ask') return;
          const texts = ['', '8', 'x=a', '8?a', '8=a\tno json', '8=\ud800', '8=a\n', '8=right'];
          const all = texts.map((text, i) => [1, i, text]);
          nc.publish(
            `holdfast.TEST.to.${a.nodes.id}`,
            JSON.stringify({ ...part, ask, rows: all, isLast: true }),
          );
        },
      });
      const beat = JSON.stringify({ type: 'beat', ...sender, number: 0, listed: true });
      nc.publish('holdfast.TEST.nodes', beat);
      await a.untilListed('right');
      a.enter(1, 'a');
      await until(async () => {
        nc.publish('holdfast.TEST.nodes', beat);
        return (await b.list()).some(({ match }) => match === 'a');
      }, 'others go on');
      const ignored = a.notes.filter((line) => line.includes('was ignored'));
      assert.equal(ignored.length, 1, a.notes.join('\n'));
      assert.equal(a.notes.filter((line) => line.includes('text is wrong')).length, 1);
    });

    test('a revocation reaches all nodes; who was away is told afterwards, once', async (t) => {
      const { nats, order } = await begin(t);
      const gate = await startGate(t, nats.port);
      const a = await startNode(t, nats.url, order, { isListed: false, lease: PATIENT });
      const b = await startNode(t, nats.url, order, { lease: PATIENT });
      const away = await startNode(t, gate.url, order, { lease: { beatMs: 100, leaseMs: 600_000 } });
      for (const node of [a, b, away]) await node.untilCount(3);
      const all = { nodes: 3, silent: 0, workers: 3, unanswered: 0, isConnected: true };
      assert.deepEqual(await a.nodes.revoke([{ subject: 'ann' }]), all);
      for (const node of [a, b, away]) assert.deepEqual(node.revoked, [{ subject: 'ann' }]);
      gate.cut();
      await until(() => !away.link.isConnected, 'it notices');
      assert.deepEqual(await a.nodes.revoke([{ token: 't1' }]), { ...all, silent: 1, workers: 2 });
      const there = await away.nodes.revoke([{ topic: 'x' }]);
      assert.deepEqual(there, { ...all, silent: 2, workers: 1, isConnected: false });
      await gate.restore();
      for (const node of [a, b, away])
        await until(
          () => node.revoked.length === 3,
          () => `all, not ${JSON.stringify(node.revoked)}`,
        );
      assert.deepEqual(await a.nodes.revoke([{ subject: 'bob' }]), all);
      for (const node of [a, b, away]) assert.equal(node.revoked.length, 4);
      const many = Array.from({ length: 10_000 }, (_, i) => ({ subject: `${'x'.repeat(50)}${i}` }));
      assert.deepEqual(await b.nodes.revoke(many), all);
      for (const node of [a, b, away]) assert.equal(node.revoked.length, 10_004);
    });
  });
}

/** A lease with a clock that tests move. */
function leaseAlone() {
  /** @type {string[]} */
  const events = [];
  const clock = { ms: 0 };
  const lease = new Lease(
    {
      beat: () => {},
      look: () => {},
      away: () => void events.push('away'),
      back: () => void events.push('back'),
      gone: (id) => void events.push(`gone ${id}`),
    },
    { beatMs: 1000, leaseMs: 4000, now: () => clock.ms },
  );
  /** @param {number} ms @param {() => void} [each] what happens each second */
  const pass = (ms, each = () => {}) => {
    for (const endMs = clock.ms + ms; clock.ms < endMs; ) {
      clock.ms += 250;
      if (clock.ms % 1000 === 0) each();
      lease.look();
    }
  };
  return { lease, events, clock, pass };
}

test('who is silent for four seconds is gone within five', () => {
  const { lease, events, pass } = leaseAlone();
  lease.heardSelf();
  lease.heard('x');
  pass(10_000, () => {
    lease.heardSelf();
    lease.heard('x');
  });
  assert.deepEqual(events, ['back']);
  pass(4000, () => lease.heardSelf());
  assert.deepEqual(events, ['back']);
  pass(500, () => lease.heardSelf());
  assert.deepEqual(events, ['back', 'gone x']);
});

test('as long as a node does not hear itself nobody is gone, and then everybody has a new lease', () => {
  const { lease, events, pass } = leaseAlone();
  lease.heardSelf();
  lease.heard('x');
  pass(60_000);
  assert.deepEqual(events, ['back', 'away']);
  lease.heardSelf();
  pass(4000, () => lease.heardSelf());
  assert.deepEqual(events, ['back', 'away', 'back']);
  pass(500, () => lease.heardSelf());
  assert.deepEqual(events, ['back', 'away', 'back', 'gone x']);
});

test('a node that was suspended does not take the others for dead', () => {
  const { lease, events, clock, pass } = leaseAlone();
  lease.heardSelf();
  lease.heard('x');
  clock.ms += 60_000;
  lease.look();
  lease.heardSelf();
  pass(3750, () => lease.heardSelf());
  assert.deepEqual(events, ['back', 'away', 'back']);
});
