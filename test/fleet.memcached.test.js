import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { buildGenerator } from '../fleet/requests/memcached/generator.js';
import { reportOf, reportText } from '../fleet/requests/memcached/report.js';
import { findCommand } from '../scripts/lab/install.js';
import { noMemcached, serveCache, startMemcached } from './helpers/memcached.js';
import { quietPort } from './helpers/port.js';
import { ROOT, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('../fleet/requests/memcached/report.js').CacheReport} CacheReport */

before(() => buildGenerator());

/** @param {TestContext} t @param {string[]} args */
const start = (t, ...args) => run(t, process.execPath, ['fleet/cli.js', 'requests', ...args]);

/** @param {TestContext} t @param {string[]} args @returns {Promise<{ code: number | null, stdout: string, stderr: string }>} */
async function requests(t, ...args) {
  const { exit, output } = start(t, ...args);
  return { code: (await exit).code, ...output };
}

/** @param {TestContext} t @param {number | string} server its port, or a URL @param {string[]} args @returns {Promise<CacheReport & { code: number | null }>} */
async function report(t, server, ...args) {
  const url = typeof server === 'string' ? server : `memcached://127.0.0.1:${server}`;
  const { code, stdout, stderr } = await requests(t, url, ...args, '--json', '--quiet');
  assert.equal(stderr, '');
  return { code, ...JSON.parse(stdout) };
}

/** @param {Record<string, number>} counts @returns {Record<string, number>} without zeroes */
const nonZero = (counts) => Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));

/** Answers as memcached does. @param {Map<string, string>} stored @returns {import('./helpers/memcached.js').Answering} */
const honest = (stored) => (name, key, value) => {
  if (name === 'set') stored.set(key, value);
  if (name === 'set') return 'STORED\r\n';
  return name === 'get' && stored.has(key) ? hit(key, stored.get(key)) : 'END\r\n';
};

/** @param {string} key @param {string} [value] */
const hit = (key, value = '') => `VALUE ${key} 0 ${value.length}\r\n${value}\r\nEND\r\n`;

/** @param {TestContext} t @param {(gets: number, key: string, value: string) => string | null} lie about the gets, counted from 1 */
const serveLies = (t, lie) =>
  serveCache(t, (stored) => {
    const answer = honest(stored);
    let gets = 0;
    return (name, key, value) =>
      name === 'get' ? lie(++gets, key, stored.get(key) ?? '') : answer(name, key, value);
  });

test('every get finds the value that was set before', { skip: noMemcached }, async (t) => {
  const port = await startMemcached(t);
  const { code, stdout } = await requests(t, `memcached://127.0.0.1:${port}`, '-c', '20', '-n', '20000');
  assert.equal(code, 0);
  assert.match(stdout, /^Server Software: {8}version \d/m);
  assert.match(stdout, /^Server Port: {12}\d+\n\nProtocol: {15}memcached\n/m);
  assert.match(stdout, /^Concurrency Level: {6}20$/m);
  assert.match(
    stdout,
    /^Complete requests: {6}20000\nFailed requests: {8}0\nHits: {19}20000\nMisses: {17}0$/m,
  );
  assert.match(stdout, /^Client CPU: {13}\d+\.\d % of a core, \d+\.\d\d us per request$/m);
  assert.match(stdout, /^99\.9% +\d+\.\d+\n 100% +\d+\.\d+ \(longest request\)$/m);
});

test('sets and mixed operations reach the server, in batches too', { skip: noMemcached }, async (t) => {
  const port = await startMemcached(t);
  const set = await report(t, port, '--op', 'set', '-n', '5000', '-c', '7', '--pipeline', '32');
  assert.deepEqual([set.code, set.result.stored, set.result.complete], [0, 5000, 5000]);
  const mixed = await report(t, port, '--op', 'mixed', '-n', '20000', '--pipeline', '16');
  assert.deepEqual([mixed.code, mixed.result.hits + mixed.result.stored], [0, 20_000]);
  const share = mixed.result.stored / 20_000;
  assert.ok(share > 0.08 && share < 0.12, `${share} of the requests were sets`);
});

