/*
 * Publications to one of many streams each: how long they take, and how many there can be.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { Helper } from '../helper.js';
import { busyEach, idleShares } from '../usage.js';
import { sizesOf } from './sizes.js';
import { HUB_PATH, SECRET, startHub } from './subjects.js';

const TOPIC = 'https://example.com/users/{n}';
const PER_SECOND = 1000;
/** The one for single publications, which are sent one at a time on each connection. */
const CONNECTIONS = 64;
const BATCH = 100;
const BATCH_CONNECTIONS = 4;

/** @typedef {import('./subjects.js').Round} Round */
/** @typedef {import('./subjects.js').LabServer} LabServer */

/** @param {Pick<Round, 'lab' | 'plan'>} round @param {LabServer} server @param {Partial<import('../helpers/publisher.js').How>} how @returns {Promise<Helper>} */
export async function startPublisher({ lab, plan }, { port }, how) {
  const publisher = new Helper(lab, 'publisher');
  const usual = { topic: TOPIC, topics: plan.streams, batch: 1, connections: CONNECTIONS, isNumbered: true };
  await publisher.ask('aim', { port, path: HUB_PATH, secret: SECRET, ...usual, ...how });
  return publisher;
}

/**
 * @param {Round} round @param {LabServer} server @param {string} [topic] template
 * @param {[string, string][]} [params] of the drones
 * @returns {Promise<Helper>} a crowd with all its streams open
 */
export async function startCrowd({ lab, plan }, { port }, topic = TOPIC, params = []) {
  const crowd = new Helper(lab, 'crowd');
  const own = Object.entries({ port, n: plan.streams, topic, accept: 'events' });
  await crowd.ask('aim', [...own.map(([key, value]) => [key, String(value)]), ...params]);
  await crowd.ask('open', plan.streams);
  return crowd;
}

/**
 * @param {Helper} crowd @param {number} expected deliveries since the last call
 * @returns {Promise<any>} what the crowd has measured
 * @throws {HoldfastError} WRONG if not each of them has arrived once and in order
 */
export async function checkedDeliveries(crowd, expected) {
  const { counts, latencies, problems } = await crowd.ask('take');
  const { delivered, missed, discarded, duplicated, outOfOrder, strayed, gaps } = counts;
  const faults = Object.entries({ missed, discarded, duplicated, outOfOrder, strayed, gaps });
  const found = faults.filter(([, count]) => count > 0).map(([name, count]) => `${count} ${name}`);
  if (delivered !== expected) found.push(`${delivered} of ${expected} delivered`);
  if (problems) found.push(problems);
  if (found.length > 0) throw new HoldfastError('WRONG', `publications went wrong: ${found.join(', ')}`);
  return { counts, latencies };
}

/**
 * Where it is published, and where the clients are: the same server, or nodes of one hub.
 * @typedef {{ publishAt: LabServer, clientsAt: LabServer }} Route
 */

/** From publishing to the first byte at the client, at a steady rate. @param {Round} round */
export async function measureLatency(round) {
  const { name, record, lab } = round;
  lab.status = () => `[${name}] latency of ${PER_SECOND} publications per second`;
  const server = await startHub(round, { part: 'latency' });
  record('hub', await latencyOf(round, { publishAt: server, clientsAt: server }));
  await stopAll(server);
}

/** @param {Round} round @param {Route} route @returns {Promise<{ latencyP50Ms: number, latencyP99Ms: number }>} */
export async function latencyOf(round, { publishAt, clientsAt }) {
  const { paceMs } = sizesOf(round.plan);
  const crowd = await startCrowd(round, clientsAt);
  const publisher = await startPublisher(round, publishAt, {});
  const warmUp = await publish(publisher, { ms: paceMs, perSecond: PER_SECOND });
  await crowd.ask('untilDelivered', warmUp.sent);
  await crowd.ask('take');
  const { sent } = await publish(publisher, { ms: paceMs, perSecond: PER_SECOND });
  await crowd.ask('untilDelivered', warmUp.sent + sent);
  const { latencies } = await checkedDeliveries(crowd, warmUp.sent + sent);
  await stopAll(publisher, crowd);
  return { latencyP50Ms: latencies.delivery.p50, latencyP99Ms: latencies.delivery.p99 };
}

/** As many as there can be: one per request, and in batches. @param {Round} round @param {string} run @param {string[]} [args] of the server */
export async function measureRates(round, run, args = []) {
  const { lab, name, record } = round;
  lab.status = () => `[${name}] publications per second: ${run}`;
  const server = await startHub(round, { part: `rates-${run}`, args });
  const { single, batch } = await ratesOf(round, { publishAt: server, clientsAt: server }, { server });
  record(run, {
    singleRate: single.rate,
    singleUs: single.us.server,
    batchRate: batch.rate,
    batchUs: batch.us.server,
  });
  await stopAll(server);
}

/** `us`: of CPU per publication, of each of the programs that are measured. @typedef {{ rate: number, us: Record<string, number> }} Rates */

/**
 * @param {Round} round @param {Route} route
 * @param {Record<string, import('../usage.js').Measured>} measured
 * @returns {Promise<{ single: Rates, batch: Rates }>}
 */
export async function ratesOf(round, { publishAt, clientsAt }, measured) {
  const { floodMs, idleMs } = sizesOf(round.plan);
  const crowd = await startCrowd(round, clientsAt);
  const single = await startPublisher(round, publishAt, {});
  const idle = await idleShares(round.lab, measured, idleMs);
  let total = 0;
  const flood = async (/** @type {Helper} */ publisher, /** @type {number} */ ms) => {
    let sent = 0;
    const begunMs = performance.now();
    const us = await busyEach(measured, idle, async () => {
      ({ sent } = await publish(publisher, { ms }));
      total += sent;
      await crowd.ask('untilDelivered', total);
    });
    const each = Object.entries(us).map(([name, all]) => [name, all / sent]);
    return { rate: (sent * 1000) / (performance.now() - begunMs), us: Object.fromEntries(each) };
  };
  // One after the other, each warmed up: streams take what the first publisher sends after the second one for old.
  await flood(single, floodMs / 3);
  const one = await flood(single, floodMs);
  // Not earlier: a server closes connections that don't send anything.
  const several = await startPublisher(round, publishAt, { batch: BATCH, connections: BATCH_CONNECTIONS });
  await flood(several, floodMs / 3);
  const many = await flood(several, floodMs);
  await checkedDeliveries(crowd, total);
  await stopAll(single, several, crowd);
  return { single: one, batch: many };
}

/** @param {Helper} publisher @param {{ ms?: number, requests?: number, perSecond?: number }} run @throws {HoldfastError} WRONG */
export async function publish(publisher, run) {
  const result = await publisher.ask('run', run);
  if (result.failed > 0)
    throw new HoldfastError('WRONG', `${result.failed} publications failed: ${result.problem}`);
  return result;
}

/** @param {{ stop: () => Promise<void> }[]} programs */
export async function stopAll(...programs) {
  for (const program of programs) await program.stop();
}
