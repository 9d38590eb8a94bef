/*
 * The server with --tls-cert: certificates that are wrong, and that change while streams are open.
 */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { makeCertificate, NEEDS_TLS, openssl, tlsOptions } from './helpers/certificates.js';
import { get } from './helpers/client.js';
import { frameOf } from './helpers/handover.js';
import { PATH } from './helpers/hub.js';
import { ROOT, startServer, temporaryFolder } from './helpers/server.js';
import { tlsClient } from './helpers/tlsclient.js';
import { hasTmux, openTerminal } from './helpers/tmux.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

const OPTIONS = ['--transport', 'hold', '--workers', '2', '--anonymous'];

/** @param {TestContext} t @param {import('./helpers/certificates.js').Pair[]} pairs @param {string[]} [args] */
const startSecure = (t, pairs, args = []) => startServer(t, [...OPTIONS, ...tlsOptions(...pairs), ...args]);

/** @param {TestContext} t @param {{ port: number }} server @param {import('node:tls').ConnectionOptions} [options] */
async function openStream(t, { port }, options) {
  const request = get({ Accept: 'text/event-stream' }).replace('/ HTTP', '/?channel=news HTTP');
  const client = tlsClient(port, request, options);
  t.after(client.close);
  await client.untilRead(/\r\n\r\n/);
  return client;
}

/** @param {Server} server @param {RegExp} line */
const untilSaid = (server, line) =>
  until(
    () => line.exec(server.output.stderr),
    () => `${line} in ${server.output.stderr}`,
  );

/** Both workers have the certificate of a name. @param {TestContext} t @param {{ port: number }} server @param {string} name */
async function untilAllHave(t, server, name) {
  let inTurn = 0;
  await until(async () => {
    const client = await openStream(t, server);
    inTurn = client.nameOfServer() === name ? inTurn + 1 : 0;
    client.close();
    return inTurn === 10;
  }, `all connections get the certificate of ${name}`);
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** @param {string[]} args @param {RegExp} line */
function assertRefused(args, line) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['server.js', '--port', '0', '--admin-port', '0', '--no-log', '--control', '', ...OPTIONS, ...args],
    { cwd: ROOT, encoding: 'utf8', timeout: 20_000 },
  );
  assert.match(stderr, line);
  assert.equal(stderr.trimEnd().split('\n').length, 1, stderr);
  assert.equal(status, 1);
}

