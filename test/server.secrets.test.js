import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { startServer } from './helpers/server.js';

const SECRET = 'hunter2';

test('a secret is in no log and no page of the server, and not on the command lines of its workers', {
  skip: process.platform !== 'linux' && 'it reads /proc',
}, async (t) => {
  const { output, workerPids, admin, stop, csv } = await startServer(t, ['--jwt-secret', SECRET]);
  for (const pid of workerPids)
    assert.doesNotMatch(readFileSync(`/proc/${pid}/cmdline`, 'utf8'), new RegExp(SECRET));
  const pages = await Promise.all(['/frame', '/metrics'].map(async (path) => (await admin(path)).text()));
  await stop();
  for (const text of [...pages, output.stdout, output.stderr, JSON.stringify(csv())])
    assert.equal(text.includes(SECRET), false);
  assert.match(output.stderr, /--jwt-secret has only 7 bytes: HS256 needs 32/);
});
