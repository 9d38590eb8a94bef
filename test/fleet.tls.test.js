/*
 * TLS between the fleet and servers: both dialers, and runs of the command against the real server.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer as createPlainServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { createServer } from 'node:tls';
import { noCauses } from '../fleet/drone/causes.js';
import { makeCertificate, NEEDS_TLS, tlsOptions } from './helpers/certificates.js';
import { serverAt, testEach } from './helpers/dialers.js';
import { startDrone } from './helpers/drone.js';
import { run, startServer, temporaryFolder } from './helpers/server.js';

/** @typedef {import('node:test').TestContext} TestContext */

const SECRET = 'a secret of at least thirty-two bytes';
const OPENING =
  'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nWelcome!\r\n';
const PING = '4\r\nping\r\n';
const ANYBODY = { roots: null, resumes: true };

/**
 * A TLS server that holds streams.
 * @param {TestContext} t @param {import('node:tls').TlsOptions} [options]
 */
async function startHolder(t, options = {}) {
  const pair = makeCertificate(t);
  /** @type {Set<import('node:net').Socket>} */
  const streams = new Set();
  const server = createServer({ ...pair.read(), ...options }, (socket) => {
    streams.add(socket);
    socket.on('error', () => {}); // a client may reset it
    socket.on('close', () => streams.delete(socket));
    socket.once('data', () => socket.write(OPENING));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.after(() => {
    server.close();
    for (const socket of streams) socket.destroy();
  });
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  return { port, streams, roots: pair.read().cert };
}

/** @param {TestContext} t @param {string[]} [args] */
async function startSecure(t, args = []) {
  const pair = makeCertificate(t);
  const own = ['--transport', 'hold', '--workers', '1', '--ping-interval', '100', ...tlsOptions(pair)];
  const server = await startServer(t, [...own, ...args]);
  return { ...server, ca: pair.cert };
}

/**
 * A run of the command.
 * @param {TestContext} t @param {string[]} args
 */
async function runWith(t, ...args) {
  const folder = temporaryFolder(t);
  const file = join(folder, 'report.json');
  const env = { ...process.env, HOLDFAST_FLEET_DIR: join(folder, 'fleet'), HOLDFAST_TOKEN: '' };
  const words = ['fleet/cli.js', 'run', '--report', file, ...args];
  const { exit, output } = run(t, process.execPath, words, { env });
  const { code } = await exit;
  const report = () => JSON.parse(readFileSync(file, 'utf8'));
  return { code, ...output, report };
}

/**
 * Whom the system trusts: that differs between machines, and some trust nobody.
 * @param {TestContext} t @param {string} file
 */
function systemTrusts(t, file) {
  const { SSL_CERT_FILE: before } = process.env;
  process.env.SSL_CERT_FILE = file;
  t.after(() => {
    if (before === undefined) delete process.env.SSL_CERT_FILE;
    else process.env.SSL_CERT_FILE = before;
  });
}

describe('a dialer with TLS', NEEDS_TLS, () => {
  for (const maxVersion of /** @type {const} */ (['TLSv1.3', 'TLSv1.2'])) {
    testEach(`opens streams with ${maxVersion}, and they come back with tickets`, async (t, dial) => {
      const { port, streams } = await startHolder(t, { maxVersion });
      const dialled = await dial([port], { security: ANYBODY });
      await dialled.open(1);
      dialled.dialer.open(5);
      await dialled.until(({ open }) => open === 6, '6 open streams');
      for (const stream of streams) stream.write(PING.repeat(3));
      const { handshakes } = await dialled.until(({ pings }) => pings === 18, 'pings');
      assert.deepEqual([handshakes, dialled.histograms.handshake.count], [6, 6]);
      const before = dialled.take().resumptions;
      dialled.aim([port], { security: { ...ANYBODY } });
      dialled.dialer.churn(2);
      const { resumptions, failed, lost } = await dialled.until(
        ({ opened }) => opened === 8,
        'they are back',
      );
      // OpenSSL sends two tickets after a full handshake and none after others, and the native dialer uses each once.
      assert.ok(resumptions > before, `${before}, ${resumptions}`);
      assert.deepEqual([failed, lost], [noCauses(), noCauses()]);
    });
  }

  testEach('uses no ticket if that is asked for', async (t, dial) => {
    const { port } = await startHolder(t);
    const dialled = await dial([port], { security: { roots: null, resumes: false } });
    await dialled.open(1);
    dialled.dialer.churn(1);
    const { handshakes, resumptions } = await dialled.until(({ opened }) => opened === 2, 'it is back');
    assert.deepEqual([handshakes, resumptions], [2, 0]);
  });

  testEach('accepts only certificates that it trusts, of the host that it dials', async (t, dial) => {
    const { port, roots } = await startHolder(t);
    const other = makeCertificate(t).read().cert;
    const dialled = await dial([port], { security: { roots, resumes: true } });
    await dialled.open(1);
    dialled.aim([port], { security: { roots: other, resumes: true } });
    dialled.dialer.open(1);
    await dialled.until(({ failed }) => failed.certificate === 1, 'it is not trusted');
    const servers = [{ ...serverAt([port]), host: 'elsewhere.example' }];
    dialled.aim([port], { servers, security: { roots, resumes: true } });
    dialled.dialer.open(1);
    const { open } = await dialled.until(({ failed }) => failed.certificate === 2, 'it is of another host');
    assert.equal(open, 1);
  });

  testEach('says that the handshake failed if the server does not speak TLS', async (t, dial) => {
    const server = createPlainServer((socket) => {
      socket.on('error', () => {});
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.after(() => server.close());
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
    const dialled = await dial([port], { security: ANYBODY });
    dialled.dialer.open(2);
    await dialled.until(({ failed }) => failed.handshake === 2, 'handshakes fail');
  });

  testEach(
    'counts streams that the server ends as closed, with and without the end of the response',
    async (t, dial) => {
      const { port, streams } = await startHolder(t);
      const dialled = await dial([port], { security: ANYBODY });
      await dialled.open(2);
      const [first, second] = streams;
      first.end(); // with a close_notify
      await dialled.until(({ lost }) => lost.closed === 1, 'closed');
      second.end('0\r\n\r\n');
      await dialled.until(({ lost }) => lost.closed === 2, 'closed');
    },
  );
});

describe('a fleet with TLS', NEEDS_TLS, () => {
  test('opens streams, reads their pings, and gets each publication once while streams come back', async (t) => {
    const file = join(temporaryFolder(t), 'secret');
    writeFileSync(file, SECRET);
    const server = await startSecure(t, ['--jwt-secret', `@${file}`]);
    const target = ['--target', `https://localhost:${server.port}`, '--tls-ca', server.ca];
    const topics = ['--topic', 'room/{n%20}', '--token-secret', `@${file}`];
    const { code, stdout, stderr, report } = await runWith(
      t,
      ...target,
      ...topics,
      ...['-n', '300', '--drones', '2', '--hold', '3', '--publish', '100', '--churn', '50'],
    );
    assert.equal(code, 0, stdout + stderr);
    const { opened, tls, outcome, publications, pings, percentiles, failed, lost } = report();
    assert.deepEqual([failed.total, lost.total, publications.failed], [0, 0, 0]);
    assert.equal(outcome.delivered, publications.expected);
    assert.ok(pings > 300 && outcome.churned > 50, `${pings} pings, ${outcome.churned} came back`);
    assert.ok(
      tls.handshakes >= opened && percentiles.handshakeMs.count >= opened,
      JSON.stringify({ tls, opened }),
    );
    assert.ok(tls.resumed >= outcome.churned - 2, JSON.stringify({ tls, outcome }));
    assert.match(stdout, /^300 streams to https:\/\/localhost:\d+, 2 drones/m);
    assert.match(stdout, /^handshakes +[\d,]+ {2}[\d,]+ with a ticket$/m);
    assert.match(stdout, /^TLS handshake +[\d,]+/m);
    const { handshakes } = await server.untilTotals(({ streams }) => streams === 0, 'all are gone');
    assert.ok(Number(handshakes) > opened, 'those of the publishers, and the questions for consent');
  });

  test('accepts a self-signed certificate with --insecure, and does full handshakes with --no-resume', async (t) => {
    const { port } = await startSecure(t);
    const args = ['--target', `127.0.0.1:${port}`, '--tls', '--insecure', '--no-resume'];
    const { code, stdout, stderr, report } = await runWith(
      t,
      ...args,
      '-n',
      '50',
      '--churn',
      '20',
      '--hold',
      '1',
    );
    assert.equal(code, 0, stdout + stderr);
    assert.equal(report().tls.resumed, 0);
    assert.ok(report().tls.handshakes > 50);
  });

  test('says what to do about a certificate that is not accepted', async (t) => {
    systemTrusts(t, makeCertificate(t).cert);
    const { port } = await startSecure(t);
    const { code, stderr } = await runWith(t, '--target', `https://127.0.0.1:${port}`, '-n', '1');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /the certificate of 127\.0\.0\.1 is not accepted \(self-signed certificate\).*--tls-ca FILE.*--insecure/,
    );
  });

  test('says what a server without TLS answers, and what a server with TLS answers without --tls', async (t) => {
    const plain = await startServer(t);
    const args = ['-n', '1', '--within', '1'];
    const spoken = await runWith(t, '--target', `https://127.0.0.1:${plain.port}`, '--insecure', ...args);
    assert.equal(spoken.code, 1);
    assert.ok(spoken.report().failed.byCause.handshake > 0, spoken.stdout);
    assert.match(spoken.stdout, /handshake: "HTTP\/1\.1 400 Bad Request/);
    const { port } = await startSecure(t);
    const unspoken = await runWith(t, '--target', `127.0.0.1:${port}`, ...args);
    assert.equal(unspoken.code, 1);
    assert.ok(unspoken.report().failed.byCause.status > 0, unspoken.stdout);
  });

  test('has options that are wrong without TLS, or together', async (t) => {
    const { cert } = makeCertificate(t);
    const empty = join(temporaryFolder(t), 'empty.pem');
    writeFileSync(empty, 'nothing');
    /** @type {[string[], RegExp][]} */
    const cases = [
      [['--insecure'], /insecure needs tls: add --tls, or give an https:\/\/ target/],
      [['--tls-ca', cert], /tls-ca needs tls/],
      [['--tls', '--insecure', '--tls-ca', cert], /insecure and tls-ca exclude each other/],
      [['--tls', '--tls-ca', empty], /--tls-ca got '.*empty\.pem': expected a file with certificates in PEM/],
      [['--tls', '--tls-ca', '/nowhere'], /--tls-ca got '\/nowhere': expected a file with certificates/],
      [['--target', 'ftp://a:1'], /--target got 'ftp:\/\/a:1': expected a host and its ports/],
    ];
    for (const [args, expected] of cases) {
      const { code, stderr } = await runWith(t, '-n', '1', ...args);
      assert.match(stderr, expected);
      assert.equal(code, 1);
    }
  });

  test('needs the certificates of the system if it gets no others', async (t) => {
    const { port } = await startHolder(t);
    systemTrusts(t, '/nowhere.pem');
    const drone = await startDrone(t, port, '--quiet');
    const answer = await drone.ask('/set?tls=1&n=1', 'POST');
    assert.equal(answer.status, 400);
    assert.match(answer.body.error, /can't read certificates to trust from \/nowhere\.pem.*--tls-ca FILE/);
  });

  test('a drone can be told to speak TLS, and shows no long certificate', async (t) => {
    systemTrusts(t, makeCertificate(t).cert);
    const { port, roots } = await startHolder(t);
    const drone = await startDrone(t, port);
    const query = new URLSearchParams({ tls: '1', 'tls-ca': roots, n: '3' });
    const { status, body } = await drone.ask(`/set?${query}`, 'POST');
    assert.deepEqual(
      [status, body.params.tls, body.params.tlsCa],
      [200, true, '(given)'],
      JSON.stringify(body),
    );
    await drone.untilStats(({ counts }) => counts.open === 3, '3 streams');
    const refused = await drone.ask('/set?tls-ca=', 'POST');
    assert.equal(refused.status, 400);
    assert.match(refused.body.error, /the certificate of 127\.0\.0\.1 is not accepted/);
  });
});
