import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { OPTIONS } from '../lib/config.js';
import { variableWarnings } from '../lib/variables.js';
import { ROOT, run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @param {Record<string, string>} env */
const warnings = (env) => variableWarnings(OPTIONS, env);

test('a mistyped variable is named, with the one that was probably meant', () => {
  assert.deepEqual(warnings({ HOLDFAST_PRT: '99' }), [
    'HOLDFAST_PRT is ignored: did you mean HOLDFAST_PORT?',
  ]);
  assert.deepEqual(warnings({ HOLDFAST_PINGINTERVAL: '5' }), [
    'HOLDFAST_PINGINTERVAL is ignored: did you mean HOLDFAST_PING_INTERVAL?',
  ]);
  assert.deepEqual(warnings({ HOLDFAST_ELEPHANT: '1' }), [
    'HOLDFAST_ELEPHANT is ignored: no option has this name; see --help',
  ]);
});

test('a switch with a value that nobody reads is named as well', () => {
  assert.deepEqual(warnings({ HOLDFAST_NATIVE: 'maybe' }), [
    'HOLDFAST_NATIVE=maybe has no effect: expected on, off',
  ]);
});

test('variables that any program reads are no mistake, and neither are those of others', () => {
  const env = {
    HOLDFAST_PORT: '1',
    HOLDFAST_NATIVE: 'off',
    HOLDFAST_TOKEN: 'x',
    HOLDFAST_SKIPS: 'fail',
    PRT: '9',
  };
  assert.deepEqual(warnings(env), []);
  assert.deepEqual(warnings({ HOLDFAST_NATIVE: 'on' }), []);
  assert.deepEqual(variableWarnings([], { ...env, HOLDFAST_WORKERS: '3' }), []);
});

test('every variable that our code reads is known', () => {
  const folders = ['fleet', 'lib', 'monitor', 'native', 'primary', 'scripts', 'transport', 'test/helpers'];
  const files = folders.flatMap((folder) =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.js') && !/node_modules|target/.test(name))
      .map((name) => join(ROOT, folder, name)),
  );
  const read = files.flatMap((file) => readFileSync(file, 'utf8').match(/\benv\.HOLDFAST_[A-Z_]+/g) ?? []);
  const names = new Set(read.map((text) => text.slice('env.'.length)));
  assert.ok(names.has('HOLDFAST_NATIVE') && names.has('HOLDFAST_UNSHARE'));
  for (const name of names) assert.doesNotMatch(warnings({ [name]: '' }).join(), /ignored/);
});

test('the server warns at its start, and serves', async (t) => {
  const server = await startServer(t, ['--gc-interval', '500'], { prefix: ['env', 'HOLDFAST_PRT=99'] });
  assert.match(server.output.stderr, /^holdfast: HOLDFAST_PRT is ignored: did you mean HOLDFAST_PORT\?$/m);
  assert.match(server.output.stderr, /^holdfast: --gc-interval has no effect without --expose-gc: /m);
});

test('the server says once that a switch has no effect', async (t) => {
  const server = await startServer(t, [], { prefix: ['env', 'HOLDFAST_NATIVE=maybe'] });
  await server.frame();
  assert.equal(server.output.stderr.match(/HOLDFAST_NATIVE/g)?.length, 1, server.output.stderr);
});

for (const [program, file, args] of /** @type {const} */ ([
  ['drone', 'fleet/drone.js', ['--listen-port', '0', '--quiet']],
  ['fleet', 'fleet/cli.js', ['status', '--json']],
  ['tune', 'scripts/tune.js', ['check']],
])) {
  test(`${program} warns too`, async (t) => {
    const env = { ...process.env, HOLDFAST_TOKN: 'secret' };
    const { output } = run(t, process.execPath, [file, ...args], { env });
    await until(
      () => output.stderr.includes(`${program}: HOLDFAST_TOKN is ignored: did you mean HOLDFAST_TOKEN?\n`),
      () => output.stderr,
    );
  });
}
