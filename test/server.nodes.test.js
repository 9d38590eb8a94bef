/*
 * Several servers, and applications with a Hub, on one stream of a real NATS: the list, its events, and revocations are those of all.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { openBroker } from '../broker/index.js';
import { startGate } from './helpers/gate.js';
import { clientsOf, datasOf, legacyToken, PATH, SECRET, startHub } from './helpers/hub.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const LIST = `${PATH}/subscriptions`;
const ALL = { Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}` };
const FORM = { 'Content-Type': 'application/x-www-form-urlencoded' };
const LIMITS = {
  historyCount: 10_000,
  historyAgeMs: 3_600_000,
  historyBytes: 67_108_864,
  maxQueueBytes: 16_777_216,
  isCached: () => false,
};

/** @param {{ events: () => import('./helpers/hub.js').ReadEvent[] }} client @returns {string[]} what presence has told it: '+a', '-a' */
const toldTo = (client) =>
  datasOf(client)
    .map((data) => JSON.parse(data ?? ''))
    .map(({ topic, match, active }) => `${active ? '+' : '-'}${topic ?? match}`);

for (const { version, path, problem } of await natsBinaries()) {
  describe(`servers on NATS ${version}`, { skip: problem || false }, () => {
    /** @param {import('node:test').TestContext} t @param {string} url @param {string[]} args */
    const start = async (t, url, ...args) => {
      const options = ['--workers', '2', '--jwt-secret', SECRET, '--anonymous', '--nats', url];
      const server = await startServer(t, [...options, ...args]);
      const topics = async () => {
        const response = await fetch(`http://127.0.0.1:${server.port}${LIST}`, { headers: ALL });
        const { subscriptions } = /** @type {any} */ (await response.json());
        return subscriptions.map((/** @type {any} */ { topic }) => topic).sort();
      };
      const revoke = async (/** @type {string} */ body) => {
        const url = `http://127.0.0.1:${server.adminPort}/revoke`;
        const response = await fetch(url, { method: 'POST', headers: FORM, body });
        return `${response.status} ${await response.text()}`;
      };
      /** @param {string[]} wanted */
      const untilListed = async (...wanted) => {
        let found = '';
        await until(
          async () => {
            found = (await topics()).join();
            return found === wanted.sort().join();
          },
          () => `${wanted}, not ${found}`,
        );
      };
      return { server, revoke, untilListed, ...clientsOf(t, server.port) };
    };

    test('lists have the streams of all servers; those of one that is killed leave, each with one event', async (t) => {
      const nats = await startNats(t, { path });
      const [a, b] = [
        await start(t, nats.url, '--subscriptions'),
        await start(t, nats.url, '--subscriptions'),
      ];
      const watcher = await a.subscribe('topic=*', ALL);
      for (let i = 0; i < 8; i++) await b.subscribe(`topic=b${i}`);
      await b.subscribe('topic=short').then((client) => client.close());
      const ofB = Array.from({ length: 8 }, (_, i) => `b${i}`);
      for (const one of [a, b]) await one.untilListed('*', ...ofB);
      process.kill(b.server.child.pid ?? 0, 'SIGKILL');
      await a.untilListed('*');
      const events = ['+*', '+short', '-short', ...ofB.flatMap((topic) => [`+${topic}`, `-${topic}`])].sort();
      await until(
        () => toldTo(watcher).sort().join() === events.join(),
        () => `${events}, not ${toldTo(watcher)}`,
      );
      const c = await start(t, nats.url, '--subscriptions', '--drain', '100');
      await c.subscribe('topic=c');
      for (const one of [a, c]) await one.untilListed('*', 'c');
      await c.server.stop();
      await a.untilListed('*');
      await until(() => toldTo(watcher).length === events.length + 2, 'its events');
      assert.deepEqual(toldTo(watcher).slice(-2), ['+c', '-c']);
      await until(() => a.server.output.stderr.includes('has stopped: no other node is left'), 'a goodbye');
    });

    test('a server that can not reach NATS for a while is on the list again when it can, and is told what was revoked', async (t) => {
      const nats = await startNats(t, { path });
      const gate = await startGate(t, nats.port);
      const [a, b] = [
        await start(t, nats.url, '--subscriptions'),
        await start(t, gate.url, '--subscriptions'),
      ];
      const watcher = await a.subscribe('topic=*', ALL);
      const as = { Authorization: `Bearer ${legacyToken({}, { sub: 'ann' })}` };
      const revoked = await b.subscribe('topic=b1', as);
      await b.subscribe('topic=b2');
      for (const one of [a, b]) await one.untilListed('*', 'b1', 'b2');
      await until(() => toldTo(watcher).length === 3, 'they are announced');
      gate.cut();
      await a.untilListed('*');
      assert.match(await a.revoke('subject=ann'), /^202 revoked in 2 workers\n$/);
      await b.subscribe('topic=b3');
      await b.untilListed('*', 'b1', 'b2', 'b3');
      await gate.restore();
      await revoked.untilClosed();
      for (const one of [a, b]) await one.untilListed('*', 'b2', 'b3');
      // Whether b1 was announced again depends on whether it was revoked before.
      const told = () => toldTo(watcher).filter((event) => !event.endsWith('b1'));
      const events = ['+*', '+b2', '+b2', '+b3', '-b2'];
      await until(
        () => told().sort().join() === events.join(),
        () => `${events}, not ${told()}`,
      );
    });

    test('a revocation ends streams on all servers and hubs, and who does not answer is counted', async (t) => {
      const nats = await startNats(t, { path });
      const [a, b] = [await start(t, nats.url), await start(t, nats.url)];
      const broker = await openBroker({
        ...LIMITS,
        store: '',
        syncs: true,
        nats: { servers: [nats.url], stream: 'HOLDFAST', replicas: 1 },
      });
      t.after(() => broker.close());
      const { hub, subscribe } = await startHub(t, 'JS', { broker });
      await until(() => hub.nodes?.count === 3, 'they know each other');
      const as = (/** @type {string} */ sub) => ({ Authorization: `Bearer ${legacyToken({}, { sub })}` });
      const clients = [];
      for (const open of [a.subscribe, b.subscribe, subscribe])
        clients.push(await open('match=x', as('ann')));
      const others = [];
      for (const open of [a.subscribe, b.subscribe, subscribe]) others.push(await open('match=x', as('bob')));
      await until(async () => /of 3 nodes/.test(await a.revoke('subject=ann')), 'all three');
      for (const client of clients) await client.untilClosed();
      for (const client of others) assert.equal(client.closed, false);
      assert.deepEqual(await hub.revoke({ subject: 'bob' }), { nodes: 3, unanswered: 0, isConnected: true });
      for (const client of others) await client.untilClosed();
      const { pid = 0 } = b.server.child;
      process.kill(pid, 'SIGSTOP');
      const answer = await a.revoke('subject=carl');
      process.kill(pid, 'SIGCONT');
      assert.match(answer, /^503 .*: 1 of 3 nodes did not answer/);
    });
  });
}
