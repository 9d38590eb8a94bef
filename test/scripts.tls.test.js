import assert from 'node:assert/strict';
import { once } from 'node:events';
import { test } from 'node:test';
import { createServer } from 'node:tls';
import tls from '../scripts/experiments/tls.js';
import { Findings } from '../scripts/lab/findings.js';
import { planOf } from '../scripts/lab/plan.js';
import { CIPHER, checkCipher } from '../scripts/lab/tls/cipher.js';
import { judge, pageText, tableText } from '../scripts/lab/tls/table.js';
import { makeCertificate, NEEDS_OPENSSL } from './helpers/certificates.js';

/** @param {Record<string, Record<string, number | null>[]>} values by run */
function findingsOf(values) {
  const outcomes = Object.entries(values).flatMap(([run, all]) =>
    all.map((one) => ({ run, repeat: 1, values: one })),
  );
  return new Findings(tls.figures, Object.keys(values), outcomes);
}

const GOOD = {
  memoryBytes: 175,
  openUs: 190,
  resumedUs: 110,
  resumedPercent: 100,
  pingUs: 4.5,
  stormTickP99Ms: 12,
  stormLatenessP99Ms: 30,
};

test('each target says whether it was reached, and CPU per ping is compared with that without TLS', () => {
  const findings = findingsOf({ plain: [{ pingUs: 4 }], tls: [GOOD, { openUs: 230 }] });
  const text = tableText(findings);
  assert.match(text, /^\| user memory per stream \| - \| 175 B \| 180 B: reached \|$/m);
  assert.match(
    text,
    /^\| CPU to open a stream, full handshake .*\| 210 µs \(190 µs to 230 µs\) \| 200 µs: \*\*missed\*\* \|$/m,
  );
  assert.match(text, /^\| CPU per ping \| 4\.0 µs \| 4\.5 µs \| without TLS \+ 0\.6 µs: reached \|$/m);
  const slower = findingsOf({ plain: [{ pingUs: 3.8 }], tls: [GOOD] });
  assert.equal(judge(slower).find(({ name }) => name === 'pingUs')?.isMet, false);
  const nonsense = findingsOf({ tls: [{ memoryBytes: -6700 }] });
  assert.equal(judge(nonsense).find(({ name }) => name === 'memoryBytes')?.isMet, false);
});

test('a figure that was not measured counts as missed', () => {
  const { pingUs, ...others } = GOOD;
  assert.ok(pingUs);
  const [sentence] = tls.read(findingsOf({ plain: [{ pingUs: 4 }], tls: [others] }));
  assert.equal(sentence, 'Targets missed: CPU per ping ((not known), target without TLS + 0.6 µs).');
  assert.equal(tls.read(findingsOf({ plain: [{ pingUs: 4 }], tls: [GOOD] }))[0], 'Every target was reached.');
});

test('it is said what TLS adds, what others need, and where fewer handshakes were resumed than meant', () => {
  const findings = findingsOf({
    plain: [{ memoryBytes: 75, pingUs: 4 }],
    tls: [GOOD],
    'node-http': [{ memoryBytes: 37_000, resumedPercent: 70 }],
  });
  assert.deepEqual(tls.read(findings).slice(1), [
    'With TLS, a stream took 100 B more user memory than without. Its session is 100 B; a server that has memory left from earlier streams grows by less. Others with TLS: node:https 37.0 KB.',
    'Not all handshakes that were meant to be resumed were: node:https 70.0 %. Their CPU is that of the mixture.',
  ]);
});

test('the page says how many streams there were, and how many storms were left out', () => {
  const plan = planOf({ ...tls, name: 'tls' }, { streams: 0, hold: 0, repeats: 0, isLong: false });
  const report = /** @type {any} */ ({
    plan,
    command: 'node scripts/experiment.js tls',
    facts: { machine: 'a machine' },
    notes: ['bun is skipped: there is no network'],
    charts: ['tls/memory.svg'],
  });
  const page = pageText(
    report,
    findingsOf({ tls: [GOOD, { leftOutMs: 14 }], go: [{ leftOutMs: 13 }, { pauseMs: 3 }] }),
  );
  assert.match(page, /from 5,000 to 15,000 streams/);
  assert.match(page, /while 3,000 held streams/);
  assert.match(page, /are left out \(2 here\)/);
  assert.match(page, /^!\[Memory\]\(tls\/memory\.svg\)$/m);
  assert.match(page, /^- Bun is skipped: there is no network\.$/m);
});

test('charts have a bar for each server that was measured', async () => {
  const charts = await tls.charts?.(
    findingsOf({ plain: [{ memoryBytes: 75 }], tls: [GOOD], go: [{ openUs: 400 }] }),
  );
  assert.deepEqual(Object.keys(charts ?? {}), ['memory.svg', 'openings.svg', 'pings.svg', 'storm.svg']);
  assert.match(charts?.['memory.svg'] ?? '', /Holdfast with TLS/);
  assert.doesNotMatch(charts?.['memory.svg'] ?? '', /Go net\/http/);
  assert.match(charts?.['openings.svg'] ?? '', /Go net\/http/);
});

test('a server that chooses another cipher is not compared', NEEDS_OPENSSL, async (t) => {
  const pair = makeCertificate(t).read();
  const portOf = async (/** @type {string} */ ciphers) => {
    const server = createServer({ ...pair, ciphers }).listen(0, '127.0.0.1');
    server.on('tlsClientError', () => {}); // expected of the last one
    t.after(() => server.close());
    await once(server, 'listening');
    return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
  };
  await checkCipher('one', await portOf(CIPHER));
  await assert.rejects(checkCipher('two', await portOf('TLS_CHACHA20_POLY1305_SHA256')), {
    code: 'CIPHER',
    message: /^two chose TLS_CHACHA20_POLY1305_SHA256, not TLS_AES_128_GCM_SHA256/,
  });
  await assert.rejects(checkCipher('three', await portOf('TLS_AES_256_GCM_SHA384')), /three chose no cipher/);
});