test('the server counts the same requests as the client', { skip: noMemcached }, async (t) => {
  const port = await startMemcached(t);
  await report(t, port, '-n', '3000', '--keys', '500', '--pipeline', '8', '-c', '4');
  const { stdout } = spawnSync('bash', [
    '-c',
    `exec 3<>/dev/tcp/127.0.0.1/${port}; printf 'stats\\r\\nquit\\r\\n' >&3; cat <&3`,
  ]);
  const stat = (/** @type {string} */ name) =>
    Number(new RegExp(`STAT ${name} (\\d+)`).exec(String(stdout))?.[1]);
  assert.deepEqual(['get_hits', 'cmd_set', 'curr_items', 'get_misses'].map(stat), [3000, 500, 500, 0]);
});

test('values of any size are checked, however they are split', { skip: noMemcached }, async (t) => {
  const port = await startMemcached(t, '-m', '256');
  for (const size of ['0', '1', '1000', '300000']) {
    const { code, result } = await report(
      t,
      port,
      '-n',
      '200',
      '--keys',
      '20',
      '--value-size',
      size,
      '-c',
      '3',
    );
    assert.deepEqual([code, result.hits, result.wrong], [0, 200, 0], size);
  }
});

test('a server that forgets has misses, and the run fails', { skip: noMemcached }, async (t) => {
  const port = await startMemcached(t, '-m', '8');
  const { code, result, notes } = await report(
    t,
    port,
    '-n',
    '2000',
    '--keys',
    '2000',
    '--value-size',
    '50000',
  );
  assert.equal(code, 1);
  assert.ok(result.misses > 0 && result.misses + result.hits === 2000);
  assert.match(notes.join('\n'), /gets found nothing .* too little memory for --keys and --value-size/);
});

test('a value that is too large for the server ends the run before it measures', {
  skip: noMemcached,
}, async (t) => {
  const port = await startMemcached(t);
  const { code, result, notes } = await report(t, port, '--value-size', '2000000', '--keys', '3', '-n', '10');
  assert.deepEqual([code, result.phase, result.errors], [1, 'fill', 3]);
  assert.match(
    notes.join('\n'),
    /Nothing was measured: .* setting the 3 keys.*SERVER_ERROR object too large/s,
  );
});

test('a Unix socket can be loaded', { skip: noMemcached }, async (t) => {
  const path = join(temporaryFolder(t), 'socket');
  const user = process.getuid?.() === 0 ? ['-u', 'root'] : [];
  run(t, findCommand('memcached'), ['-s', path, ...user]);
  await until(() => existsSync(path), 'memcached listens');
  const { code, result } = await report(t, `memcached://${path}`, '-n', '1000', '-c', '5');
  assert.deepEqual([code, result.hits], [0, 1000]);
});

const noRedis = findCommand('redis-server') ? false : 'redis-server is not installed (Debian: redis-server)';

test('redis is loaded in its own protocol', { skip: noRedis }, async (t) => {
  const port = await quietPort();
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', temporaryFolder(t)];
  const { output } = run(t, findCommand('redis-server'), args);
  await until(() => output.stdout.includes('Ready to accept'), 'redis listens');
  const { code, result } = await report(t, `redis://localhost:${port}`, '--op', 'mixed', '-n', '5000');
  assert.deepEqual([code, result.hits + result.stored], [0, 5000]);
  assert.match(result.server, /^redis \d/);
});

test('a wrong value, key or length is noticed each time', async (t) => {
  const lies = [
    (/** @type {string} */ key, /** @type {string} */ value) => hit(key, `?${value.slice(1)}`),
    (/** @type {string} */ key, /** @type {string} */ value) => hit(`${key.slice(0, -1)}x`, value),
    (/** @type {string} */ key, /** @type {string} */ value) => hit(key, `${value}x`),
    (/** @type {string} */ key, /** @type {string} */ value) => hit(key, value.slice(1)),
  ];
  for (const lie of lies) {
    const port = await serveLies(t, (gets, key, value) =>
      gets % 10 === 0 ? lie(key, value) : hit(key, value),
    );
    const { code, result, notes } = await report(t, port, '-n', '500', '--keys', '20', '-c', '5');
    assert.deepEqual([code, result.hits, result.wrong], [1, 450, 50]);
    assert.match(notes.join('\n'), /50 answers were wrong/);
  }
});

