/*
 * What goes wrong with requests that are passed on over TLS, from either side, at the worst moment. A shard relays them.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import { describe, test } from 'node:test';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { bodyOf, get } from './helpers/client.js';
import { startHold } from './helpers/hold.js';
import { tlsClient } from './helpers/tlsclient.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

const LARGE = 5_000_000;

/** Everything but /news is passed on. @type {import('holdfast').Policy} */
const POLICY = {
  decide: ({ target }) => (target === '/news' ? { hold: 'text', channels: ['news'] } : { pass: true }),
};

/** @param {TestContext} t @param {import('node:http').RequestListener} listener */
async function startPassing(t, listener) {
  const server = createServer(listener);
  const { hold, closes } = startHold(t, 'native', { policy: POLICY, server });
  const port = await hold.listen(0, '127.0.0.1', { tls: makeCertificate(t).read() });
  const ask = (/** @type {string} */ text, how = {}) => {
    const client = tlsClient(port, text, how);
    t.after(client.close);
    return client;
  };
  const untilNobody = () => until(() => hold.counters().connections === 0, 'no connection');
  return { hold, closes, server, port, ask, untilNobody };
}

/** @param {Buffer} bytes */
const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex');

describe('requests that are passed on over TLS', NEEDS_TLS, () => {
  test('large bodies go both ways at the same time, on connections that are kept', async (t) => {
    const { port, untilNobody } = await startPassing(t, (request, response) => request.pipe(response));
    const agent = new Agent({ keepAlive: true, maxSockets: 2, rejectUnauthorized: false });
    const body = randomBytes(LARGE);
    const echo = () =>
      new Promise((resolve, reject) => {
        const request = httpsRequest({ port, host: '127.0.0.1', method: 'POST', agent }, async (response) => {
          /** @type {Buffer[]} */
          const chunks = [];
          for await (const chunk of response) chunks.push(chunk);
          resolve(hashOf(Buffer.concat(chunks)));
        });
        request.on('error', reject);
        request.end(body);
      });
    for (const hash of await Promise.all(Array.from({ length: 6 }, echo))) assert.equal(hash, hashOf(body));
    agent.destroy();
    await untilNobody();
  });

  test('pipelined requests are answered in order', async (t) => {
    const { ask } = await startPassing(t, ({ url }, response) => void response.end(`<${url}>`));
    const all = Array.from({ length: 50 }, (_, i) => `/${i}`);
    const client = ask(all.map((path) => get().replace('/ HTTP', `${path} HTTP`)).join(''));
    await client.untilRead(/<\/49>/);
    assert.deepEqual(client.received.match(/(?<=<)[^>]+/g), all);
  });

  test('100-continue, and an upgrade', async (t) => {
    const { ask, server } = await startPassing(t, async (request, response) => {
      let text = '';
      for await (const chunk of request) text += chunk;
      response.end(`got ${text}`);
    });
    const post = get({ Expect: '100-continue', 'Content-Length': '5' }).replace('GET', 'POST');
    const client = ask(post);
    await client.untilRead(/100 Continue\r\n\r\n/);
    client.send('hello');
    await client.untilRead(/got hello/);
    server.on('upgrade', (_request, socket, head) => {
      socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n${head}`);
      socket.on('data', (/** @type {Buffer} */ data) => void socket.write(`echo ${data}`));
      socket.on('end', () => void socket.end());
    });
    const other = ask(get({ Connection: 'Upgrade', Upgrade: 'echo' }));
    await other.untilRead(/101 Switching/);
    other.send('ping');
    await other.untilRead(/echo ping/);
    other.socket.end();
    await other.untilClosed();
    assert.equal(other.problem, '');
  });

  test('a client that leaves in the middle of an answer, and a node:http that destroys it, leave nothing behind', async (t) => {
    const chunk = Buffer.alloc(65_536, 'x');
    /** @type {string[]} */
    const ends = [];
    const { ask, untilNobody } = await startPassing(t, (request, response) => {
      response.on('close', () => ends.push(response.writableFinished ? 'finished' : 'cut'));
      const more = () => {
        while (!response.destroyed && response.write(chunk));
      };
      response.on('drain', more);
      more();
      if (request.url === '/destroy') setImmediate(() => request.socket.destroy());
    });
    const leaving = ask(get());
    leaving.socket.on('data', () => leaving.socket.pause());
    await until(() => leaving.received, 'some of the answer');
    leaving.close();
    await until(() => ends.length === 1, 'the request is over');
    await untilNobody();
    const destroyed = ask(get().replace('/ HTTP', '/destroy HTTP'));
    await destroyed.untilClosed();
    await untilNobody();
    assert.deepEqual(ends, ['cut', 'cut']);
  });

  test('a response of which nothing was read yet becomes a stream, and nothing of it is lost', async (t) => {
    const body = 'x'.repeat(LARGE);
    /** @type {Promise<number>[]} */
    const adopted = [];
    const { hold, ask } = await startPassing(t, (_request, response) => {
      response.write(body);
      adopted.push(hold.adopt(response, { channels: ['news'], encoding: 'text' }));
    });
    const client = ask(get());
    client.socket.pause();
    await until(() => adopted.length === 1, 'the request');
    setImmediate(() => client.socket.resume());
    await adopted[0];
    assert.equal(await hold.publish('news', 'the end'), 1);
    await until(() => client.received.includes('the end'), 'everything');
    assert.equal(bodyOf(client.received), `${body}the end`);
  });

  test('a client that leaves while its response is adopted is gone, or was never there', async (t) => {
    /** @type {Promise<unknown>[]} */
    const outcomes = [];
    /** @type {Map<string, () => void>} */
    const leave = new Map();
    const { hold, closes, ask, untilNobody } = await startPassing(t, ({ url }, response) => {
      response.flushHeaders();
      leave.get(url ?? '')?.();
      const adopt = () => hold.adopt(response, { channels: ['news'], encoding: 'text' });
      const outcome = Number(url?.slice(1)) % 2 ? new Promise((go) => setImmediate(go)).then(adopt) : adopt();
      outcomes.push(outcome.catch((error) => error.code));
    });
    for (let i = 0; i < 20; i++) {
      const client = ask(get().replace('/ HTTP', `/${i} HTTP`));
      leave.set(`/${i}`, client.close);
    }
    await until(() => outcomes.length === 20, 'all requests');
    const ids = (await Promise.all(outcomes)).filter((outcome) => typeof outcome === 'number');
    await untilNobody();
    await until(() => closes.length === ids.length, 'their ends');
    assert.deepEqual(closes.map(({ id }) => id).sort(), ids.sort(), 'what has ended has begun');
    assert.ok(closes.every(({ reason }) => reason === 'client-gone'));
  });

  test('when a shard fails its requests are cut, and the next ones are served', async (t) => {
    /** @type {import('node:http').ServerResponse[]} */
    const responses = [];
    const { hold, ask, untilNobody } = await startPassing(t, (_request, response) => {
      responses.push(response);
      response.write('begun');
    });
    const client = ask(get());
    await client.untilRead(/begun/);
    // @ts-expect-error for tests only
    const core = hold.shards?.core ?? hold.core;
    core.failShard(0);
    await client.untilClosed();
    await until(() => responses[0].destroyed, 'node:http knows');
    const other = ask(get());
    await other.untilRead(/begun/);
    responses[1].end('end');
    await other.untilRead(/end/);
    other.close();
    await untilNobody();
  });
});
