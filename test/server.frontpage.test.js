/*
 * The first thing in the README: someone who has Node, and no Rust, gets from an empty folder to a live page with pushed
 * messages in three commands. They are run as they are there, with the tarball for the package and with ports that are free.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { ENV, pack, prebuild, toolsWithoutCargo } from './helpers/package.js';
import { ROOT, run, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const [, START = ''] = /<!-- start:begin -->(.*?)<!-- start:end -->/s.exec(README) ?? [];
const [, CODE = ''] = /```sh\n(.*?)```/s.exec(START) ?? [];
const [PAGE = ''] = /http:\/\/localhost:8888\/\S*/.exec(START.replace(CODE, '')) ?? [];

test('the README starts with three commands, and a page to open', () => {
  assert.equal(CODE.trim().split('\n').length, 3, CODE);
  for (const mark of ['begin', 'end']) assert.equal(README.split(`<!-- start:${mark} -->`).length, 2, mark);
  assert.equal(PAGE, 'http://localhost:8888/');
});

test(
  'from an empty folder, without Rust, its three commands lead to a live page with a pushed message',
  NEEDS_CHROMIUM,
  async (t) => {
    const problem = prebuild();
    if (problem) return t.skip(problem);
    const [install, serve, publish] = CODE.trim().split('\n');
    const cwd = temporaryFolder(t);
    const settings = { HOLDFAST_PORT: '0', HOLDFAST_ADMIN_PORT: 'auto', npm_config_prefer_offline: 'true' };
    const env = { ...ENV, ...settings, HOLDFAST_NATIVE: '', PATH: toolsWithoutCargo(t) };
    const shell = (/** @type {string} */ command) => run(t, 'bash', ['--norc', '-c', command], { cwd, env });

    assert.equal(install, 'npm install holdfast');
    const installed = shell(install.replace('holdfast', pack(t).tarball));
    assert.equal((await installed.exit).code, 0, installed.output.stderr);
    assert.ok(existsSync(join(cwd, 'node_modules/holdfast')), 'it is installed here');

    const server = shell(serve);
    const said = (/** @type {RegExp} */ pattern) =>
      until(
        () => pattern.exec(server.output.stderr)?.[1],
        () => `${pattern} in ${server.output.stderr}`,
      );
    const port = await said(/listening on http:\/\/localhost:(\d+)[;\n]/);
    const adminPort = await said(/admin on http:\/\/127\.0\.0\.1:(\d+)/);
    await said(/, (hold) transport,/); // native

    const page = await (await startBrowser(t)).newPage();
    await page.goto(PAGE.replace('8888', port));
    await page.getByText('subscribed to all topics').waitFor();
    const publisher = shell(publish.replace('8890', adminPort));
    assert.equal((await publisher.exit).code, 0, publisher.output.stderr);
    await page.locator('#events').getByText('hello', { exact: true }).waitFor();
  },
);
