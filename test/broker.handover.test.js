/*
 * What was published stays known when a real server takes over from another one: history, cached topics and publishers' ids; and streams of
 * patterns and grants go on.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { OPTIONS, onDisk } from './helpers/brokers.js';
import { assertAllGot, publishAllTheTime, startNew, startOld } from './helpers/handover.js';
import { NEEDS_NATIVE } from './helpers/hold.js';
import { clientsOf, datasOf, draftToken, legacyToken } from './helpers/hub.js';
import { until } from './helpers/until.js';

const KINDS = [
  { name: 'memory', args: () => [] },
  { name: 'disk', args: () => ['--store', onDisk(OPTIONS).store] },
];

/** @param {string} token */
const bearer = (token) => ({ Authorization: `Bearer ${token}` });

for (const { name, args } of KINDS)
  test(`${name}: nothing that was published is forgotten by two takeovers`, NEEDS_NATIVE, async (t) => {
    const more = ['--cache-topics', 'cached', ...args()];
    const first = await startOld(t, ...more);
    const { subscribe, publish } = clientsOf(t, first.port);
    const exact = await subscribe('match=a');
    const pattern = await subscribe('topic={id}', bearer(legacyToken({ subscribe: ['mine', 'ours'] })));
    const alternate = await subscribe('match=a', bearer(draftToken({ subscribe: ['mine', 'ours'] })));
    assert.equal((await publish({ topic: 'cached', data: 'cached', id: 'urn:cached' })).status, 200);
    const publisher = publishAllTheTime(t, first.port);
    await until(() => publisher.state.sent > 20, 'publications');
    let old = /** @type {{ exit: Promise<{ code: number | null }>, output: { stderr: string } }} */ (first);
    for (const workers of ['3', '1']) {
      const next = startNew(t, first, ['--workers', workers, ...more]);
      await next.listening;
      assert.equal((await old.exit).code, 0, old.output.stderr);
      old = next;
    }
    const { sent } = publisher.state;
    await until(() => publisher.state.sent > sent + 20, 'publications afterwards');
    const all = await publisher.stop();
    await assertAllGot([exact, alternate], all);
    await assertAllGot([pattern], ['cached', ...all]);
    assert.equal((await publish({ topic: 'a', data: 'again', id: 'urn:test:0' })).status, 200);
    const form = new URLSearchParams({ data: 'private', private: 'on' });
    for (const topic of ['a', 'ours']) form.append('topic', topic);
    assert.equal((await publish(form)).status, 200);
    await until(() => datasOf(alternate).at(-1) === 'private', 'a private publication');
    assert.equal(datasOf(alternate).length, all.length + 1, 'the id is still known');
    const [{ id = '' }] = exact.events().filter(({ data }) => data !== undefined);
    const again = await subscribe('match=a', { 'Last-Event-ID': id });
    await until(() => datasOf(again).length === all.length - 1, 'the history');
    assert.deepEqual(datasOf(again), all.slice(1));
    const late = await subscribe('match=cached');
    await until(() => datasOf(late).length === 1, 'the last one of a cached topic');
    for (const client of [exact, pattern, alternate]) assert.equal(client.closed, false);
  });
