/*
 * POST /publish: its answers, and what happens to publications while workers hang, die or drain.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { rawClient } from './helpers/client.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

/** @param {Server} server @param {string} body @param {string} [channel] */
async function publish(server, body, channel = 'news') {
  const url = `http://127.0.0.1:${server.adminPort}/publish?channel=${channel}`;
  const response = await fetch(url, { method: 'POST', body });
  const text = await response.text();
  return { status: response.status, retryAfter: response.headers.get('retry-after'), text };
}

/** @param {Server} server @param {string} [channel] */
async function listen(server, channel = 'news') {
  const client = rawClient(server.port, `GET /?channel=${channel} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  await client.untilRead(/Welcome!/);
  return client;
}

/** @param {Server} server @param {number} pid */
const untilReplaced = (server, pid) =>
  until(async () => {
    const { workers } = await server.frame();
    return workers.every((worker) => worker.pid !== pid && worker.state === 'ready');
  }, 'the worker is replaced');

for (const transport of TRANSPORTS) {
  const args = ['--transport', transport, '--ping-interval', '86400000'];

  describe(`/publish with the ${transport} transport`, () => {
    test('is answered with the number of listeners once every worker has delivered', async (t) => {
      const server = await startServer(t, [...args, '--workers', '2']);
      const clients = await Promise.all([listen(server), listen(server), listen(server, 'other')]);
      const { status, text } = await publish(server, 'hello');
      assert.equal(status, 202);
      assert.equal(typeof JSON.parse(text).listeners, 'number');
      for (const client of clients.slice(0, 2)) await client.untilRead(/hello/);
      for (const client of clients) client.close();
    });

    test('refuses what it has no room for, says so, and has room again once the worker delivers', async (t) => {
      const server = await startServer(t, [...args, '--workers', '1', '--max-queue', '131072']);
      const client = await listen(server);
      process.kill(server.workerPids[0], 'SIGSTOP');
      const first = publish(server, 'x'.repeat(65_536));
      await server.untilTotals(({ queueBytes }) => queueBytes > 65_536, 'it is in the queue');
      const refused = await publish(server, 'y'.repeat(65_536), 'other');
      assert.deepEqual([refused.status, refused.retryAfter], [503, '1']);
      assert.match(refused.text, /too many publications: \d+ bytes .* --max-queue is 131072/);
      process.kill(server.workerPids[0], 'SIGCONT');
      assert.equal((await first).status, 202);
      assert.equal((await publish(server, 'after')).status, 202);
      await client.untilRead(/after/);
      await server.untilTotals(({ queueBytes }) => queueBytes === 0, 'the queue is empty');
      client.close();
    });

    test('is answered although a worker hangs, and says that it has not delivered', async (t) => {
      const server = await startServer(t, [...args, '--workers', '2']);
      process.kill(server.workerPids[0], 'SIGSTOP');
      const { status, text } = await publish(server, 'hello');
      assert.deepEqual([status, JSON.parse(text).unanswered], [202, 1]);
      process.kill(server.workerPids[0], 'SIGCONT');
      await server.untilTotals(({ queueBytes }) => queueBytes === 0, 'it delivers later');
    });

    test('counts a worker that dies in the meantime as one that has answered', async (t) => {
      const server = await startServer(t, [...args, '--workers', '2']);
      const [victim] = server.workerPids;
      process.kill(victim, 'SIGSTOP');
      const outcomes = Array.from({ length: 40 }, () => publish(server, 'x'.repeat(65_000)));
      await server.untilTotals(({ queueBytes }) => queueBytes > 40 * 65_000, 'they are in the queue');
      process.kill(victim, 'SIGKILL');
      for (const { status, text } of await Promise.all(outcomes)) {
        assert.equal(status, 202);
        assert.equal(JSON.parse(text).unanswered, undefined);
      }
      await untilReplaced(server, victim);
      assert.equal((await server.frame()).totals.queueBytes, 0);
      assert.equal((await publish(server, 'again')).status, 202);
    });

    test('is refused while no worker is ready, never accepted and dropped', async (t) => {
      const server = await startServer(t, [...args, '--workers', '1']);
      const [victim] = server.workerPids;
      process.kill(victim, 'SIGKILL');
      await until(() => /restarting in/.test(server.output.stderr), 'no worker is left');
      const refused = await publish(server, 'lost');
      assert.deepEqual([refused.status, refused.retryAfter], [503, '1']);
      assert.match(refused.text, /no worker is ready/);
      await untilReplaced(server, victim);
      assert.equal((await publish(server, 'hello')).status, 202);
    });

    test('reaches every stream that a new worker has, from the first one', async (t) => {
      const server = await startServer(t, [...args, '--workers', '2']);
      let published = 0;
      let stopped = false;
      const publishing = (async () => {
        for (; !stopped; published++) await publish(server, `<${published}>`);
      })();
      const [victim] = server.workerPids;
      process.kill(victim, 'SIGKILL');
      /** @type {ReturnType<typeof rawClient>[]} */
      const clients = [];
      while (!/is listening/.test(server.output.stderr)) {
        clients.push(rawClient(server.port, 'GET /?channel=news HTTP/1.1\r\nHost: localhost\r\n\r\n'));
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      for (const client of clients) await until(() => client.closed || client.received, 'it is answered');
      const last = published + 2;
      await until(() => published > last, 'two more are published');
      stopped = true;
      await publishing;
      for (const client of clients.filter(({ closed }) => !closed)) {
        await client.untilRead(new RegExp(`<${last}>`));
        const numbers = [...client.received.matchAll(/<(\d+)>/g)].map(([, number]) => Number(number));
        const [first] = numbers;
        assert.deepEqual(
          numbers,
          Array.from(numbers, (_, i) => first + i),
          'nothing is missing in between',
        );
        client.close();
      }
    });

    test('is refused when too many publishers wait, and probes are still answered', async (t) => {
      const server = await startServer(t, [...args, '--workers', '1']);
      await listen(server);
      process.kill(server.workerPids[0], 'SIGSTOP');
      const outcomes = await Promise.all(Array.from({ length: 240 }, (_, i) => publish(server, `<${i}>`)));
      const [probe] = await Promise.all([server.admin('/healthz')]);
      process.kill(server.workerPids[0], 'SIGCONT');
      const count = (/** @type {number} */ status) =>
        outcomes.filter((outcome) => outcome.status === status).length;
      assert.deepEqual([count(202), count(503), probe.status], [192, 48, 200]);
      assert.match(outcomes.find(({ status }) => status === 503)?.text ?? '', /too many publishers: 192/);
    });

    test('is refused during a drain, and what was accepted before is still delivered', async (t) => {
      const server = await startServer(t, [...args, '--workers', '1', '--drain', '4000']);
      const clients = await Promise.all(Array.from({ length: 10 }, () => listen(server)));
      process.kill(server.workerPids[0], 'SIGSTOP');
      const accepted = Array.from({ length: 30 }, (_, i) => publish(server, `<${i}>${'x'.repeat(60_000)}`));
      await server.untilTotals(({ queueBytes }) => queueBytes > 30 * 60_000, 'they are in the queue');
      server.child.kill('SIGTERM');
      await until(() => /draining/.test(server.output.stderr), 'it drains');
      const refused = await publish(server, 'too late');
      assert.deepEqual([refused.status, refused.retryAfter], [503, '1']);
      assert.match(refused.text, /no worker is ready: the server is ending/);
      process.kill(server.workerPids[0], 'SIGCONT');
      for (const { status } of await Promise.all(accepted)) assert.equal(status, 202);
      assert.equal((await server.exit).code, 0);
      const last = clients.at(-1);
      assert.match(last?.received ?? '', /<0>[\s\S]*<29>/);
    });
  });
}
