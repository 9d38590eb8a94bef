/*
 * Whole programs with a `Hold`: how they end, and which warnings they get. They run with the native core and without.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { get as getHttp } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { chunksOf, get, leavingClient, rawClient } from './helpers/client.js';
import { KINDS, listening, NEEDS_NATIVE } from './helpers/hold.js';
import { ROOT, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/**
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind
 * @param {string[]} args
 * @param {Record<string, string>} [env]
 */
function runProgram(t, kind, args, env = {}) {
  const switches = kind === 'JS' ? { HOLDFAST_NATIVE: 'off' } : {};
  return run(t, process.execPath, args, { env: { ...process.env, ...switches, ...env } });
}

const NEWS = get().replace('/ HTTP', '/news HTTP');

/**
 * The program in the guide.
 * @param {import('node:test').TestContext} t
 * @param {import('./helpers/hold.js').Kind} kind
 * @param {string} [name] of the fixture
 */
async function startReadme(t, kind, name = 'own.js') {
  const program = runProgram(t, kind, [`test/fixtures/${name}`], { PORT: '0' });
  const port = await until(
    () => Number(/port: (\d+)/.exec(program.output.stdout)?.[1]),
    () => `a port in ${program.output.stderr}`,
  );
  return { program, port };
}

/** @param {number} port @param {string} body @param {Record<string, string>} headers */
function publish(port, body, headers) {
  return fetch(`http://127.0.0.1:${port}/news`, { method: 'POST', body, headers });
}

/**
 * nginx with a plain proxy_pass.
 * @param {import('node:test').TestContext} t
 * @param {number} port of the server behind it
 * @returns {string | null} the path of its Unix socket; null if it is not installed
 */
