/*
 * The package is installed by the npm that comes with Node, and Node 20 and 22 have npm 10, which is stricter than 11 about overrides.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pack } from './helpers/package.js';
import { temporaryFolder } from './helpers/server.js';

const NPM = '10.9.9';
const FLAGS = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts'];

/** Without what `npm test` sets for its own package. */
const env = Object.fromEntries(
  Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|config_local_prefix)|^INIT_CWD$/.test(name),
  ),
);

/** @param {string} folder @param {string[]} command @param {string} what is installed in the folder */
function install(folder, command, what) {
  writeFileSync(join(folder, 'package.json'), '{}\n');
  const [program, ...words] = command;
  const { status, stderr } = spawnSync(program, [...words, 'install', ...FLAGS, what], {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
}

test(`npm ${NPM} installs the package`, (t) => {
  const [tools, folder] = [temporaryFolder(t), temporaryFolder(t)];
  install(tools, ['npm'], `npm@${NPM}`);
  const npm = [process.execPath, join(tools, 'node_modules/npm/bin/npm-cli.js')];
  install(folder, npm, pack(t).tarball);
  assert.ok(existsSync(join(folder, 'node_modules/holdfast/server.js')));
  assert.ok(existsSync(join(folder, 'node_modules/holdfast/node_modules/blessed-contrib')));
});
