/*
 * The two examples of the README: a server in five lines, and a library in four.
 */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { get, rawClient } from './helpers/client.js';
import { PATH } from './helpers/hub.js';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

/** @param {string} heading @returns {string[]} the lines of the code below it */
function linesBelow(heading) {
  const [, code] = /```\w+\n(.*?)```/s.exec(README.slice(README.indexOf(`\n## ${heading}\n`))) ?? [];
  return code.trim().split('\n');
}

test('a server in five lines: a subscriber gets what is published on this machine, and with a token', async (t) => {
  const [secretLine, start, subscribe, here, elsewhere] = linesBelow('A server in five lines');
  const secret = /HOLDFAST_JWT_SECRET='(.+)'/.exec(secretLine)?.[1] ?? '';
  const options = /^npx holdfast (.*) &/.exec(start)?.[1].split(' ') ?? [];
  const store = join(temporaryFolder(t), 'data');
  const given = options.map((option) => (option === 'data' ? store : option));
  const server = await startServer(t, [...given, '--jwt-secret', secret]);
  const env = { ...process.env, HOLDFAST_JWT_SECRET: secret };
  const shell = (/** @type {string} */ line) => {
    const ported = line
      .replace(':8888', `:${server.port}`)
      .replace(':8890', `:${server.adminPort}`)
      .replace('npx holdfast', 'node server.js');
    return run(t, 'bash', ['--norc', '-c', ported.replace(/ & .*/, '')], { env, cwd: ROOT });
  };
  const { output } = shell(subscribe);
  await until(
    () => output.stdout.includes('id: '),
    () => `it is subscribed: ${output.stderr}`,
  );
  for (const line of [here, elsewhere]) {
    const publisher = shell(line);
    await publisher.exit;
    assert.match(publisher.output.stdout, /^#/, publisher.output.stderr);
  }
  await until(
    () => output.stdout.includes('data: hello\n') && output.stdout.includes('data: hi\n'),
    'both arrive',
  );
});

test('a library in four lines: the streams of an application get what it publishes', async (t) => {
  const lines = linesBelow('A library in four lines');
  const file = join(ROOT, 'test', `.readme-${process.pid}.mjs`);
  t.after(() => rmSync(file));
  writeFileSync(
    file,
    [
      "import express from 'express';\nconst app = express();",
      ...lines,
      "const server = app.listen(0, () => console.log('port', server.address().port));",
    ].join('\n'),
  );
  const program = run(t, process.execPath, [file]);
  const port = await until(
    () => Number(/port (\d+)/.exec(program.output.stdout)?.[1]),
    () => `a port: ${program.output.stderr}`,
  );
  const client = rawClient(port, get().replace('/ HTTP', '/news HTTP'));
  t.after(client.close);
  await client.untilRead(/event: time\r?\ndata: \d{4}-/);
});

test('the path of the README is that of the hub', () => {
  assert.ok(README.includes(`http://127.0.0.1:8890${PATH}`));
});