describe('a server with TLS', NEEDS_TLS, () => {
  test('says so at its start, holds streams, and takes publications', async (t) => {
    const server = await startSecure(t, [makeCertificate(t)]);
    assert.match(server.output.stderr, /listening on https:\/\/localhost:\d+ \(TLS 1\.3\)/);
    const client = await openStream(t, server);
    await fetch(`http://127.0.0.1:${server.adminPort}/publish?channel=news`, {
      method: 'POST',
      body: 'hello',
    });
    await client.untilRead(/hello/);
    const post = tlsClient(server.port, get().replace('GET / HTTP', `POST ${PATH} HTTP`));
    t.after(post.close);
    await post.untilRead(/^HTTP\/1\.1 4\d\d /); // nobody may publish there, but the request was understood
    const { handshakes, handshakeFailures } = await server.untilTotals(
      ({ handshakes }) => handshakes === 2,
      'both handshakes',
    );
    assert.deepEqual([handshakes, handshakeFailures], [2, 0]);
    const metrics = await (await server.admin('/metrics')).text();
    assert.match(metrics, /^holdfast_tls_handshakes_total\{worker="1"\} \d$/m);
  });

  test('takes TLS 1.2 with --tls-min-version 1.2', async (t) => {
    const server = await startSecure(t, [makeCertificate(t)], ['--tls-min-version', '1.2']);
    assert.match(server.output.stderr, /\(TLS 1\.2 and 1\.3\)/);
    const client = await openStream(t, server, { maxVersion: 'TLSv1.2' });
    assert.equal(client.socket.getProtocol(), 'TLSv1.2');
  });

  test('has a certificate for each name', async (t) => {
    const server = await startSecure(
      t,
      ['a.example', 'b.example'].map((name) => makeCertificate(t, { names: [name] })),
    );
    const nameFor = async (/** @type {string} */ servername) =>
      (await openStream(t, server, { servername })).nameOfServer();
    assert.equal(await nameFor('b.example'), 'b.example');
    assert.equal(await nameFor('localhost'), 'a.example');
  });

  test('a program of this machine is local, and others are not', async (t) => {
    const server = await startServer(t, [
      ...['--transport', 'hold', '--workers', '1'],
      ...tlsOptions(makeCertificate(t)),
    ]);
    const ask = async (/** @type {Record<string, string>} */ headers) => {
      const client = tlsClient(server.port, get(headers).replace('/ HTTP', `${PATH}?match=news HTTP`));
      t.after(client.close);
      return (await client.untilRead(/^HTTP\/1\.1 (\d\d\d)/))[1];
    };
    assert.equal(await ask({}), '200');
    assert.equal(await ask({ 'X-Forwarded-For': '192.0.2.1' }), '401');
    // A connection that was passed on: the second request on it is answered by node:http, and its response adopted.
    const post = get({ 'Content-Length': '0' }).replace('GET / HTTP', `POST ${PATH} HTTP`);
    const client = tlsClient(server.port, post);
    t.after(client.close);
    await client.untilRead(/^HTTP\/1\.1 405 /);
    client.send(get().replace('/ HTTP', `${PATH}?match=news HTTP`));
    await client.untilRead(/HTTP\/1\.1 200 /);
    const body = new URLSearchParams({ topic: 'news', data: 'hello' });
    await fetch(`http://127.0.0.1:${server.adminPort}${PATH}`, { method: 'POST', body });
    await client.untilRead(/data: ?hello/);
    assert.equal((await server.frame()).totals.inJs, 0);
  });

  test('takes new certificates when their files change, and its streams go on', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair]);
    const client = await openStream(t, server);
    const session = await client.untilSession();
    const next = makeCertificate(t, { names: ['next.example'] });
    copyFileSync(next.cert, pair.cert);
    copyFileSync(next.key, pair.key);
    await untilSaid(server, /new certificate of localhost, next\.example, 127\.0\.0\.1/);
    await untilAllHave(t, server, 'next.example');
    assert.equal((await openStream(t, server, { session })).socket.isSessionReused(), true);
    await fetch(`http://127.0.0.1:${server.adminPort}/publish?channel=news`, {
      method: 'POST',
      body: 'hello',
    });
    await client.untilRead(/hello/);
    assert.doesNotMatch(server.output.stderr, /stay in use/, 'nobody has seen one without the other');
  });

  test('notices links that lead elsewhere, as those of Kubernetes and certbot', async (t) => {
    const folder = temporaryFolder(t);
    for (const [name, names] of /** @type {const} */ ([
      ['one', []],
      ['two', ['two.example']],
    ])) {
      mkdirSync(join(folder, name));
      makeCertificate(t, { names: [...names], folder: join(folder, name) });
    }
    symlinkSync('one', join(folder, '..data'));
    const pair = { cert: join(folder, 'server.pem'), key: join(folder, 'server.key') };
    for (const path of Object.values(pair)) symlinkSync(join('..data', path.slice(folder.length + 1)), path);
    const server = await startSecure(t, [{ ...pair, read: () => ({ cert: '', key: '' }) }]);
    symlinkSync('two', join(folder, '..data_tmp'));
    renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    await untilAllHave(t, server, 'two.example');
  });

  test('SIGHUP reads the certificates again and ends nothing', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair]);
    const client = await openStream(t, server);
    server.child.kill('SIGHUP');
    await untilSaid(server, /the certificates have not changed/);
    const next = makeCertificate(t, { names: ['next.example'] });
    renameSync(next.cert, pair.cert);
    renameSync(next.key, pair.key);
    await until(() => {
      server.child.kill('SIGHUP'); // one that comes right after another one counts as its echo
      return /new certificate of/.test(server.output.stderr);
    }, 'new certificates');
    await untilAllHave(t, server, 'next.example');
    assert.equal(client.closed, false);
  });

  test('a connection of a publisher that waits for its next request does not delay the end', async (t) => {
    const server = await startSecure(t, [makeCertificate(t)], ['--drain', '600000']);
    const request = get({ 'Content-Length': '0' }).replace('GET / HTTP', `POST ${PATH} HTTP`);
    const client = tlsClient(server.port, request);
    t.after(client.close);
    await client.untilRead(/^HTTP\/1\.1 4\d\d [\s\S]*\r\n\r\n/);
    assert.equal((await server.stop()).code, 0);
    assert.equal(client.problem, '');
  });

  test('SIGHUP drains if the terminal of the server was closed', {
    skip: !hasTmux() && 'tmux is not installed',
  }, async (t) => {
    const args = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--no-log', '--control', "''"];
    const words = [...args, ...OPTIONS, ...tlsOptions(makeCertificate(t))];
    const command = `${process.execPath} server.js ${words.join(' ')}`;
    const terminal = openTerminal(t, { columns: 200, rows: 40, command });
    const screen = await terminal.untilShown(/listening on https\S+ \(TLS 1\.3\); dashboard on http:\S+:\d+/);
    const adminPort = Number(/dashboard on http:\S+:(\d+)/.exec(screen)?.[1]);
    const frame = await until(() => frameOf(adminPort).catch(() => null), 'a frame');
    terminal.close();
    await until(() => !isAlive(frame.primary.pid), 'its end');
  });

  test('SIGHUP drains with --sighup drain', async (t) => {
    const server = await startSecure(t, [makeCertificate(t)], ['--sighup', 'drain']);
    server.child.kill('SIGHUP');
    assert.equal((await server.exit).code, 0);
  });

  test('with --sighup reload, other workers get new certificates too', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair], ['--sighup', 'reload']);
    const client = await openStream(t, server);
    const next = makeCertificate(t, { names: ['next.example'] });
    copyFileSync(next.cert, pair.cert);
    copyFileSync(next.key, pair.key);
    server.child.kill('SIGHUP');
    await untilSaid(server, /reloaded 2 of 2 workers/);
    await untilAllHave(t, server, 'next.example');
    assert.equal(client.closed, false);
  });

  test('keeps a pair out that does not fit together, with one line, and takes the next one', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair]);
    const next = makeCertificate(t, { names: ['next.example'] });
    copyFileSync(next.cert, pair.cert);
    const line =
      /--tls-key \S+ does not belong to --tls-cert \S+: .*; the certificates from before stay in use/g;
    await untilSaid(server, line);
    assert.equal((await openStream(t, server)).nameOfServer(), 'localhost');
    copyFileSync(next.key, pair.key);
    await untilAllHave(t, server, 'next.example');
    assert.equal(server.output.stderr.match(line)?.length, 1);
    writeFileSync(pair.key, '');
    server.child.kill('SIGHUP');
    await untilSaid(server, /--tls-key \S+ has no key: .*; the certificates from before stay in use/);
    assert.equal((await openStream(t, server)).nameOfServer(), 'next.example');
  });

  test('a certificate that becomes a pipe does not keep it from taking the next one', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair]);
    unlinkSync(pair.cert);
    execFileSync('mkfifo', [pair.cert]);
    server.child.kill('SIGHUP');
    await untilSaid(server, /is no regular file; the certificates from before stay in use/);
    const next = makeCertificate(t, { names: ['next.example'] });
    renameSync(next.key, pair.key);
    renameSync(next.cert, pair.cert);
    await untilAllHave(t, server, 'next.example');
  });

  test('gives a worker that is started again the newest certificates', async (t) => {
    const pair = makeCertificate(t);
    const server = await startSecure(t, [pair]);
    const next = makeCertificate(t, { names: ['next.example'] });
    copyFileSync(next.cert, pair.cert);
    copyFileSync(next.key, pair.key);
    await untilSaid(server, /new certificate of/);
    for (const pid of server.workerPids) process.kill(pid, 'SIGKILL');
    await untilSaid(server, /worker 1 \(pid \d+\) is listening/);
    await untilSaid(server, /worker 2 \(pid \d+\) is listening/);
    await untilAllHave(t, server, 'next.example');
  });

  test('mentions a certificate that expires soon', async (t) => {
    const server = await startSecure(t, [makeCertificate(t, { days: 3 })]);
    await untilSaid(server, /--tls-cert \S+ expires in [23] days, on \d{4}-\d\d-\d\d: renew it/);
  });

  test('does not start with certificates that it can not use, and says why in one line', (t) => {
    const good = makeCertificate(t);
    const other = makeCertificate(t);
    const of = (/** @type {string} */ cert, /** @type {string} */ key) => [
      '--tls-cert',
      cert,
      '--tls-key',
      key,
    ];
    assertRefused(
      of('/nowhere.pem', good.key),
      /^holdfast: --tls-cert \/nowhere\.pem: there is no such file$/m,
    );
    assertRefused(of(good.cert, temporaryFolder(t)), /--tls-key \S+: it can't be read \(EISDIR\)/);
    const pipe = join(temporaryFolder(t), 'pipe'); // nobody ever writes to it
    execFileSync('mkfifo', [pipe]);
    assertRefused(of(pipe, good.key), /--tls-cert \S+ is no regular file/);
    assertRefused(of(good.cert, '/dev/zero'), /--tls-key \S+ is no regular file/);
    assertRefused(of(good.key, good.key), /--tls-cert \S+ has no certificate: expected '-----BEGIN/);
    assertRefused(of(good.cert, good.cert), /--tls-key \S+ has no key: expected '-----BEGIN/);
    assertRefused(of(good.cert, other.key), /--tls-key \S+ does not belong to --tls-cert \S+: /);
    assertRefused(['--tls-cert', good.cert], /--tls-cert and --tls-key need each other/);
    assertRefused([...tlsOptions(good), '--tls-cert', other.cert], /there are 2 --tls-cert and 1 --tls-key/);
    const encrypted = join(temporaryFolder(t), 'encrypted.key');
    openssl('pkey', '-in', good.key, '-aes256', '-passout', 'pass:secret', '-out', encrypted);
    assertRefused(of(good.cert, encrypted), /--tls-key \S+ is encrypted, .*: decrypt it/);
    const folder = temporaryFolder(t);
    const [cert, key] = [join(folder, 'koblitz.pem'), join(folder, 'koblitz.key')];
    openssl(
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:secp256k1', '-nodes', '-batch'],
      ...['-subj', '/CN=localhost', '-days', '30', '-keyout', key, '-out', cert],
    );
    assertRefused(of(cert, key), /^holdfast: --tls-cert \S+koblitz\.pem: /);
    writeFileSync(good.cert, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n');
    assertRefused(of(good.cert, good.key), /--tls-cert \S+ has a damaged certificate/);
  });

  test('does not start with an expired certificate', (t) => {
    const pair = makeCertificate(t, { days: -1 });
    assertRefused(tlsOptions(pair), /--tls-cert \S+ expired at \d{4}-/);
  });

  test('does not start with a key that it may not read', {
    skip: process.getuid?.() === 0 && 'root may read everything',
  }, (t) => {
    const pair = makeCertificate(t);
    chmodSync(pair.key, 0);
    assertRefused(tlsOptions(pair), /--tls-key \S+: it can't be read \(EACCES\)/);
  });

  test('needs the native core', (t) => {
    assertRefused(
      ['--transport', 'http', ...tlsOptions(makeCertificate(t))],
      /^holdfast: --tls-cert needs the hold transport, not http: put a proxy in front/,
    );
  });
});
