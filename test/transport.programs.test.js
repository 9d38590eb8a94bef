/*
 * Whole programs with a `Hold`: how they end, and which warnings they get. They run with the native core and without.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { chunksOf, get, rawClient } from './helpers/client.js';
import { KINDS, listening, NEEDS_NATIVE } from './helpers/hold.js';
import { run } from './helpers/server.js';
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

    test('works as in the README', async (t) => {
      const program = runProgram(t, kind, ['test/fixtures/own.js'], { PORT: '0' });
      const port = await until(
        () => Number(/port: (\d+)/.exec(program.output.stdout)?.[1]),
        () => `a port in ${program.output.stderr}`,
      );
      const clients = [1, 2].map(() => rawClient(port, get().replace('/ HTTP', '/news HTTP')));
      for (const client of clients) await client.untilRead(/event: welcome\ndata: Hello!\n\n/);
      const publish = () =>
        fetch(`http://127.0.0.1:${port}/news`, {
          method: 'POST',
          body: 'It works.',
          headers: { 'Content-Type': 'text/plain' },
        });
      // The welcome arrives before its stream listens.
      await until(async () => {
        assert.equal((await publish()).status, 202);
        return clients.every(({ received }) => /data: It works\.\n\n/.test(received));
      }, 'the news');
      program.child.kill('SIGTERM');
      assert.deepEqual(await program.exit, { code: 0, signal: null });
      for (const client of clients) await client.untilClosed();
      assertWarnings(kind, program.output.stderr);
    });
  });
}

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
