/*
 * One connection of examples/nodecached can't keep the others waiting: after some work they have their turn.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Connection } from '../examples/nodecached/connection.js';
import { openShared, sharedMemory } from '../examples/nodecached/counters.js';
import { Requests } from '../examples/nodecached/requests.js';
import { memoryFor, Store } from '../examples/nodecached/store.js';
import { open, startCached, talk } from './helpers/nodecached.js';
import { until } from './helpers/until.js';

/** A connection whose answers drain at once. */
function connected() {
  const shared = openShared(sharedMemory(1), 1, 0);
  const options = /** @type {import('../examples/nodecached/options.js').Options} */ ({ memory: 1 });
  const requests = new Requests([new Store(memoryFor(1, false), 1, shared.words)], shared, 0, options);
  const state = { answers: '', writes: 0, resumed: 0 };
  const socket = {
    writableLength: 0,
    destroyed: false,
    write: (/** @type {Buffer} */ bytes) => {
      state.answers += bytes.toString('latin1');
      state.writes++;
      return true;
    },
    resume: () => state.resumed++,
  };
  const connection = new Connection(/** @type {any} */ (socket), requests);
  const receive = (/** @type {string} */ text) => connection.receive(Buffer.from(text), text.length);
  return { state, receive };
}

for (const [name, text, answer] of [
  ['short gets', 'get a\r\n'.repeat(9000), 'END\r\n'.repeat(9000)],
  ['the keys of a long get', `get${' a'.repeat(30_000)}\r\nget b\r\n`, 'END\r\n'.repeat(2)],
  ['meta commands', 'mg a k\r\n'.repeat(9000), 'EN ka\r\n'.repeat(9000)],
]) {
  test(`${name} that arrive together take several turns`, async () => {
    const { state, receive } = connected();
    assert.equal(receive(text), false); // it stops reading
    assert.notEqual(state.answers, answer);
    let turns = 0;
    while (state.resumed === 0) {
      await new Promise((resolve) => setImmediate(resolve));
      turns++;
    }
    assert.ok(turns >= 4, `${turns} turns`);
    assert.equal(state.answers, answer);
    assert.equal(receive('get c\r\n'), true);
    assert.equal(state.answers, `${answer}END\r\n`);
  });
}

test('large values take several turns', async () => {
  const { state, receive } = connected();
  const value = 'v'.repeat(200_000);
  receive(`set a 0 0 ${value.length}\r\n${value}\r\n`);
  const was = state.writes;
  assert.equal(receive('get a\r\n'.repeat(100)), false);
  assert.ok(state.writes - was < 25, `${state.writes - was} writes`);
  await until(() => state.resumed > 0, 'all are answered');
});

test('some stats take several turns', async () => {
  const { state, receive } = connected();
  assert.equal(receive('stats\r\n'.repeat(100)), false);
  await until(() => state.resumed > 0, 'all are answered');
  assert.equal(state.answers.match(/END/g)?.length, 100);
});

test('what follows a turn arrives in any parts', async (t) => {
  const { port } = await startCached(t);
  const value = 'v'.repeat(100_000);
  const sent = `${'mn\r\n'.repeat(2500)}set a 0 0 ${value.length}\r\n${value}\r\n${'mn\r\n'.repeat(5000)}get a\r\n`;
  const answers = await talk(port, sent, (text) => text.match(/.{1,9001}/gs) ?? []);
  const mn = (/** @type {number} */ count) => 'MN\r\n'.repeat(count);
  assert.equal(answers, `${mn(2500)}STORED\r\n${mn(5000)}VALUE a 0 100000\r\n${value}\r\nEND\r\n`);
});

test('quit after many requests closes when all are answered', async (t) => {
  const { port } = await startCached(t);
  const { socket, until: waitFor } = await open(port);
  socket.write(`${'mn\r\n'.repeat(10_000)}quit\r\n`);
  assert.equal(await waitFor('never'), 'MN\r\n'.repeat(10_000));
});
