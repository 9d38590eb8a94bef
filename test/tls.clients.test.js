/*
 * Clients that people have, on the port of the streams with TLS.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { NEEDS_CHROMIUM } from './helpers/browser.js';
import { makeCertificate, tlsOptions } from './helpers/certificates.js';
import { missing } from './helpers/deploy.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { startServer, temporaryFolder } from './helpers/server.js';
import { REAL_CLIENTS, startOpenssl } from './helpers/tlsclients.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('./helpers/tlsclients.js').RealClient} RealClient */

const TARGET = '/?channel=news';
const REQUEST = `GET ${TARGET} HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n`;
const skipOpenssl = NEEDS_NATIVE.skip || missing('openssl');

/** @param {TestContext} t @param {string[]} args */
async function start(t, ...args) {
  const pair = makeCertificate(t);
  const own = [...tlsOptions(pair), '--workers', '1', '--ping-interval', '200'];
  const server = await startServer(t, [...own, ...args]);
  const publish = async (/** @type {string} */ body) => {
    const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
    assert.equal((await fetch(url, { method: 'POST', body })).status, 202);
  };
  return { server, publish, where: { port: server.port, cert: pair.cert, certText: pair.read().cert } };
}

/** @param {() => string} text @param {string | RegExp} part @param {() => string} [problem] */
function untilIn(text, part, problem = () => '') {
  const isIn = () => (typeof part === 'string' ? text().includes(part) : part.test(text()));
  return until(isIn, () => `${part} in ${text()} ${problem()}`);
}

/** @param {RealClient} client @param {string} data */
const untilGot = (client, data) => untilIn(client.events, `data: ${data}\n`, client.problem);

for (const [name, { program, open }] of Object.entries(REAL_CLIENTS)) {
  const lacks = name === 'chromium' ? NEEDS_CHROMIUM.skip : program !== '' && missing(program);
  describe(`${name}, over TLS`, { skip: NEEDS_NATIVE.skip || lacks }, () => {
    for (const version of /** @type {const} */ (['1.3', '1.2'])) {
      test(`gets events and pings with TLS ${version}, and its leaving is noticed`, async (t) => {
        const { server, publish, where } = await start(t, '--tls-min-version', version);
        const client = await open(t, { ...where, target: TARGET, version });
        await untilGot(client, 'Welcome!');
        assert.equal(await client.version(), `TLSv${version}`);
        await publish('one');
        await untilGot(client, 'one');
        const { pings } = await server.untilTotals((totals) => totals.pings >= 2, 'pings');
        await server.untilTotals((totals) => totals.pings >= Number(pings) + 2, 'more pings');
        await publish('two');
        await untilGot(client, 'two');
        const { streams, closed } = (await server.frame()).totals;
        assert.deepEqual([streams, closed], [client.streams, 0], client.problem());
        client.leave();
        const totals = await server.untilTotals((one) => one.streams === 0, 'it has left');
        assert.deepEqual([totals.closed, totals.closedClientGone], [client.streams, client.streams]);
      });
    }
  });
}

