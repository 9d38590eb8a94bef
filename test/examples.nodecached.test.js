/*
 * examples/nodecached/server.js as a program: how values and lines may be split, limits, threads, and how it ends.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { test } from 'node:test';
import { NOTHING, STEPS } from '../examples/nodecached/steps.js';
import { open, startCached, talk } from './helpers/nodecached.js';
import { ROOT } from './helpers/server.js';
import { until } from './helpers/until.js';

const MB = 1024 * 1024;

/** @param {string} key @param {string} value */
const set = (key, value) => `set ${key} 0 0 ${value.length}\r\n${value}\r\n`;

/** @param {number} port @returns {Promise<Record<string, number>>} */
async function stats(port) {
  const text = await talk(port, 'stats\r\n');
  return Object.fromEntries(
    [...text.matchAll(/STAT (\w+) (\d+)/g)].map(([, name, value]) => [name, Number(value)]),
  );
}

/** @param {number} pid @returns {number} resident memory, in MB */
const residentMb = (pid) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

test('commands may be split at every byte', async (t) => {
  const { port } = await startCached(t);
  const sent = `${set('a', 'x\r\ny')}get a b\r\nset a 0 0 3 noreply\r\nabc\r\nappend a 0 0 1\r\nd\r\nms m 2 k\r\nhi\r\nmg m v\r\nget a\r\n`;
  const whole = await talk(port, sent);
  assert.equal(
    whole,
    'STORED\r\nVALUE a 0 4\r\nx\r\ny\r\nEND\r\nSTORED\r\nHD km\r\nVA 2\r\nhi\r\nVALUE a 0 4\r\nabcd\r\nEND\r\n',
  );
  assert.equal(await talk(port, sent, (text) => [...text]), whole);
  for (let at = 1; at < sent.length; at++)
    assert.equal(await talk(port, sent, (text) => [text.slice(0, at), text.slice(at)]), whole, `at ${at}`);
});

test('values of 1 MB are refused, those just below are kept', async (t) => {
  const { port } = await startCached(t);
  const large = 'l'.repeat(MB - 200);
  assert.equal(
    await talk(port, `${set('a', large)}get a\r\n`),
    `STORED\r\nVALUE a 0 ${large.length}\r\n${large}\r\nEND\r\n`,
  );
  const tooLarge = set('a', 'l'.repeat(MB));
  const refused = 'SERVER_ERROR object too large for cache\r\n';
  assert.equal(await talk(port, `${tooLarge}get a\r\n`), `${refused}END\r\n`);
  assert.equal(
    await talk(port, `${tooLarge}version\r\n`, (text) => [text.slice(0, 5000), text.slice(5000)]),
    `${refused}VERSION 1.6.18\r\n`,
  );
});

test('items expire after their time, and not before', async (t) => {
  const { port } = await startCached(t);
  await talk(
    port,
    `set a 0 1 1\r\nx\r\nset b 0 -1 1\r\nx\r\nset c 0 ${Math.floor(Date.now() / 1000) + 100} 1\r\nx\r\nset d 0 100 1\r\nx\r\n`,
  );
  assert.match(await talk(port, 'get b c d\r\n'), /^VALUE c 0 1\r\nx\r\nVALUE d 0 1\r\nx\r\nEND\r\n$/);
  await until(async () => (await talk(port, 'get a\r\n')) === 'END\r\n', 'a has expired', 10_000);
  assert.match(await talk(port, 'mg d t\r\n'), /^HD t(100|9\d)\r\n$/);
});

test('flush_all with a delay removes what is there then', async (t) => {
  const { port } = await startCached(t);
  assert.equal(
    await talk(port, `${set('a', 'x')}flush_all 2\r\nget a\r\n`),
    'STORED\r\nOK\r\nVALUE a 0 1\r\nx\r\nEND\r\n',
  );
  await until(async () => (await talk(port, 'get a\r\n')) === 'END\r\n', 'a is gone', 10_000);
  await until(
    async () => (await talk(port, `${set('b', 'y')}get b\r\n`)).includes('VALUE b'),
    'b stays',
    10_000,
  );
});

