/*
 * npm run test:slow: clients that people have hold a stream over TLS for minutes, and change their keys in between if they can.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { NEEDS_CHROMIUM } from '../helpers/browser.js';
import { makeCertificate, tlsOptions } from '../helpers/certificates.js';
import { missing } from '../helpers/deploy.js';
import { startServer } from '../helpers/server.js';
import { REAL_CLIENTS } from '../helpers/tlsclients.js';
import { until } from '../helpers/until.js';

const MINUTES = 3;
const PING_INTERVAL_MS = 200;
const PUBLISH_MS = 1000;
/** Keys change after so many publications. */
const UPDATE_EVERY = 5;
const VERSIONS = /** @type {const} */ (['1.3', '1.2']);

describe('clients that people have', { concurrency: VERSIONS.length }, () => {
  for (const version of VERSIONS) {
    test(`each client holds a stream with TLS ${version} for ${MINUTES} minutes, and gets everything`, async (t) => {
      const pair = makeCertificate(t);
      const tls = [...tlsOptions(pair), '--tls-min-version', version];
      const server = await startServer(t, [...tls, '--ping-interval', String(PING_INTERVAL_MS)]);
      const where = { port: server.port, cert: pair.cert, certText: pair.read().cert };
      /** @type {(import('../helpers/tlsclients.js').RealClient & { name: string })[]} */
      const clients = [];
      for (const [name, { program, open }] of Object.entries(REAL_CLIENTS)) {
        const lacks = name === 'chromium' ? NEEDS_CHROMIUM.skip : program !== '' && missing(program);
        if (lacks) t.diagnostic(`without ${name}: ${lacks}`);
        else clients.push({ name, ...(await open(t, { ...where, target: '/?channel=news', version })) });
      }
      const lines = (/** @type {import('../helpers/tlsclients.js').RealClient} */ { events }) =>
        events().match(/^data: \d+$/gm) ?? [];
      for (const client of clients) await until(() => client.events().includes('Welcome!'), client.problem);
      const most = clients.reduce((sum, { streams }) => sum + streams, 0);
      const { pings } = await server.untilTotals(({ streams }) => streams === most, 'all are open');
      const endMs = Date.now() + MINUTES * 60_000;
      let published = 0;
      let updates = 0;
      while (Date.now() < endMs) {
        const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
        assert.equal((await fetch(url, { method: 'POST', body: String(++published) })).status, 202);
        if (published % UPDATE_EVERY === 0)
          for (const { updateKeys } of clients) {
            updateKeys?.();
            updates += updateKeys ? 1 : 0;
          }
        await after(PUBLISH_MS);
      }
      const expected = Array.from({ length: published }, (_, i) => `data: ${i + 1}`);
      for (const client of clients) {
        await until(
          () => lines(client).length === published,
          () => `${client.name} gets all: ${lines(client).length}`,
        );
        assert.deepEqual(lines(client), expected, client.name);
      }
      const { totals } = await server.frame();
      const { streams, closed, shardFailures } = totals;
      assert.deepEqual({ streams, closed, shardFailures }, { streams: most, closed: 0, shardFailures: 0 });
      const expectedPings = (most * MINUTES * 60_000) / PING_INTERVAL_MS;
      assert.ok(
        Number(totals.pings) - Number(pings) > 0.5 * expectedPings,
        `${totals.pings} of ${expectedPings} pings`,
      );
      t.diagnostic(
        `${clients.map(({ name }) => name).join(', ')}: ${published} publications each, ${totals.pings} pings, ${updates} key updates`,
      );
    });
  }
});