test('answers in one-byte pieces are read', async (t) => {
  const port = await serveCache(t, honest);
  const slow = createServer((socket) => socket.on('error', () => {}));
  t.after(() => slow.close());
  slow.on('connection', async (socket) => {
    const { connect } = await import('node:net');
    const behind = connect(port, '127.0.0.1');
    behind.on('error', () => socket.destroy());
    socket.setNoDelay(true).on('close', () => behind.destroy());
    socket.pipe(behind);
    behind.on('data', async (data) => {
      behind.pause();
      for (const byte of data) {
        socket.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      behind.resume();
    });
  });
  await new Promise((resolve) => slow.listen(0, '127.0.0.1', () => resolve(null)));
  const own = /** @type {import('node:net').AddressInfo} */ (slow.address()).port;
  const { code, result } = await report(t, own, '-n', '60', '--keys', '10', '-c', '3', '--pipeline', '4');
  assert.deepEqual([code, result.hits], [0, 60]);
});

test('an error line is counted and quoted', async (t) => {
  const port = await serveLies(t, (gets, key, value) =>
    gets % 4 === 0 ? 'SERVER_ERROR "out" of order\r\n' : hit(key, value),
  );
  const { code, result, notes } = await report(t, port, '-n', '100', '--keys', '5', '-c', '1');
  assert.deepEqual([code, result.errors, result.hits], [1, 25, 75]);
  assert.match(notes.join('\n'), /The last error: SERVER_ERROR {2}out {2}of order/);
});

test('a server that closes connections fails what was in flight, and is dialled again', async (t) => {
  const port = await serveLies(t, (gets, key, value) => (gets % 20 === 0 ? null : hit(key, value)));
  const { code, result } = await report(t, port, '-n', '200', '--keys', '5', '-c', '1');
  assert.deepEqual([code, result.complete, nonZero(result.failed)], [1, 190, { closed: 10 }]);
});

test('a server that stalls fails requests by their timeout', async (t) => {
  const port = await serveLies(t, (gets, key, value) => (gets > 10 ? '' : hit(key, value)));
  const { code, result } = await report(t, port, '-n', '14', '--keys', '5', '-c', '4', '-t', '1');
  assert.deepEqual([code, result.end, result.complete], [1, 'count', 10]);
  assert.deepEqual(nonZero(result.failed), { timeout: 4 });
});

test('what is not the protocol has a cause of its own', async (t) => {
  const port = await serveCache(t, () => () => 'HTTP/1.1 400 Bad Request\r\n');
  const { code, result } = await report(t, port, '-n', '1000', '--keys', '5', '-c', '3');
  assert.deepEqual([code, result.end, nonZero(result.failed)], [1, 'unanswered', { unexpected: 5 }]);
  assert.match(result.lastError, /not the answer to a request: HTTP\/1\.1 400/);
});

test('ends at once if nobody listens', async (t) => {
  const port = await quietPort();
  const { code, result } = await report(t, port, '--op', 'set', '-n', '1000000', '-c', '5');
  assert.deepEqual([code, result.end, nonZero(result.failed)], [1, 'unanswered', { refused: 5 }]);
  assert.match(result.lastError, /refused/);
});

test('a run for some seconds ends then, and reports progress meanwhile', async (t) => {
  const port = await serveCache(t, honest);
  const { code, stderr, stdout } = await requests(
    t,
    `memcached://127.0.0.1:${port}`,
    '-d',
    '2',
    '--keys',
    '5',
  );
  assert.equal(code, 0);
  assert.match(stderr, /^requests: [\d,]+ answered, [\d,]+ in the last second, failed 0\n/);
  assert.match(stdout, /^Time taken for tests: {3}[12]\.\d+ seconds$/m);
});

test('Ctrl-C ends the run and prints what was measured until then', async (t) => {
  const seen = { gets: 0 };
  const port = await serveLies(t, (gets, key, value) => {
    seen.gets = gets;
    return hit(key, value);
  });
  const url = `memcached://127.0.0.1:${port}`;
  const { child, exit, output } = start(t, url, '-n', '1000000000', '--keys', '5', '--quiet');
  await until(() => seen.gets > 100, 'requests come');
  process.kill(-(child.pid ?? 0), 'SIGINT'); // as a terminal sends it: to the whole group
  assert.deepEqual(await exit, { code: 130, signal: null });
  assert.match(output.stdout, /^Complete requests: {6}[1-9]\d*$/m);
  assert.match(output.stdout, /The run was stopped/);
});

test('the generator ends with the command that started it', async (t) => {
  const port = await serveCache(t, honest);
  const { child } = start(t, `memcached://127.0.0.1:${port}`, '-n', '1000000000', '--keys', '5', '--quiet');
  const own = () =>
    spawnSync('pgrep', ['-f', `holdfast-generator --tcp 127.0.0.1:${port} `]).stdout.length > 0;
  await until(own, 'the generator runs');
  child.kill('SIGKILL');
  await until(() => !own(), 'the generator ends');
});

test('every mistake is reported in one line', async (t) => {
  const lineOf = async (/** @type {string[]} */ ...args) => {
    const { code, stdout, stderr } = await requests(t, ...args);
    assert.deepEqual([code, stdout], [1, '']);
    return stderr;
  };
  const url = 'memcached://127.0.0.1:11211';
  const expected =
    /^fleet: requests got 'memcached:.*': expected a URL such as memcached:\/\/127\.0\.0\.1:11211 or .*\n$/;
  for (const bad of [
    'memcached://',
    'memcached://127.0.0.1/path',
    'memcached://me@127.0.0.1',
    'memcached://127.0.0.1:99999',
  ])
    assert.match(await lineOf(bad), expected);
  assert.match(await lineOf('memcached://nowhere.invalid'), /^fleet: unknown host 'nowhere\.invalid' .*\n$/);
  assert.match(
    await lineOf('memcached://192.0.2.1'),
    /^fleet: refusing to load memcached:\/\/192\.0\.2\.1: .* only caches on this machine .*\n$/,
  );
  for (const [flag, ...value] of [
    ['-H', 'a: b'],
    ['--rps', '5'],
    ['-m', 'GET'],
    ['-b', 'x'],
  ])
    assert.match(
      await lineOf(url, flag, ...value),
      /^fleet: --[a-z]+ is only for http URLs, not for memcached:.*\n$/,
    );
  for (const flag of ['--pipeline', '--keys', '--value-size'])
    assert.match(
      await lineOf('localhost', flag, '5'),
      /^fleet: --[a-z-]+ is only for memcached and redis URLs, .*\n$/,
    );
  assert.match(
    await lineOf(url, '--op', 'delete'),
    /^fleet: --op got 'delete': expected one of get, set, mixed.*\n$/,
  );
});

const COUNTED = /** @type {import('../fleet/requests/memcached/generator.js').Counted} */ ({
  phase: 'requests',
  end: 'duration',
  elapsedMs: 2000,
  cpuMs: 1790,
  complete: 100_000,
  inFlight: 0,
  hits: 100_000,
  misses: 0,
  stored: 0,
  wrong: 0,
  errors: 0,
  bytes: 1,
  lastError: '',
  failed: {},
  latencyMs: { count: 0, min: 0, mean: 0, max: 0, percentiles: {} },
});
const ADDRESS = {
  protocol: /** @type {const} */ ('memcached'),
  host: '::1',
  port: 11_211,
  path: '',
  shown: 'memcached://[::1]:11211',
};
const JOB = {
  address: ADDRESS,
  op: /** @type {const} */ ('get'),
  connections: 10,
  requests: Number.POSITIVE_INFINITY,
  durationMs: 2000,
  timeoutMs: 1000,
  pipeline: 1,
  keys: 10,
  valueSize: 100,
};

test('the report says when the client was the limit', () => {
  const below = reportOf(JOB, COUNTED, '', 'machine');
  assert.deepEqual([below.result.isClientLimit, below.result.clientUs], [false, 17.9]);
  assert.doesNotMatch(reportText(below, ADDRESS), /client was the limit/);
  const above = reportOf(JOB, { ...COUNTED, cpuMs: 1800 }, '', 'machine');
  assert.equal(above.result.isClientLimit, true);
  assert.match(reportText(above, ADDRESS), /^The client was the limit: it used 90 % of a core, so .*$/m);
});

test('without cargo, the error says what is missing', (t) => {
  const empty = temporaryFolder(t);
  const code = `import { buildGenerator } from './fleet/requests/memcached/generator.js';
    await buildGenerator({ isNeeded: true }).catch((error) => console.log(error.code, error.message));`;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: ROOT,
    env: { PATH: empty },
    encoding: 'utf8',
  });
  assert.equal(
    stdout,
    "NO_GENERATOR can't build the load generator: cargo is not installed (see https://rustup.rs)\n",
  );
});