test('the items used last stay when memory is full', async (t) => {
  const { port } = await startCached(t, ['-m', '4']);
  const value = 'v'.repeat(1000);
  await talk(port, set('kept', value));
  for (let i = 0; i < 100; i++) {
    const part = Array.from({ length: 100 }, (_, k) => set(`key${i * 100 + k}`, value)).join('');
    await talk(port, `${part}get kept\r\n`);
  }
  const { curr_items: items, evictions, bytes } = await stats(port);
  assert.match(await talk(port, 'get kept\r\nget key9999\r\n'), /VALUE kept .*VALUE key9999/s);
  assert.equal(await talk(port, 'get key0\r\n'), 'END\r\n');
  assert.equal(items + evictions, 10_001);
  assert.ok(items > 3000 && bytes <= 4 * MB, `${items} items of ${bytes} bytes`);
});

test('pages move to the sizes that are stored', async (t) => {
  const { port } = await startCached(t, ['-m', '3']);
  for (const length of [100, 5000, 100_000, 1_000_000, 10]) {
    const value = 'v'.repeat(length);
    for (let i = 0; i < 40; i++)
      assert.equal(
        await talk(port, `${set(`k${i}`, value)}get k${i}\r\n`),
        `STORED\r\nVALUE k${i} 0 ${length}\r\n${value}\r\nEND\r\n`,
      );
  }
  assert.ok((await stats(port)).slabs_moved > 0);
});

test('memory does not follow the number of sets', async (t) => {
  const { port, pid } = await startCached(t, ['-m', '16']);
  const fill = async () => {
    for (let i = 0; i < 60; i++)
      await talk(port, Array.from({ length: 1000 }, (_, k) => set(`key${i}:${k}`, 'v'.repeat(900))).join(''));
  };
  await fill();
  const before = residentMb(pid);
  await fill();
  await fill();
  const after = residentMb(pid);
  assert.ok(after < before + 24, `${before} MB, then ${after} MB`);
});

/**
 * A client that reads nothing until the server has stopped answering, and everything then.
 * @param {import('node:test').TestContext} t
 * @param {string} request
 * @param {number} length of all answers
 */
async function readLate(t, request, length) {
  const { port, pid } = await startCached(t);
  await talk(port, set('a', 'v'.repeat(100_000)));
  const before = residentMb(pid);
  const socket = connect(port, '127.0.0.1').pause();
  t.after(() => void socket.destroy());
  socket.write(request);
  let written = 0;
  await until(async () => {
    const last = written;
    written = (await stats(port)).bytes_written;
    return written > 1_000_000 && written - last < 10_000; // only the answers to us
  }, 'it stops');
  assert.equal(await talk(port, 'get b\r\n'), 'END\r\n');
  assert.ok(
    written < length / 2 && residentMb(pid) < before + 40,
    `${before} MB, then ${residentMb(pid)} MB`,
  );
  let received = 0;
  socket.on('data', (data) => {
    received += data.length;
  });
  socket.resume();
  await until(
    () => received >= length,
    () => `all answers: ${received} of ${length}`,
  );
  assert.equal(received, length);
}

const ANSWER_BYTES = 'VALUE a 0 100000\r\n\r\n'.length + 100_000;
const END_BYTES = 'END\r\n'.length;

test('a client that does not read its answers is not read either', (t) =>
  readLate(t, 'get a a\r\n'.repeat(500), 500 * (2 * ANSWER_BYTES + END_BYTES)));

test('one long get stops while its answers do not drain', (t) =>
  readLate(t, `get${' a'.repeat(1000)}\r\n`, 1000 * ANSWER_BYTES + END_BYTES));

test('a line without end is refused', async (t) => {
  const { port } = await startCached(t);
  const { socket, until: waitFor } = await open(port);
  socket.write('x'.repeat(3000));
  assert.equal(await waitFor('never'), '');
  const long = await open(port);
  long.socket.write('get ');
  for (let i = 0; i < 40; i++) long.socket.write('k'.repeat(50_000));
  assert.match(await long.until('never'), /^CLIENT_ERROR line too long\r\n$|^$/);
});

test('more connections than -c are told so, as memcached does', async (t) => {
  const { port } = await startCached(t, ['-c', '2']);
  const [first] = await Promise.all([open(port), open(port)]);
  first.socket.write('version\r\n');
  await first.until('\r\n');
  const third = await open(port);
  assert.equal(await third.until('never'), 'ERROR Too many open connections\r\n');
  first.socket.destroy();
  await until(async () => (await talk(port, 'get a\r\n')) === 'END\r\n', 'there is room again');
});