describe('openssl s_client', { skip: skipOpenssl }, () => {
  test('changes its keys, with and without asking the server for new ones, as often as it likes', async (t) => {
    const { server, publish, where } = await start(t);
    const { output, type } = startOpenssl(t, where, ['-tls1_3', '-msg']);
    type(REQUEST);
    const seen = () => output.stdout;
    const count = (/** @type {RegExp} */ part) => seen().match(part)?.length ?? 0;
    await untilIn(seen, 'data: Welcome!\n');
    let [sent, answered] = [0, 0];
    for (const key of 'kKKkkKkKKK') {
      type(`${key}\n`);
      sent++;
      if (key === 'K') answered++;
      await until(() => count(/>>> TLS 1\.3, Handshake.*KeyUpdate/g) === sent, 'it has sent its update');
      await until(
        () => count(/<<< TLS 1\.3, Handshake.*KeyUpdate/g) === answered,
        () => `an answer: ${seen()}`,
      );
      await publish(`after-${sent}`);
      await untilIn(seen, `data: after-${sent}\n`);
    }
    const { pings } = (await server.frame()).totals;
    await server.untilTotals((totals) => totals.pings > Number(pings), 'pings');
    // Its farewell is encrypted with the last of its keys.
    type('Q\n');
    const totals = await server.untilTotals((one) => one.streams === 0, 'it has left');
    assert.equal(totals.closedClientGone, 1);
  });

  test('changes its keys before its request, and in the middle of it', async (t) => {
    const { publish, where } = await start(t);
    const { output, type } = startOpenssl(t, where, ['-tls1_3', '-msg']);
    const seen = () => output.stdout;
    await untilIn(seen, 'Verify return code: 0');
    const updates = () => seen().match(/<<< TLS 1\.3, Handshake.*KeyUpdate/g)?.length ?? 0;
    type('K\n');
    await until(
      () => updates() === 1,
      () => `an answer: ${seen()}`,
    );
    type(REQUEST.slice(0, 20));
    // What is typed at once is read at once: then K would be a letter of the request.
    await untilIn(seen, />>> TLS 1\.\d, InnerContent \[length 0001\]\n {4}17\n/);
    type('K\n');
    await until(
      () => updates() === 2,
      () => `an answer: ${seen()}`,
    );
    type(REQUEST.slice(20));
    await untilIn(seen, 'data: Welcome!\n');
    await publish('one');
    await untilIn(seen, 'data: one\n');
  });

  for (const [version, args] of /** @type {const} */ ([
    ['1.3', []],
    ['1.2', ['--tls-min-version', '1.2']],
  ])) {
    test(`comes back with a ticket (TLS ${version})`, async (t) => {
      const { server, where } = await start(t, ...args);
      const file = join(temporaryFolder(t), 'session');
      const option = version === '1.3' ? '-tls1_3' : '-tls1_2';
      const first = startOpenssl(t, where, [option, '-sess_out', file]);
      first.type(REQUEST);
      await untilIn(() => first.output.stdout, 'data: Welcome!\n');
      first.type('Q\n');
      await first.exit;
      const again = startOpenssl(t, where, [option, '-sess_in', file]);
      again.type(REQUEST);
      await untilIn(() => again.output.stdout, 'data: Welcome!\n');
      assert.match(again.output.stdout, new RegExp(`^Reused, TLSv${version}`, 'm'));
      await server.untilTotals(({ handshakes, resumed }) => handshakes === 2 && resumed === 1, 'one of two');
    });
  }

  const OLD = ['-cipher', 'ALL:@SECLEVEL=0'];
  // What those before TLS 1.2 lack is noticed before their version is: 40 is handshake_failure, 70 protocol_version.
  /** What is refused, with which options of the server, and the alert. @type {[string, string[], string[], number][]} */
  const REFUSED = [
    ['TLS 1.0', ['-tls1', ...OLD], ['--tls-min-version', '1.2'], 40],
    ['TLS 1.1', ['-tls1_1', ...OLD], ['--tls-min-version', '1.2'], 40],
    ['TLS 1.2 without the option', ['-tls1_2'], [], 70],
    [
      'CBC',
      ['-tls1_2', '-cipher', 'ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA:@SECLEVEL=0'],
      ['--tls-min-version', '1.2'],
      40,
    ],
    [
      'a key exchange with RSA',
      ['-tls1_2', '-cipher', 'AES128-GCM-SHA256:AES128-SHA:@SECLEVEL=0'],
      ['--tls-min-version', '1.2'],
      40,
    ],
    [
      'no encryption',
      ['-tls1_2', '-cipher', 'ECDHE-ECDSA-NULL-SHA:@SECLEVEL=0'],
      ['--tls-min-version', '1.2'],
      40,
    ],
    ['CCM with TLS 1.3', ['-tls1_3', '-ciphersuites', 'TLS_AES_128_CCM_SHA256'], [], 40],
  ];
  for (const [what, words, args, alert] of REFUSED) {
    test(`is refused: ${what}`, async (t) => {
      const { server, publish, where } = await start(t, ...args);
      const held = startOpenssl(t, where, []);
      held.type(REQUEST);
      await untilIn(() => held.output.stdout, 'data: Welcome!\n');
      const { output, exit } = startOpenssl(t, where, words);
      assert.notEqual((await exit).code, 0);
      assert.match(output.stderr, new RegExp(`SSL alert number ${alert}\\b`));
      const totals = await server.untilTotals((one) => one.handshakeFailures === 1, 'it is counted');
      await publish('one');
      await untilIn(() => held.output.stdout, 'data: one\n');
      const { handshakes, streams, closed, shardFailures } = totals;
      assert.deepEqual(
        { handshakes, streams, closed, shardFailures },
        { handshakes: 1, streams: 1, closed: 0, shardFailures: 0 },
      );
    });
  }

  for (const [suite, version] of /** @type {const} */ ([
    ['TLS_AES_128_GCM_SHA256', '1.3'],
    ['TLS_CHACHA20_POLY1305_SHA256', '1.3'],
    ['ECDHE-ECDSA-AES128-GCM-SHA256', '1.2'],
    ['ECDHE-ECDSA-CHACHA20-POLY1305', '1.2'],
  ])) {
    test(`is served with ${suite}`, async (t) => {
      const { server, publish, where } = await start(t, '--tls-min-version', version);
      const only = version === '1.3' ? ['-tls1_3', '-ciphersuites', suite] : ['-tls1_2', '-cipher', suite];
      const { output, type } = startOpenssl(t, where, only);
      type(REQUEST);
      await untilIn(() => output.stdout, 'data: Welcome!\n');
      assert.match(output.stdout, new RegExp(`^New, TLSv${version}, Cipher is ${suite}$`, 'm'));
      await server.untilTotals(({ pings }) => pings >= 2, 'pings');
      await publish('one');
      await untilIn(() => output.stdout, 'data: one\n');
    });
  }

  test('that can only do HTTP/2 gets an alert, not a stream that it does not understand', async (t) => {
    const { where } = await start(t);
    const { output, exit } = startOpenssl(t, where, ['-alpn', 'h2']);
    assert.notEqual((await exit).code, 0);
    assert.match(output.stderr, /SSL alert number 120\b/);
  });
});
