/*
 * The list of subscriptions while streams move: nobody leaves it, and nobody is announced.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { frameOf, openStreams, post, startNew, startOld, untilTotals } from './helpers/handover.js';
import { clientsOf, datasOf, legacyToken, PATH } from './helpers/hub.js';
import { until } from './helpers/until.js';

const skip = native ? false : 'the native core is not built';
const ALL = { Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}` };
const CLIENTS = 20;

/** @param {number} port @returns {Promise<string[]>} the ids of all subscriptions, sorted */
async function listed(port) {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}/subscriptions`, { headers: ALL });
  assert.equal(response.status, 200);
  const { subscriptions } = /** @type {any} */ (await response.json());
  return subscriptions.map((/** @type {any} */ { id }) => id).sort();
}

test('streams that move stay on the list, with their ids, and nothing is announced', { skip }, async (t) => {
  const old = await startOld(t, '--subscriptions');
  const { subscribe } = clientsOf(t, old.port);
  const clients = [];
  for (let i = 0; i < CLIENTS; i++) clients.push(await subscribe(`match=topic-${i}`));
  const observer = await subscribe('match=*', ALL);
  const before = await until(async () => {
    const ids = await listed(old.port);
    return ids.length === CLIENTS + 1 && ids;
  }, 'all are listed');
  await until(() => datasOf(observer).length === 1, 'its own beginning');
  await post(old, '/reload');
  await until(
    () => /reloaded 2 of 2/.test(old.output.stderr),
    () => old.output.stderr,
  );
  assert.deepEqual(await listed(old.port), before);
  for (const workers of ['3', '1']) {
    await startNew(t, old, ['--subscriptions', '--workers', workers]).listening;
    assert.deepEqual(await listed(old.port), before);
  }
  assert.equal(datasOf(observer).length, 1, 'nobody was announced');
  clients[0].close();
  await until(() => datasOf(observer).length === 2, 'one end is announced');
  const { active, match, subscriber } = JSON.parse(datasOf(observer)[1] ?? '');
  assert.deepEqual([active, match], [false, 'topic-0']);
  assert.deepEqual(
    await listed(old.port),
    before.filter((id) => !id.endsWith(encodeURIComponent(subscriber))),
  );
});

test('a new worker that gets no streams, because an old worker has one taker, listens all the same', {
  skip,
}, async (t) => {
  const old = await startOld(t, '--subscriptions');
  const next = startNew(t, old, ['--subscriptions', '--workers', '4']);
  const { adminPort } = await next.listening;
  let count = 0;
  await until(async () => {
    await openStreams(t, old.port, 8);
    count += 8;
    await untilTotals(adminPort, ({ streams }) => streams === count, 'all streams');
    const { workers } = await frameOf(adminPort);
    return workers.every(({ values }) => Number(values.streams) > 0);
  }, 'all workers have streams');
});