test('quit closes the connection, after the answers before it', async (t) => {
  const { port } = await startCached(t);
  const { socket, until: waitFor } = await open(port);
  socket.write(`${set('a', 'x')}quit\r\nget a\r\n`);
  assert.equal(await waitFor('never'), 'STORED\r\n');
});

test('threads see the items of each other', async (t) => {
  const { port } = await startCached(t, ['-t', '3']);
  const talks = await Promise.all(Array.from({ length: 24 }, () => open(port)));
  const all = talks.map(async ({ socket, until: waitFor }, i) => {
    const sent = Array.from({ length: 200 }, (_, k) => set(`k${i}:${k}`, `${i}:${k}`)).join('');
    socket.write(`${sent}incr n 1\r\nmn\r\n`);
    await waitFor('MN\r\n');
  });
  await talk(port, set('n', '0'));
  await Promise.all(all);
  const keys = Array.from({ length: 24 }, (_, i) =>
    Array.from({ length: 200 }, (__, k) => `k${i}:${k}`),
  ).flat();
  const found = await talk(port, `get ${keys.join(' ')}\r\n`);
  assert.equal(found.match(/VALUE/g)?.length, keys.length);
  assert.equal((await stats(port)).curr_items, keys.length + 1);
});

test('no increment is lost between threads', async (t) => {
  const { port } = await startCached(t, ['-t', '3']);
  await talk(port, set('n', '0'));
  await Promise.all(
    Array.from({ length: 20 }, () =>
      talk(port, 'incr n 1\r\n'.repeat(500), (text) => text.match(/.{1,700}/gs) ?? []),
    ),
  );
  assert.match(await talk(port, 'get n\r\n'), /\r\n10000\r\n/);
});

for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT'])) {
  test(`${signal} ends it with status 0, with clients and threads`, async (t) => {
    const { port, child, exit } = await startCached(t, ['-t', '2']);
    const { socket } = await open(port);
    child.kill(signal);
    assert.deepEqual(await exit, { code: 0, signal: null });
    if (!socket.destroyed) await once(socket, 'close');
  });
}

/** @param {string[]} args */
const runServer = (...args) =>
  spawnSync(process.execPath, ['examples/nodecached/server.js', ...args], { cwd: ROOT, encoding: 'utf8' });

test('wrong options are explained in one line, with status 1', () => {
  for (const [args, message] of /** @type {[string[], RegExp][]} */ ([
    [['-p', '99999'], /--port: got '99999', expected a whole number from 0 to 65535/],
    [['--memory-limit', 'x'], /--memory-limit: got 'x'/],
    [['-t', '4', '-m', '2'], /--memory-limit: got 2, expected at least 1 per thread/],
    [['--budget', 'parse'], /--budget: got 'parse', expected a step and a time such as parse=4us/],
    [['--nonsense'], /--nonsense/],
  ])) {
    const { status, stderr } = runServer(...args);
    assert.equal(status, 1, args.join(' '));
    assert.match(stderr, message);
    assert.doesNotMatch(stderr, /\n {4}at /);
  }
});

test('--help and --version say what they should', () => {
  assert.match(runServer('--help').stdout, /-m, --memory-limit MB .*default 64/);
  assert.match(runServer('--version').stdout, /^nodecached, .* memcached 1\.6\.18 /);
});

test('--profile prints what the steps of requests take', async (t) => {
  const { port, child, exit, output } = await startCached(t, ['--profile', '--budget', 'find=1ns']);
  await talk(port, `${set('a', 'x')}get a\r\n`);
  child.kill('SIGTERM');
  assert.equal((await exit).code, 0);
  assert.match(output.stderr, /^!! {2}find +1 ns /m);
});

for (const { name, file } of [...STEPS, NOTHING]) {
  test(`the step ${name} answers set and get`, async (t) => {
    const { port, child, exit } = await startCached(t, ['-l', '127.0.0.1', '-c', '10', '-m', '8'], file);
    const { socket, until: waitFor } = await open(port);
    const value = 'x'.repeat(100);
    socket.write(set('a', value));
    assert.equal(await waitFor('\r\n'), 'STORED\r\n');
    for (const part of ['ge', 't a\r\nget a\r\n']) socket.write(part);
    const answer = `VALUE a 0 100\r\n${value}\r\nEND\r\n`;
    assert.equal(await waitFor(answer + answer), answer + answer);
    child.kill('SIGTERM');
    assert.equal((await exit).code, 0);
  });
}
