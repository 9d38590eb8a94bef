/*
 * What streams of each format cost a server: memory, CPU to open, per ping and per delivered message; and how many requests
 * per second it answers on kept connections. Servers take turns, so that whatever drifts on the machine affects all of them alike.
 */
import { HoldfastError, messageOf } from '../../../lib/errors.js';
import { sizesOf } from '../tls/sizes.js';
import { busyUs, idleShare, medianPss } from '../usage.js';
import { measureRate } from './rate.js';
import { Clients, highestOf, kindOf, startSubject } from './subjects.js';

/** Code that runs for the first time takes memory and time that are not the streams'. */
const WARM_UPS = 2;
const READINGS = { readings: 9, everyMs: 300 };
/** Memory is steady when it has changed by less than this from one reading to the next. */
const STEADY_BYTES = 65_536;
const MOST_READINGS = 8;
/** After as many that don't count. */
const CLIMBS = 2;
const FAN_OUTS = 3;
/** One more that doesn't count. */
const DELIVERIES = 4;
const PING_INTERVAL_MS = 1000;
const WINDOWS = 3;
const MESSAGE = 'x'.repeat(64);
const POLL_MS = 20;
const DELIVERED_MS = 120_000;
/** A server is calm when for so long it uses hardly more of a core than without streams. */
const CALM_MS = 300;
const CALM_SHARE = 0.03;
const MOST_CALM_WATCHES = 30;

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {import('./subjects.js').Subject} Subject */
/** @typedef {{ subject: Subject, clients: Clients, idle: number }} Started `idle`: share of a core that it uses without streams */

/** @param {Round} round */
export async function measureAll(round) {
  const names = round.runs.map(({ name }) => name);
  for (const name of names.filter((one) => !kindOf(one).hasNoMemory))
    await unlessOther(round, name, () => measureMemory(round, name));
  const streams = names.filter((name) => kindOf(name).what === 'streams');
  await measureOpenings(round, streams);
  await measurePings(
    round,
    streams.filter((name) => kindOf(name).format !== 'poll'),
  );
  for (const name of names)
    if (!streams.includes(name)) await unlessOther(round, name, () => measureRate(round, name));
}

/** One of others that fails is left out. @param {Round} round @param {string} name @param {() => Promise<void>} work */
async function unlessOther({ lab }, name, work) {
  try {
    await work();
  } catch (error) {
    if (!mayFail(lab, name, error)) throw error;
    await lab.clean.clear();
  }
}

/** Ours may not fail. @param {import('../lab.js').Lab} lab @param {string} name @param {unknown} error */
function mayFail(lab, name, error) {
  if (lab.signal.aborted || kindOf(name).isOurs || !(error instanceof HoldfastError)) return false;
  lab.note(`${name} could not be measured completely: ${messageOf(error)}`);
  return true;
}

/** @param {Round} round @param {string} name @param {string} part @param {Partial<import('./subjects.js').How>} [how] */
async function start({ lab, plan, name: repeat }, name, part, how = {}) {
  lab.status = () => `[${repeat}] ${name}: ${part}`;
  const subject = await startSubject(lab, kindOf(name), { name: `${name}-${repeat}-${part}`, ...how });
  const clients = new Clients(lab);
  await clients.aim(subject, { streams: how.streams ?? plan.streams, pingIntervalMs: how.pingIntervalMs });
  return { subject, clients };
}

/** @param {Pick<Started, 'subject' | 'clients'>} started */
async function stop({ subject, clients }) {
  subject.check();
  await clients.stop();
  await subject.stop();
}

/** V8 gives back memory for some time. @param {import('../lab.js').Lab} lab @param {Subject} subject @returns {Promise<number>} bytes, once they fall no more */
async function settledPss(lab, subject) {
  let bytes = await medianPss(lab, subject, READINGS);
  for (let i = 0; i < MOST_READINGS; i++) {
    const before = bytes;
    bytes = await medianPss(lab, subject, READINGS);
    if (Math.abs(before - bytes) < STEADY_BYTES) break;
  }
  return bytes;
}

/** How much PSS grows from `low` to `high` streams, polls or idle connections. @param {Round} round @param {string} name */
async function measureMemory(round, name) {
  const { lab, plan } = round;
  const { low, settleMs, restMs } = sizesOf(plan);
  const high = highestOf(plan, kindOf(name));
  const started = await start(round, name, 'memory', { collects: true, streams: high });
  const { subject, clients } = started;
  for (let i = 0; i < WARM_UPS; i++) {
    await clients.open(low);
    await lab.sleep(settleMs);
    await clients.close();
    await lab.sleep(settleMs);
  }
  const bytesAt = async (/** @type {number} */ streams) => {
    await clients.open(streams);
    await lab.sleep(restMs);
    return settledPss(lab, subject);
  };
  const lowBytes = await bytesAt(low);
  round.record(name, { memoryBytes: ((await bytesAt(high)) - lowBytes) / Math.max(1, high - low) });
  await stop(started);
}

