/*
 * `npm install holdfast` brings the server and `Hold`, and nothing of the load fleet and the lab.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { test } from 'node:test';
import { untilListening } from '../lib/listening.js';
import { install, pack, sizeOf } from './helpers/package.js';
import { run, temporaryFolder } from './helpers/server.js';

/** Of which LMDB, for --store, is 18 MB (npm install --omit=optional leaves it out), and the prebuilt native cores are 4 MB. */
const MOST_BYTES = 45e6;
const MOST_PACKAGES = 150;

/** @param {string} folder @returns {string[]} names of the packages in it */
function packagesIn(folder) {
  const names = readdirSync(join(folder, 'node_modules')).filter((name) => !name.startsWith('.'));
  return names.flatMap((name) =>
    name.startsWith('@')
      ? readdirSync(join(folder, 'node_modules', name)).map((one) => `${name}/${one}`)
      : [name],
  );
}

test('the tarball has what the server and Hold need, and nothing else', (t) => {
  const { files } = pack(t);
  for (const needed of [
    'server.js',
    'worker.js',
    'index.js',
    'hub/protocol/page.html',
    'index.d.ts',
    'native/build.js',
    'native/prebuilt.js',
    'native/core/src/lib.rs',
    'docs/guide.md',
    'docs/deploy/holdfast.service',
  ])
    assert.ok(files.includes(needed), needed);
  const strange = files.filter((file) =>
    /^(fleet|scripts|test|docs\/(?!deploy\/|grafana\.json$|(api|deploy|guide|recipes)\.md$)|logs|native\/(target|fuzz|core\/tests))\/|(?<!prebuilt\/[\w-]+)\.node$/.test(
      file,
    ),
  );
  assert.deepEqual(strange, []);
});

test('installed in an empty folder it is small, and can be imported, started and asked for its version', async (t) => {
  const folder = install(t, pack(t).tarball, { HOLDFAST_NATIVE: 'off' });
  const packages = [...packagesIn(folder), ...packagesIn(join(folder, 'node_modules/holdfast'))];
  const foreign = packages.filter((name) =>
    /^@aws-sdk|^@smithy|vega|resvg|hdr-histogram|autocannon|undici/.test(name),
  );
  assert.deepEqual(foreign, []);
  assert.ok(packages.length <= MOST_PACKAGES, `${packages.length} packages`);
  assertDashboard(folder, packages);
  const bytes = sizeOf(join(folder, 'node_modules'));
  assert.ok(bytes < MOST_BYTES, `${bytes} bytes`);

  const code =
    "import { Hold, Hub } from 'holdfast'; const hold = new Hold({}); new Hub({ hold }); console.log(hold.isNative);";
  const env = { ...process.env, NODE_NO_WARNINGS: '1', HOLDFAST_NATIVE: 'off' };
  const imported = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  assert.equal(imported.stdout, 'false\n', imported.stderr);
  const version = spawnSync('npx', ['holdfast', '--version'], { cwd: folder, encoding: 'utf8' });
  assert.match(version.stdout, /^\d+\.\d+\.\d+\n$/, version.stderr);
  await assertServes(t, folder);
});

/**
 * blessed-contrib is there, without the packages that we have replaced (monitor/unused/README.md): npm ignores the overrides of
 * dependencies, so they have to be in the tarball.
 * @param {string} folder @param {string[]} packages
 */
function assertDashboard(folder, packages) {
  assert.ok(packages.includes('blessed-contrib'));
  const unused = packages.filter((name) =>
    /^(event-stream|optimist|xml2js|png-js|cardinal|esprima|node-emoji)$/.test(name),
  );
  assert.deepEqual(unused, []);
  const tree = spawnSync('npm', ['ls', '--all'], { cwd: folder, encoding: 'utf8' });
  assert.equal(tree.status, 0, tree.stderr);
  const code = "await import('./node_modules/holdfast/monitor/terminal.js'); console.log('loaded');";
  const loaded = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    cwd: folder,
    encoding: 'utf8',
  });
  assert.equal(loaded.stdout, 'loaded\n', loaded.stderr);
}

/** @param {import('node:test').TestContext} t @param {string} folder */
async function assertServes(t, folder) {
  const flags = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off'];
  const { child, exit } = run(t, 'node_modules/.bin/holdfast', flags, {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'pipe', 'ipc'],
  });
  const { port, csvPath } = await untilListening(child);
  const answer = await fetch(`http://127.0.0.1:${port}/`);
  const first = await answer.body?.getReader().read();
  assert.match(Buffer.from(first?.value ?? '').toString(), /Welcome!/);
  assert.ok(existsSync(join(folder, csvPath)));
  child.kill('SIGTERM');
  assert.equal((await exit).code, 0);
}

test('a package that was built keeps the addon, but not the files of cargo', {
  skip: process.platform !== 'linux',
}, (t) => {
  const tools = temporaryFolder(t);
  const log = join(tools, 'log');
  const cargo = `#!/bin/sh
[ "$1" = build ] || exit 0
echo "$CARGO_TARGET_DIR" > ${log}
mkdir -p "$CARGO_TARGET_DIR/release" && echo addon > "$CARGO_TARGET_DIR/release/libholdfast_native.so"
`;
  writeFileSync(join(tools, 'cargo'), cargo, { mode: 0o755 });
  const folder = install(t, pack(t).tarball, {
    CARGO_TARGET_DIR: '',
    HOLDFAST_NATIVE: '',
    HOLDFAST_BUILD: '1',
    PATH: `${tools}${delimiter}${process.env.PATH}`,
  });
  const native = join(folder, 'node_modules/holdfast/native');
  assert.deepEqual(
    [existsSync(join(native, 'holdfast.node')), existsSync(join(native, 'target'))],
    [true, false],
  );
  const target = readFileSync(log, 'utf8').trim();
  assert.notEqual(target, '');
  assert.equal(existsSync(target), false);
});

test('versions are pinned, and the replaced and vulnerable ones are in no lock file', () => {
  for (const file of ['package.json', 'fleet/package.json', 'scripts/package.json']) {
    const {
      dependencies = {},
      devDependencies = {},
      overrides = {},
    } = JSON.parse(readFileSync(file, 'utf8'));
    const all = { ...dependencies, ...devDependencies, ...overrides };
    for (const [name, version] of Object.entries(all))
      assert.match(version, /^\d+\.\d+\.\d+$|^file:|^\$/, name);
  }
  const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8'));
  for (const [path, { version }] of Object.entries(packages)) {
    const name = path.split('node_modules/').at(-1);
    assert.doesNotMatch(String(name), /^(event-stream|optimist)$/);
    if (name === 'vega-expression') assert.match(version, /^6\.[1-9]/, 'CVE-2025-59840');
  }
});
