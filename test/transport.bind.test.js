/*
 * A port belongs to one server, although shards share it among themselves.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { KINDS, startHold } from './helpers/hold.js';
import { quietPort } from './helpers/port.js';
import { run } from './helpers/server.js';
import { until } from './helpers/until.js';

const PROCESSES = 4;
const ROUNDS = 3;

test('of several processes that listen on a port at the same moment, exactly one gets it', async (t) => {
  for (let round = 0; round < ROUNDS; round++) {
    const port = await quietPort('');
    const contenders = Array.from({ length: PROCESSES }, () =>
      run(t, process.execPath, ['test/fixtures/contender.js', String(port)]),
    );
    const lines = () => contenders.map(({ output }) => output.stdout.trim().split('\n'));
    await until(() => lines().every(([loaded]) => loaded === 'loaded'), 'all are loaded');
    for (const { child } of contenders) child.stdin?.write('\n');
    await until(() => lines().every(({ length }) => length === 2), 'all have tried');
    const outcomes = lines().map(([, outcome]) => outcome);
    assert.deepEqual(outcomes.toSorted(), ['EADDRINUSE', 'EADDRINUSE', 'EADDRINUSE', 'listening']);
    for (const { child } of contenders) child.kill();
  }
});

for (const kind of KINDS) {
  test(`a Hold (${kind}) does not listen on a port of somebody else, whatever the address`, async (t) => {
    const other = createServer();
    const port = await new Promise((resolve) =>
      other.listen(0, '127.0.0.1', () => resolve(/** @type {any} */ (other.address()).port)),
    );
    t.after(() => other.close());
    const { hold } = startHold(t, kind);
    await assert.rejects(hold.listen(port), { code: 'EADDRINUSE' });
    await assert.rejects(hold.listen(port, '127.0.0.1'), { code: 'EADDRINUSE' });
    assert.ok((await hold.listen(0)) > 0, 'it can still listen on another port');
  });

  test(`a Hold (${kind}) listens on the port of one that was closed, although clients were connected`, async (t) => {
    const { hold } = startHold(t, kind);
    const port = await hold.listen(0);
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: 'close' } });
    assert.equal(answer.status, 404);
    await hold.close();
    assert.equal(await startHold(t, kind).hold.listen(port), port);
  });
}
