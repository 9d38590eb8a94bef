/*
 * All streams reconnect at once, and each has missed publications.
 */
import { startPauses } from '../pauses.js';
import { checkedDeliveries, publish, startCrowd, startPublisher, stopAll } from './publishing.js';
import { PAUSE_MS, sizesOf } from './sizes.js';
import { SECRET, startHub } from './subjects.js';
import { TickWatch } from './ticks.js';

const ROOMS = 100;
const MISSED = 20;
/** Storms that count, and how many are tried at most; one more comes before, because code gets faster as it runs. */
const STORMS = 2;
const MOST_STORMS = 6;

/** @typedef {import('./subjects.js').Round} Round */

/** @param {Round} round */
export async function measureStorms(round) {
  await measureStorm(round, 'storm', [
    ['token-secret', SECRET],
    ['token-shared', '1'],
  ]);
  await measureStorm(round, 'storm-own', [['token-secret', SECRET]]);
}

/** @param {Round} round @param {string} run @param {[string, string][]} tokens parameters of the crowd */
async function measureStorm(round, run, tokens) {
  const { lab, plan, name, record } = round;
  lab.status = () => `[${name}] ${run}`;
  const server = await startHub(round, { part: run });
  const crowd = await startCrowd(round, server, `https://example.com/rooms/{n%${ROOMS}}`, tokens);
  const rooms = { topic: 'https://example.com/rooms/{n}', topics: ROOMS, connections: 4 };
  const publisher = await startPublisher(round, server, rooms);
  const pauses = await startPauses(lab);
  const perRoom = plan.streams / ROOMS;
  let expected = 0;
  const publishRounds = async (/** @type {number} */ count) => {
    await publish(publisher, { requests: count * ROOMS });
    expected += count * ROOMS * perRoom;
  };
  let counted = 0;
  for (let storm = 0; storm < MOST_STORMS && counted < STORMS; storm++) {
    await publishRounds(1); // so that each room has its own cursor
    await crowd.ask('untilDelivered', expected);
    await crowd.ask('leave');
    await publishRounds(MISSED);
    await lab.sleep(sizesOf(plan).settleMs);
    const watch = await new TickWatch(lab, server).start();
    await pauses.take();
    const begunMs = performance.now();
    await crowd.ask('open', plan.streams);
    await crowd.ask('untilDelivered', expected);
    const servedMs = performance.now() - begunMs;
    const ticks = await watch.stop();
    const isDisturbed = (await pauses.take()) > PAUSE_MS;
    if (storm === 0) continue;
    record(run, {
      servedMs,
      tickP99Ms: isDisturbed ? null : ticks.p99Ms,
      tickMaxMs: isDisturbed ? null : ticks.maxMs,
    });
    if (!isDisturbed) counted++;
  }
  const { counts } = await checkedDeliveries(crowd, expected);
  record(run, { unserved: expected - counts.delivered });
  await pauses.stop();
  await stopAll(publisher, crowd, server);
}
