/*
 * Programs that listen with TLS, and take over each other's streams.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { bodyOf, get } from './helpers/client.js';
import { newPath, startProgram, startReady } from './helpers/takeover.js';
import { tlsClient } from './helpers/tlsclient.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @param {number} port @param {string} target @param {import('node:tls').ConnectionOptions} [options] */
async function openStream(t, port, target, options) {
  const client = tlsClient(port, get().replace('/ HTTP', `${target} HTTP`), options);
  t.after(client.close);
  await client.untilRead(/Welcome!/);
  return client;
}

/** Files of a certificate, without what a message can't contain. @param {TestContext} t @param {string[]} [names] */
function newPair(t, names) {
  const { cert, key } = makeCertificate(t, { names });
  return { cert, key };
}

describe('a program with TLS', NEEDS_TLS, () => {
  test('takes over streams and sessions', async (t) => {
    const path = newPath(t);
    const first = await startReady(t, { path, pair: newPair(t) });
    const clients = await Promise.all(
      Array.from({ length: 10 }, (_, i) => openStream(t, first.port, `/held/t${i},news`)),
    );
    const session = await clients[0].untilSession();
    await first.ask('publish', { channel: 'news', message: 'one;' });
    const second = await startReady(t, {
      path,
      port: first.port,
      name: 'b',
      pair: newPair(t, ['b.example']),
    });
    assert.equal((await first.untilAnswer('moved')).value, 10);
    assert.equal(second.port, first.port);
    assert.equal(second.adopted.length, 10);
    assert.equal(await second.ask('publish', { channel: 'news', message: 'two;' }), 10);
    for (const client of clients)
      await until(
        () => bodyOf(client.received) === 'Welcome!one;two;',
        () => client.received,
      );
    const resumed = await openStream(t, first.port, '/held/x,news', { session });
    assert.equal(resumed.socket.isSessionReused(), true);
    assert.equal((await openStream(t, first.port, '/held/y,news')).nameOfServer(), 'b.example');
  });

  test('does not take over from one without TLS, nor the other way round', async (t) => {
    const [plain, secure] = [newPath(t), newPath(t)];
    const one = await startReady(t, { path: plain });
    const two = await startReady(t, { path: secure, pair: newPair(t) });
    const client = await openStream(t, two.port, '/held/t,news');
    const problemOf = async (/** @type {import('./helpers/takeover.js').Options} */ options) =>
      (await startProgram(t, options).untilAnswer('ready')).problem;
    assert.equal(
      await problemOf({ path: plain, port: one.port, pair: newPair(t) }),
      "the streams can't be handed over: the process that has them listens without TLS: leave out the tls option",
    );
    assert.equal(
      await problemOf({ path: secure, port: two.port }),
      "the streams can't be handed over: the process that has them listens with TLS: give Hold.takeOver its tls option",
    );
    assert.equal(await two.ask('publish', { channel: 'news', message: 'still here;' }), 1);
    await client.untilRead(/still here;/);
  });

  test('listens at the place that it took over with TLS only', async (t) => {
    const path = newPath(t);
    const first = await startReady(t, { path, pair: newPair(t) });
    const second = await startReady(t, { path, port: null, name: 'b', pair: newPair(t) });
    assert.match(
      await second.ask('listen', { port: first.port, isTls: false }),
      /^LISTENING this Hold has taken over the port \d+, which speaks TLS: listen there with \{ tls \}$/,
    );
    assert.equal(await second.ask('listen', { port: first.port, isTls: true }), first.port);
    await openStream(t, first.port, '/held/t,news');
  });

  test('goes on without the next one if that dies', async (t) => {
    const path = newPath(t);
    const first = await startReady(t, { path, pair: newPair(t) });
    const client = await openStream(t, first.port, '/held/t,news');
    await startProgram(t, { path, port: first.port, name: 'b', dieAt: 3, pair: newPair(t) }).exit;
    await until(async () => (await first.ask('state')).problems.length > 0, 'the problem');
    await openStream(t, first.port, '/held/u,more');
    // The round may have been released before: then its streams went with the process that died.
    if (!client.closed) assert.equal(await first.ask('publish', { channel: 'news', message: 'x' }), 1);
  });

  test('takes over streams of adopted responses, too', async (t) => {
    const path = newPath(t);
    const first = await startReady(t, { path, pair: newPair(t) });
    const adopted = await openStream(t, first.port, '/adopted/u,news');
    const second = await startReady(t, { path, port: first.port, name: 'b', pair: newPair(t) });
    assert.equal((await first.untilAnswer('moved')).value, 1);
    first.child.send({ ask: 'leave' });
    await first.exit;
    assert.equal(await second.ask('publish', { channel: 'news', message: 'hello;' }), 1);
    await until(
      () => bodyOf(adopted.received) === 'Welcome!hello;',
      () => adopted.received,
    );
    await second.ask('end', { channel: 'news' });
    await adopted.untilClosed();
    assert.equal(adopted.problem, '');
  });
});
