/*
 * A takeover of a server that is one of several on NATS: the others don't notice.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { native } from '../native/index.js';
import { assertAllGot, openStreams, publishAllTheTime, startNew, startOld } from './helpers/handover.js';
import { clientsOf, datasOf, legacyToken, PATH } from './helpers/hub.js';
import { natsBinaries, startNats } from './helpers/nats.js';
import { temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const ALL = { Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}` };
const [{ path, problem }] = await natsBinaries();
const skip = native ? problem || false : 'the native core is not built';

/** @param {number} port @returns {Promise<string[]>} the ids of all subscriptions, sorted */
async function listed(port) {
  const response = await fetch(`http://127.0.0.1:${port}${PATH}/subscriptions`, { headers: ALL });
  const { subscriptions } = /** @type {any} */ (await response.json());
  return subscriptions.map((/** @type {any} */ { id }) => id).sort();
}

for (const kind of ['in memory', 'with a store']) {
  test(`other servers on NATS don't notice a takeover (${kind})`, { skip }, async (t) => {
    const { url } = await startNats(t, { path });
    const store = kind === 'with a store' ? ['--store', join(temporaryFolder(t), 'store')] : [];
    const args = ['--subscriptions', '--nats', url, ...store];
    const old = await startOld(t, ...args);
    const other = await startOld(t, '--subscriptions', '--nats', url);
    const { clients, ofHub } = await openStreams(t, old.port, 20);
    const observer = await clientsOf(t, other.port).subscribe(
      'match=%2F.well-known%2Fmercure%2Fsubscriptions%2F*',
      ALL,
    );
    const before = await until(async () => {
      const ids = await listed(other.port);
      return ids.length === 11 && ids;
    }, 'all are listed');
    const count = datasOf(observer).length;
    const publisher = publishAllTheTime(t, old.port);
    for (const workers of ['3', '1']) {
      const next = startNew(t, old, [...args, '--workers', workers]);
      await next.listening;
      assert.match(next.output.stderr, /took over 20 streams/);
    }
    await assertAllGot(ofHub, await publisher.stop());
    assert.equal(clients.filter(({ closed }) => closed).length, 0);
    assert.deepEqual(await listed(other.port), before);
    const same = async () => String(await listed(old.port)) === String(before);
    await until(same, 'the new server has learned the streams of the other one again');
    assert.deepEqual(datasOf(observer).slice(count), []);
    assert.doesNotMatch(other.output.stderr, /has stopped|was not heard/);
  });
}