function startNginx(t, port) {
  if (spawnSync('nginx', ['-v']).error) return null;
  const folder = temporaryFolder(t);
  const config = join(folder, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path temp;`,
  );
  writeFileSync(
    config,
    `daemon off; master_process off; pid pid; error_log stderr; events {}
     http {
       access_log off; ${temporary.join(' ')}
       server { listen unix:${folder}/socket; location / { proxy_pass http://127.0.0.1:${port}; } }
     }`,
  );
  run(t, 'nginx', ['-p', folder, '-c', config, '-e', 'stderr']);
  return join(folder, 'socket');
}

/** @param {import('./helpers/hold.js').Kind} kind @param {string} stderr of a program that has a Hold */
function assertWarnings(kind, stderr) {
  if (kind === 'native') return assert.equal(stderr, '');
  assert.match(
    stderr,
    /^\(node:\d+\) \[NO_NATIVE\] HoldfastWarning: native core unavailable \(HOLDFAST_NATIVE is off\): [^\n]*\n\(Use `node --trace-warnings[^\n]*\n$/,
  );
}

for (const kind of KINDS) {
  describe(`a program with a Hold (${kind})`, () => {
    for (const mode of ['close', 'exit', 'worker', 'cluster']) {
      test(`holds and adopts, and ends properly in the mode '${mode}'`, async (t) => {
        const program = runProgram(t, kind, ['test/fixtures/embedded.js', mode]);
        const { output, child } = program;
        const port = await until(
          () => Number(/^port (\d+)/m.exec(output.stdout)?.[1]),
          () => `a port in ${output.stderr}`,
        );
        const held = rawClient(port, get());
        await held.untilRead(/Welcome!/);
        const adopted = rawClient(port, get().replace('/ HTTP', '/adopted HTTP'));
        for (const client of [held, adopted]) await client.untilRead(/published/);
        assert.deepEqual(chunksOf(adopted.received), ['adopted ', 'published']);
        // Nothing but the Hold keeps it alive.
        assert.equal(child.exitCode, null);
        child.kill('SIGUSR2');
        assert.deepEqual(await program.exit, { code: 0, signal: null });
        for (const client of [held, adopted]) await client.untilClosed();
        assertWarnings(kind, output.stderr);
        if (mode === 'worker') assert.match(output.stdout, /ended with 1/);
        if (mode === 'cluster') assert.match(output.stdout, /left with 0/);
        if (mode !== 'exit' && mode !== 'worker') assert.match(output.stdout, /closed/);
      });
    }

    test('that never listens is not kept alive by the Hold', async (t) => {
      const program = runProgram(t, kind, ['test/fixtures/embedded.js', 'idle']);
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      assertWarnings(kind, program.output.stderr);
    });

    test('works as in the guide', async (t) => {
      const { program, port } = await startReadme(t, kind);
      const clients = [1, 2].map(() => rawClient(port, NEWS));
      for (const client of clients) {
        await client.untilRead(/event: welcome\ndata: Hello!\n\n/);
        assert.match(
          client.received,
          /Content-Type: text\/event-stream\r\nCache-Control: no-store\r\nX-Accel-Buf/,
        );
      }
      // As curl -d sends it, as fetch does, and as bytes.
      for (const type of ['application/x-www-form-urlencoded', 'text/plain', 'application/octet-stream']) {
        const response = await publish(port, type, { 'Content-Type': type });
        assert.equal(response.status, 202);
        for (const client of clients) await client.untilRead(new RegExp(`data: ${type}\n\n`));
      }
      const empty = await fetch(`http://127.0.0.1:${port}/news`, { method: 'POST' });
      assert.equal(empty.status, 500);
      assert.match(await empty.text(), /a message must be a string, bytes or an object .*, not undefined/);
      for (const client of clients) assert.doesNotMatch(client.received, /undefined/);
      program.child.kill('SIGTERM');
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      for (const client of clients) await client.untilClosed();
    });

    test('as in the guide survives clients that leave at any moment', async (t) => {
      const { program, port } = await startReadme(t, kind);
      const clients = Array.from({ length: 300 }, (_, i) => leavingClient(port, NEWS, i));
      for (const client of clients) await client.untilClosed();
      const head = rawClient(port, NEWS.replace('GET', 'HEAD'));
      await head.untilRead(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
      const last = rawClient(port, NEWS);
      await last.untilRead(/event: welcome/);
      head.close();
      program.child.kill('SIGTERM');
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      assertWarnings(kind, program.output.stderr);
    });

    test('as in the guide has WebSockets and polls', async (t) => {
      const { program, port } = await startReadme(t, kind, 'sockets.js');
      const client = new WebSocket(`ws://127.0.0.1:${port}/news`);
      /** @type {string[]} */
      const heard = [];
      client.onmessage = ({ data }) => void heard.push(String(data));
      await until(() => heard.length === 1, 'the welcome');
      const poll = rawClient(port, NEWS);
      t.after(poll.close);
      await until(() => {
        client.send('from a client');
        return poll.received !== '';
      }, 'an answer');
      await poll.untilRead(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n\{"messages":\[\{"data":"from a client"\}/);
      await until(() => heard.length > 1, 'its own message');
      assert.deepEqual(heard.slice(0, 2), ['Hello!', 'from a client']);
      const closed = new Promise((resolve) => client.once('close', resolve));
      program.child.kill('SIGTERM');
      assert.equal(await closed, 1001);
      poll.close();
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      assertWarnings(kind, program.output.stderr);
    });

    test('as in the guide delivers at once behind nginx', async (t) => {
      const { port } = await startReadme(t, kind);
      const socketPath = startNginx(t, port);
      if (!socketPath) return t.skip('nginx is not installed (Debian: nginx-light)');
      let body = '';
      const request = await until(
        () =>
          new Promise((resolve) => {
            const asked = getHttp({ socketPath, path: '/news' });
            asked.on('error', () => resolve(null)); // it has not started yet
            asked.on('response', (response) => {
              response.on('data', (data) => {
                body += data;
              });
              resolve(asked);
            });
          }),
        'an answer',
      );
      const untilBody = (/** @type {string} */ text) =>
        until(() => body.includes(text), `${text} in ${body}`);
      await untilBody('event: welcome\ndata: Hello!\n\n');
      await publish(port, 'small', {});
      await untilBody('data: small\n\n');
      request.destroy();
    });
  });
}

test('the programs in the guide are those that are tested', () => {
  for (const name of ['own.js', 'sockets.js']) {
    const text = readFileSync(join(ROOT, 'test/fixtures', name), 'utf8');
    const program = text.replace(/^\/\*[\s\S]*?\*\/\n/, '');
    assert.ok(readFileSync(join(ROOT, 'docs/guide.md'), 'utf8').includes(`\`\`\`js\n${program}\`\`\``), name);
  }
});

test('a program in CommonJS can require it, without a warning', async (t) => {
  const script =
    "const { Hold } = require('holdfast'); new Hold().close().then(() => console.log('closed'));";
  const program = runProgram(t, KINDS[0], ['--input-type=commonjs', '--eval', script]);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.equal(program.output.stdout, 'closed\n');
  assertWarnings(KINDS[0], program.output.stderr);
});

test('a value of HOLDFAST_NATIVE that means nothing is ignored, and one warning says so', async (t) => {
  const env = { HOLDFAST_NATIVE: 'of' };
  const program = runProgram(t, 'native', ['--input-type=module', '--eval', TWO_HOLDS], env);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  const { stderr } = program.output;
  assert.match(stderr, /\[UNKNOWN_SETTING\] HoldfastWarning: HOLDFAST_NATIVE=of is ignored: set it to off /);
  assert.equal(stderr.match(/UNKNOWN_SETTING/g)?.length, 1);
});

const TWO_HOLDS = `
  import { Hold } from 'holdfast';
  for (const shards of [1, 2, 2]) {
    const hold = new Hold({ shards });
    console.log(hold.isNative, hold.hasOwnTables);
    await hold.close();
  }
`;

test('one warning says why there is no native core, however many Holds there are', async (t) => {
  const program = runProgram(t, 'JS', ['--input-type=module', '--eval', TWO_HOLDS]);
  assert.deepEqual(await program.exit, { code: 0, signal: null });
  assert.equal(program.output.stdout, 'false false\n'.repeat(3));
  assertWarnings('JS', program.output.stderr);
});

describe('without separate descriptor tables', NEEDS_NATIVE, () => {
  const args = ['--input-type=module', '--eval', TWO_HOLDS];

  test('a process whose shards share one gets one warning', async (t) => {
    const program = runProgram(t, 'native', args, { HOLDFAST_UNSHARE: 'off' });
    assert.deepEqual(await program.exit, { code: 0, signal: null });
    assert.equal(program.output.stdout, 'true false\n'.repeat(3));
    const { stderr } = program.output;
    assert.match(stderr, /\[SHARED_DESCRIPTORS\] HoldfastWarning: the shards share one descriptor table/);
    assert.equal(stderr.match(/HoldfastWarning/g)?.length, 1);
  });

  test('if a shard can not listen, none does; a later attempt succeeds', async (t) => {
    if (spawnSync('prlimit', ['--version']).error) return t.skip('prlimit is not installed (util-linux)');
    const server = createServer();
    const port = await listening(t, server);
    await new Promise((resolve) => server.close(() => resolve(undefined)));
    const program = runProgram(t, 'native', ['test/fixtures/descriptors.js', String(port)], {
      HOLDFAST_UNSHARE: 'off',
    });
    assert.deepEqual(await program.exit, { code: 0, signal: null });
    assert.equal(program.output.stdout, 'failed: EMFILE\nrefused: true\nlistens: true\n');
  });
});
