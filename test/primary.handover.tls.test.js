/*
 * A server with TLS takes over from one with TLS. Others can't, because the port goes over with its streams.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { FAIL_STEPS } from '../lib/failat.js';
import { makeCertificate, NEEDS_TLS, tlsOptions } from './helpers/certificates.js';
import { get, rawClient } from './helpers/client.js';
import { assertAllGot, datasOf, startNew, startOld, untilTotals } from './helpers/handover.js';
import { PATH } from './helpers/hub.js';
import { tlsClient } from './helpers/tlsclient.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** From then on, the new server has the streams. */
const TOO_LATE = ['go', 'gone', 'moved', 'serving', 'drained', 'switched'];

/** @param {TestContext} t @param {number} port @param {string} path @param {import('node:tls').ConnectionOptions} [options] */
async function openStream(t, port, path, options) {
  const client = tlsClient(
    port,
    get({ Accept: 'text/event-stream' }).replace('/ HTTP', `${path} HTTP`),
    options,
  );
  t.after(client.close);
  await client.untilRead(/\r\n\r\n/);
  return client;
}

/** @param {number} adminPort @param {string} data */
async function publish(adminPort, data) {
  const body = new URLSearchParams({ topic: 'a', data });
  const response = await fetch(`http://127.0.0.1:${adminPort}${PATH}`, { method: 'POST', body });
  assert.equal(response.status, 200, await response.text());
}

describe('a takeover with TLS', NEEDS_TLS, () => {
  test('streams stay open and get everything, and sessions are resumed', async (t) => {
    const old = await startOld(t, ...tlsOptions(makeCertificate(t)));
    const clients = await Promise.all(
      Array.from({ length: 20 }, () => openStream(t, old.port, `${PATH}?topic=a`)),
    );
    const session = await clients[0].untilSession();
    await publish(old.adminPort, '0');
    await until(() => clients.every((client) => datasOf(client).length === 1), 'the first one');
    const next = startNew(t, old, tlsOptions(makeCertificate(t, { names: ['next.example'] })));
    const { port, adminPort } = await next.listening;
    assert.equal(port, old.port);
    assert.equal((await old.exit).code, 0, old.output.stderr);
    for (const data of ['1', '2', '3']) await publish(adminPort, data);
    await assertAllGot(clients, ['0', '1', '2', '3']);
    const again = await openStream(t, port, `${PATH}?topic=a`, { session });
    assert.equal(again.socket.isSessionReused(), true);
    assert.equal((await openStream(t, port, '/')).nameOfServer(), 'next.example');
    const totals = await untilTotals(adminPort, ({ streams }) => streams === 22, 'all streams are counted');
    assert.deepEqual([totals.lost, totals.handshakes, totals.resumed], [0, 22, 1]);
    // The state of each session has moved too: its client is understood.
    for (const client of clients) client.socket.end();
    await untilTotals(
      adminPort,
      ({ streams, closedClientGone }) => streams === 2 && closedClientGone === 20,
      'all have left',
    );
  });

  for (const { step } of FAIL_STEPS.filter((one) => !TOO_LATE.includes(one.step))) {
    test(`the new server is killed at the step ${step}: no stream ends, and no record is written twice`, async (t) => {
      const options = tlsOptions(makeCertificate(t));
      const old = await startOld(t, ...options);
      const clients = await Promise.all(
        Array.from({ length: 10 }, () => openStream(t, old.port, `${PATH}?topic=a`)),
      );
      const session = await clients[0].untilSession();
      const [begin, rest] = [`GET ${PATH}?topic=a HT`, 'TP/1.1\r\nHost: a\r\n\r\n'];
      const heads = Array.from({ length: 4 }, () => tlsClient(old.port, begin));
      for (const head of heads) t.after(head.close);
      await Promise.all(heads.map((head) => head.untilSession()));
      await publish(old.adminPort, '0');
      await startNew(t, old, options, { HOLDFAST_FAIL_AT: step }).exit;
      await until(
        () => /this server goes on/.test(old.output.stderr),
        () => old.output.stderr,
      );
      // A client would refuse a record whose number it has had already, or one that is missing.
      for (const data of ['1', '2']) await publish(old.adminPort, data);
      await assertAllGot(clients, ['0', '1', '2']);
      heads[0].send(rest);
      await heads[0].untilRead(/HTTP\/1\.1 200 /);
      const { adminPort, port } = await startNew(t, old, options).listening;
      for (const head of heads.slice(1)) head.send(rest);
      await Promise.all(heads.map((head) => head.untilRead(/HTTP\/1\.1 200 /)));
      await publish(adminPort, '3');
      await assertAllGot(clients, ['0', '1', '2', '3']);
      assert.equal((await openStream(t, port, '/', { session })).socket.isSessionReused(), true);
      assert.ok([...clients, ...heads].every(({ closed, problem }) => !closed && !problem));
    });
  }

  test('the workers are replaced, and streams with TLS go on', async (t) => {
    const server = await startOld(t, ...tlsOptions(makeCertificate(t)));
    const clients = await Promise.all(
      Array.from({ length: 10 }, () => openStream(t, server.port, `${PATH}?topic=a`)),
    );
    await fetch(`http://127.0.0.1:${server.adminPort}/reload`, {
      method: 'POST',
      headers: { 'X-Holdfast': '1' },
    });
    await until(
      () => /reloaded 2 of 2 workers/.test(server.output.stderr),
      () => server.output.stderr,
    );
    await publish(server.adminPort, 'x');
    await assertAllGot(clients, ['x']);
    await openStream(t, server.port, '/');
  });

  test('a server without certificates does not take over from one with TLS', async (t) => {
    const old = await startOld(t, ...tlsOptions(makeCertificate(t)));
    const client = await openStream(t, old.port, `${PATH}?topic=a`);
    const next = startNew(t, old);
    assert.equal((await next.exit).code, 1);
    assert.match(
      next.output.stderr,
      /^holdfast: not taken over: the running server speaks TLS on port \d+: use --tls-cert and --tls-key, or restart the server instead$/m,
    );
    await publish(old.adminPort, 'x');
    await assertAllGot([client], ['x']);
    await openStream(t, old.port, '/');
  });

  test('a server with certificates does not take over from one without TLS', async (t) => {
    const old = await startOld(t);
    const client = rawClient(old.port, get().replace('/ HTTP', `${PATH}?topic=a HTTP`));
    t.after(client.close);
    await client.untilRead(/\r\n\r\n/);
    const next = startNew(t, old, tlsOptions(makeCertificate(t)));
    assert.equal((await next.exit).code, 1);
    assert.match(
      next.output.stderr,
      /^holdfast: not taken over: the running server speaks no TLS on port \d+: take over without --tls-cert, or restart/m,
    );
    await publish(old.adminPort, 'x');
    await assertAllGot([client], ['x']);
  });
});