/** @param {Round} round @param {string[]} names @param {string} part @param {number} [pingIntervalMs] @returns {Promise<Record<string, Started>>} */
async function startAll(round, names, part, pingIntervalMs) {
  /** @type {Record<string, Started>} */
  const all = {};
  for (const name of names) {
    const started = await start(round, name, part, { pingIntervalMs });
    const { idleMs, settleMs } = sizesOf(round.plan);
    await round.lab.sleep(settleMs);
    all[name] = { ...started, idle: await idleShare(round.lab, started.subject, idleMs) };
  }
  return all;
}

/**
 * One server after the other. Those of others that fail have no further turn.
 * @param {Round} round @param {Record<string, Started>} all @param {string} part
 * @param {(name: string, started: Started) => Promise<void>} work
 */
async function eachOf({ lab, name: repeat }, all, part, work) {
  for (const [name, started] of Object.entries(all)) {
    lab.status = () => `[${repeat}] ${name}: ${part}`;
    try {
      await work(name, started);
    } catch (error) {
      if (!mayFail(lab, name, error)) throw error;
      delete all[name];
      await stop(started);
    }
  }
}

/** CPU to open, and per delivery. @param {Round} round @param {string[]} names */
async function measureOpenings(round, names) {
  const { high } = sizesOf(round.plan);
  const all = await startAll(round, names, 'openings');
  for (let climb = -CLIMBS; climb < CLIMBS; climb++) {
    await eachOf(round, all, 'openings and deliveries', async (name, started) => {
      const openUs = await openingUs(round, started);
      const isCounted = climb >= 0;
      if (isCounted) round.record(name, { openUs });
      for (let i = 0; i < (isCounted ? DELIVERIES : 1); i++) {
        const us = await deliveryUs(round, started, high);
        if (isCounted && i > 0) round.record(name, { deliveryUs: us });
      }
      await started.clients.close();
      await untilCalm(round.lab, started);
    });
  }
  for (const started of Object.values(all)) await stop(started);
}

/** @param {Round} round @param {Started} started @returns {Promise<number>} µs of CPU per stream */
async function openingUs({ lab, plan }, started) {
  const { subject, idle, clients } = started;
  const { high } = sizesOf(plan);
  const us = await busyUs(subject, idle, async () => {
    await clients.open(high);
    await untilCalm(lab, started); // what is left to do after the first bytes
  });
  return us / high;
}

/** Of a poll, it includes the request for the next one. @param {Round} round @param {Started} started @param {number} streams @returns {Promise<number>} µs of CPU per delivered message */
async function deliveryUs({ lab }, started, streams) {
  const { subject, idle, clients } = started;
  const us = await busyUs(subject, idle, async () => {
    for (let i = 0; i < FAN_OUTS; i++) {
      const target = (await clients.counts()).messages + streams;
      await subject.publish(MESSAGE);
      await untilDelivered(lab, started, target);
      if (subject.kind.format === 'poll') await untilCalm(lab, started); // all must be waiting again
    }
  });
  return us / (streams * FAN_OUTS);
}

/** @param {import('../lab.js').Lab} lab @param {Started} started @param {number} target */
async function untilDelivered(lab, { subject, clients }, target) {
  const endMs = Date.now() + DELIVERED_MS;
  for (;;) {
    const { messages, open } = await clients.counts();
    if (messages >= target) return;
    if (Date.now() > endMs)
      throw new HoldfastError(
        'DELIVERY',
        `${subject.kind.name}: ${target - messages} messages did not arrive, ${open} are open`,
      );
    await lab.sleep(POLL_MS);
  }
}

/** Closing streams takes time too, and collecting what they leave. @param {import('../lab.js').Lab} lab @param {Started} started */
async function untilCalm(lab, { subject, idle }) {
  for (let i = 0; i < MOST_CALM_WATCHES; i++)
    if ((await idleShare(lab, subject, CALM_MS)) < idle + CALM_SHARE) return;
}

/** @param {Round} round @param {string[]} names */
async function measurePings(round, names) {
  const { lab, plan } = round;
  const { high, settleMs, windowMs } = sizesOf(plan);
  const all = await startAll(round, names, 'pings', PING_INTERVAL_MS);
  for (let i = 0; i < WINDOWS; i++) {
    await eachOf(round, all, 'pings', async (name, { subject, clients, idle }) => {
      await clients.open(high);
      await lab.sleep(Math.max(settleMs, 2 * PING_INTERVAL_MS));
      const { pings: before } = await clients.counts();
      const us = await busyUs(subject, idle, () => lab.sleep(pingWindowMs(windowMs)));
      const pings = (await clients.counts()).pings - before;
      round.record(name, { pingUs: pings > 0 ? us / pings : null });
      await clients.close();
    });
  }
  for (const started of Object.values(all)) await stop(started);
}

/** Every fourth ping of a WebSocket has an answer, so a window has four. @param {number} windowMs @returns {number} */
function pingWindowMs(windowMs) {
  const round = 4 * PING_INTERVAL_MS;
  return Math.ceil(windowMs / round) * round;
}
