/*
 * Nothing is lost and nothing comes twice: random publishers, clients that are forced to reconnect, and workers that are killed.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clientsOf, datasOf, PATH, PUBLISHER, SECRET } from './helpers/hub.js';
import { randomNumbers } from './helpers/random.js';
import { startServer, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const TOTAL = 10_000;
const RECONNECTS = 100;
const TOPICS = [
  ['a'],
  ['b'],
  ['a', 'b'],
  ['https://x.example/1'],
  ['https://x.example/2', 'a'],
  ['nobody/wants/this'],
];
const QUERIES = [
  { query: 'match=a', wants: ['a'] },
  { query: 'match=a&match=b', wants: ['a', 'b'] },
  { query: 'topic=https://x.example/{id}', wants: ['https://x.example/1', 'https://x.example/2'] },
  {
    query: 'match_urlpattern=https://x.example/:id&match=b',
    wants: ['b', 'https://x.example/1', 'https://x.example/2'],
  },
  { query: 'match=*', wants: TOPICS.flat() },
];

/**
 * A client that comes back with its cursor whenever its stream ends.
 * @param {ReturnType<typeof clientsOf>['subscribe']} subscribe @param {string} query
 */
async function reader(subscribe, query) {
  /** @type {(string | undefined)[]} */
  const before = [];
  let client = await subscribe(query);
  let isStopped = false;
  const comeBack = async () => {
    while (!isStopped) {
      await until(() => isStopped || client.closed, 'the stream ends', 600_000);
      if (isStopped) return;
      const cursor = client.events().at(-1)?.id ?? '';
      before.push(...datasOf(client));
      for (let isOpen = false; !isOpen && !isStopped; ) {
        const next = await subscribe(query, { 'Last-Event-ID': cursor }).catch(() => null);
        isOpen = next?.head().status === 200;
        if (next && isOpen) client = next;
      }
      assert.equal(client.head().headers['mercure-last-event-id'], cursor);
    }
  };
  const running = comeBack();
  return {
    got: () => [...before, ...datasOf(client)],
    reconnect: () => client.close(),
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

/** @param {number} port @param {{ topics: string[], data: string, id?: string }[]} list */
async function publishAll(port, list) {
  const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${PUBLISHER}` };
  for (let attempt = 0; attempt < 100; attempt++) {
    const body = JSON.stringify(list);
    const response = await fetch(`http://localhost:${port}${PATH}`, { method: 'POST', headers, body }).catch(
      () => null,
    );
    if (response?.status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 50)); // the same ids again: whatever was stored is not stored twice
  }
  assert.fail('nobody takes publications');
}

for (const transport of TRANSPORTS) {
  for (const store of [false, true]) {
    test(`${TOTAL} publications and ${RECONNECTS} forced reconnects, ${transport} transport, ${store ? 'disk' : 'memory'} broker`, async (t) => {
      const draw = randomNumbers(store ? 1 : 2);
      const folder = store ? ['--store', temporaryFolder(t)] : [];
      const limits = ['--history-count', '100000', '--ping-interval', '50'];
      const args = ['--workers', '2', '--transport', transport, '--jwt-secret', SECRET, ...limits, ...folder];
      const server = await startServer(t, args);
      const { subscribe } = clientsOf(t, server.port);
      const readers = await Promise.all(
        [...QUERIES, ...QUERIES].map(({ query }) => reader(subscribe, query)),
      );
      /** @type {string[][]} */
      const log = [];
      let reconnects = 0;
      while (log.length < TOTAL) {
        const list = Array.from({ length: 1 + draw(120) }, (_, i) => {
          const topics = TOPICS[draw(TOPICS.length)];
          return { topics, data: String(log.length + i), id: `urn:${log.length + i}` };
        });
        log.push(...list.map(({ topics }) => topics));
        await publishAll(server.port, list);
        for (; reconnects < (RECONNECTS * log.length) / TOTAL; reconnects++)
          readers[draw(readers.length)].reconnect();
        if (log.length > TOTAL / 2 && log.length - list.length <= TOTAL / 2)
          process.kill(server.workerPids[0], 'SIGKILL');
      }
      await publishAll(server.port, [{ topics: TOPICS.flat(), data: 'end', id: 'urn:end' }]);
      for (const { got } of readers) await until(() => got().at(-1) === 'end', 'the end');
      await Promise.all(readers.map(({ stop }) => stop()));
      readers.forEach(({ got }, i) => {
        const { query, wants } = QUERIES[i % QUERIES.length];
        const due = log.flatMap((topics, n) =>
          topics.some((topic) => wants.includes(topic)) ? [String(n)] : [],
        );
        assert.deepEqual(got(), [...due, 'end'], query);
      });
      assert.ok(reconnects >= RECONNECTS);
    });
  }
}
