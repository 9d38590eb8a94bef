/*
 * The runner of examples/microprofiler, with real servers and streams.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { run, TRANSPORTS, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const RUNNER = 'examples/microprofiler/run.js';
const STREAMS = 20;
/** What must be measured, by transport. @type {Record<string, string[]>} */
const KEYS = { hold: ['events', 'decide', 'ask', 'encode', 'flush'], http: ['door', 'deliver'] };

/** A program that stores one publication. */
const STORES_ONE = `const { MemoryBroker } = await import('${new URL('../broker/memory.js', import.meta.url).href}');
const limits = { historyCount: 9, historyAgeMs: 1e6, historyBytes: 1e6, isCached: () => false, maxQueueBytes: 1e6 };
await new MemoryBroker(limits).append([{ topics: ['a'], data: 'x', private: false }]);
`;

/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @param {string[]} args of the runner @param {NodeJS.ProcessEnv} [env] */
function startRunner(t, args, env = {}) {
  return run(t, process.execPath, [RUNNER, ...args], { env: { ...process.env, ...env } });
}

/** @param {TestContext} t @param {number} port @returns {Promise<void>} once a stream is open */
function openStream(t, port) {
  return new Promise((resolve, reject) => {
    const request = get({ port, host: '127.0.0.1', path: '/.well-known/mercure?topic=news', agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      response.on('error', () => {}); // the server ends it
      response.once('data', () => resolve());
    });
    t.after(() => request.destroy());
  });
}

/** @param {string} text a table @returns {Map<string, string[]>} its cells, by key */
function tableIn(text) {
  const lines = text.slice(text.lastIndexOf(' process')).split('\n').slice(2);
  return new Map(
    lines.filter(Boolean).map((line) => [line.slice(4).split('  ')[0], line.slice(4).split(/ {2,}/)]),
  );
}

for (const transport of TRANSPORTS) {
  test(`all processes of a server are measured, with ${transport}`, async (t) => {
    const temporary = temporaryFolder(t);
    const csv = join(temporary, 'profile.csv');
    const options = ['--csv', csv, '--budget', 'subscribe=1ns'];
    const server = [
      'server.js',
      '--port',
      '0',
      '--admin-port',
      'auto',
      '--workers',
      '2',
      '--no-log',
      '--anonymous',
    ];
    const words = [
      ...options,
      '--',
      ...server,
      '--dashboard',
      'off',
      '--drain',
      '0',
      '--transport',
      transport,
    ];
    const { child, output, exit } = startRunner(t, words, { TMPDIR: temporary });
    const [, port, adminPort] = await until(
      () =>
        /listening on http:\/\/localhost:(\d+); dashboard on http:\/\/127.0.0.1:(\d+)/.exec(output.stderr),
      () => `it listens: ${output.stderr}`,
    );
    await Promise.all(Array.from({ length: STREAMS }, () => openStream(t, Number(port))));
    const body = new URLSearchParams({ topic: 'news', data: 'x' });
    const answer = await fetch(`http://127.0.0.1:${adminPort}/.well-known/mercure`, { method: 'POST', body });
    assert.equal(answer.status, 200);
    await until(
      () => /,fan-out,/.test(readFileSync(csv, 'utf8')),
      () => `a second was written: ${readFileSync(csv, 'utf8')}`,
    );
    child.kill('SIGINT');
    assert.deepEqual(await exit, { code: 0, signal: null });
    const table = tableIn(output.stderr);
    assert.match(output.stderr, /\n3 processes, every call, /);
    for (const key of [
      ...KEYS[transport],
      'subscribe',
      'store',
      'send-feed',
      'feed',
      'fan-out',
      'post settled',
    ])
      assert.ok(table.has(key), `${key} in ${output.stderr}`);
    assert.equal(table.get('subscribe')?.[1], '1 ns');
    assert.equal(table.get('subscribe')?.at(-1), '100 %');
    const calls = readFileSync(csv, 'utf8')
      .split('\n')
      .filter((line) => line.includes(',subscribe,'));
    assert.equal(
      calls.reduce((sum, line) => sum + Number(line.split(',')[2]), 0),
      STREAMS,
    );
    assert.deepEqual(readdirSync(temporary), ['profile.csv']);
  });
}

test('a program that profiles nothing keeps its output and its exit status', async (t) => {
  const script = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(script, "console.log('out'); console.error('err'); process.exitCode = 3;");
  const { output, exit } = startRunner(t, ['--every', '16', '--', script]);
  assert.deepEqual(await exit, { code: 3, signal: null });
  assert.equal(output.stdout, 'out\n');
  assert.match(output.stderr, /^err\n\n1 process, one call in 16, [\d.]+ s\n +key +budget/);
});

test('the exit status of a program that a signal ended is that of a shell', async (t) => {
  const script = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(script, "process.kill(process.pid, 'SIGKILL'); setInterval(() => {}, 1000);");
  const { exit } = startRunner(t, ['--', script]);
  assert.deepEqual(await exit, { code: 137, signal: null });
});

test('what a program did before it exited is in the table, however short it was', async (t) => {
  const script = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(script, STORES_ONE);
  const { output, exit } = startRunner(t, ['--', script]);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  assert.ok(tableIn(output.stderr).has('store'), output.stderr);
});

test('a program goes on when nobody reads its output any more', async (t) => {
  const folder = temporaryFolder(t);
  const script = join(folder, 'program.mjs');
  const lines = "for (let i = 0; i < 9; i++, await after(50)) console.log('a line');";
  const end = "writeFileSync(process.argv[2], 'whole');";
  const imports =
    "import { writeFileSync } from 'node:fs'; import { setTimeout as after } from 'node:timers/promises';";
  writeFileSync(script, `${imports} ${lines} ${end}`);
  const { child, exit } = startRunner(t, ['--', script, join(folder, 'result')]);
  child.stdout?.destroy();
  child.stderr?.destroy();
  assert.deepEqual(await exit, { code: 0, signal: null });
  assert.equal(readFileSync(join(folder, 'result'), 'utf8'), 'whole');
});

test('Ctrl-C on the terminal reaches the program once', async (t) => {
  const script = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(
    script,
    "process.on('SIGINT', () => { console.log('interrupted'); setTimeout(process.exit, 300); }); console.log('ready'); setInterval(() => {}, 1000);",
  );
  const { output, exit, pid } = startRunner(t, ['--', script]);
  await until(() => output.stdout.includes('ready'), 'it runs');
  process.kill(-pid, 'SIGINT'); // to the whole group, as a terminal does
  await exit;
  assert.equal(output.stdout, 'ready\ninterrupted\n');
});

test('a wrong option is one line', async (t) => {
  const { output, exit } = startRunner(t, ['--budget', 'decide=soon', '--', 'server.js']);
  assert.deepEqual(await exit, { code: 1, signal: null });
  assert.match(
    output.stderr,
    /^microprofiler: --budget got 'decide=soon': expected KEY=TIME, .*; see --help\n$/,
  );
});

test('without the runner, a process writes its own table when it exits', async (t) => {
  const script = join(temporaryFolder(t), 'program.mjs');
  writeFileSync(script, STORES_ONE);
  const attach = './examples/microprofiler/attach.js?keys=store';
  const { output, exit } = run(t, process.execPath, ['--import', attach, script]);
  assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
  assert.match(output.stderr, /key +budget.*\n +store +/);
});
