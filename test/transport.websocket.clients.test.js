/*
 * Clients that people have, on WebSockets held natively and in JS, plain and with TLS.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { KINDS, startHold } from './helpers/hold.js';
import { until } from './helpers/until.js';
import { WEBSOCKET_CLIENTS } from './helpers/wsclients.js';

/** After so many pings, a client that answers none of them is gone. */
const MANY_PINGS = 20;
const TEXTS = ['', 'plain', 'grüße \u{1f600}', 'x'.repeat(60_000)];

/** @param {import('node:test').TestContext} t @param {import('./helpers/hold.js').Kind} kind @param {boolean} isTls */
async function start(t, kind, isTls) {
  const { hold, closes } = startHold(t, kind, {
    policy: { decide: () => ({ hold: 'websocket', channels: ['news'], welcome: 'Welcome!' }) },
    onMessage: (id, data) => hold.send(id, data),
    pingIntervalMs: 25,
  });
  const pair = isTls ? makeCertificate(t) : null;
  const tls = pair ? pair.read() : undefined;
  const port = await hold.listen(0, '127.0.0.1', tls ? { tls } : {});
  const url = `${isTls ? 'wss' : 'ws'}://localhost:${port}/`;
  return { hold, closes, where: { url, cert: pair?.cert ?? '', certText: tls?.cert ?? '' } };
}

for (const [name, { problem, open }] of Object.entries(WEBSOCKET_CLIENTS)) {
  const kinds = KINDS.map((kind) => /** @type {const} */ ([`by ${kind}`, kind, false]));
  for (const [how, kind, isTls] of /** @type {const} */ ([...kinds, ['with TLS', 'native', true]])) {
    describe(`${name}, held ${how}`, { skip: problem || (isTls && NEEDS_TLS.skip) }, () => {
      test('hears, says, stays while it answers pings, and leaves', async (t) => {
        const { hold, closes, where } = await start(t, kind, isTls);
        const client = await open(t, where);
        for (const text of TEXTS) await client.send(text);
        const expected = ['Welcome!', ...TEXTS];
        await until(() => client.received.length === expected.length, 'an echo of everything');
        assert.deepEqual(client.received, expected);
        await until(() => hold.counters().pings >= MANY_PINGS, 'many pings');
        hold.publish('news', { id: '1', data: 'still here' });
        await until(() => client.received.at(-1) === 'still here', 'a publication');
        assert.equal(closes.length, 0);
        await client.leave();
        await until(() => closes.length === 1, 'it has left');
        assert.equal(closes[0].reason, 'client-gone');
      });

      test('is told that the server goes away', async (t) => {
        const { hold, where } = await start(t, kind, isTls);
        const client = await open(t, where);
        await hold.close();
        await until(() => client.closed() !== undefined, 'it knows');
        assert.equal(client.closed(), 1001);
      });
    });
  }
}
