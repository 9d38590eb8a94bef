/*
 * What TLS costs one server: memory per stream, CPU to open one and per ping, and what others notice while many connect at once.
 */
import { startPauses } from '../pauses.js';
import { cpuUs } from '../processes.js';
import { busyUs, idleShare, medianPss } from '../usage.js';
import { PAUSE_MS, sizesOf } from './sizes.js';
import { OURS, startClients, startSubject } from './subjects.js';

/** Code that runs for the first time takes memory and time that are not the streams'. */
const WARM_UPS = 2;
const READINGS = { readings: 9, everyMs: 300 };
const CLIMBS = 2;
/** nchan has whole seconds. */
const PING_INTERVAL_MS = 1000;
const WINDOWS = 3;
/** Storms that count, and how many are tried at most. */
const STORMS = 2;
const MOST_STORMS = 6;
/** Processes of clients. A handshake takes a client longer than a server, so one is not enough. */
const STORM_CROWDS = 2;
const ASK_EVERY_MS = 50;
/** A server is calm when for so long it uses hardly more of a core than without streams. */
const CALM_MS = 500;
const CALM_SHARE = 0.03;
const MOST_CALM_WATCHES = 20;
/** Ticks of a storm are those of the frames that it falls into. */
const STORM_REFRESH_MS = 250;

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {import('./subjects.js').Subject} Subject */
/** @typedef {import('./subjects.js').Clients} Clients */
/** @typedef {{ round: Round, run: string, record: (values: import('../experiment.js').Values) => void }} Part */

/** @param {Round} round @param {string} run */
export async function measureAll(round, run) {
  const record = (/** @type {import('../experiment.js').Values} */ values) => round.record(run, values);
  const part = { round, run, record };
  await measureMemory(part);
  await measureOpenings(part);
  await measurePings(part);
  await measureStorms(part);
}

/**
 * @param {Part} part @param {string} name of the part @param {Omit<import('./subjects.js').How, 'name'>} [how]
 * @param {Partial<Clients['how']>} [clientHow]
 */
async function start({ round: { lab, plan, name: repeat }, run }, name, how = {}, clientHow = {}) {
  lab.status = () => `[${repeat}] ${run}: ${name}`;
  const subject = await startSubject(lab, run, { name: `${run}-${repeat}-${name}`, ...how });
  const { pingIntervalMs } = how;
  const clients = await startClients(lab, subject, { streams: plan.streams, pingIntervalMs, ...clientHow });
  const stop = async () => {
    subject.check();
    await clients.stop();
    await subject.stop();
  };
  return { subject, clients, stop };
}

/** How much PSS grows from `low` to `high` streams. @param {Part} part */
async function measureMemory(part) {
  const { lab, plan } = part.round;
  const { low, high, settleMs, restMs } = sizesOf(plan);
  const { subject, clients, stop } = await start(part, 'memory', { collects: true });
  for (let i = 0; i < WARM_UPS; i++) {
    await clients.open(low);
    await lab.sleep(settleMs);
    await clients.close();
    await lab.sleep(settleMs);
  }
  const bytesAt = async (/** @type {number} */ streams) => {
    await clients.open(streams);
    await lab.sleep(restMs);
    return medianPss(lab, subject, READINGS);
  };
  const lowBytes = await bytesAt(low);
  part.record({ memoryBytes: ((await bytesAt(high)) - lowBytes) / Math.max(1, high - low) });
  await stop();
}

/** Full handshakes, then those with a ticket of an earlier one. @param {Part} part */
async function measureOpenings(part) {
  const { lab, plan } = part.round;
  const { idleMs, restMs } = sizesOf(plan);
  const { subject, clients, stop } = await start(part, 'openings');
  await lab.sleep(restMs);
  const climb = { subject, clients, idle: await idleShare(lab, subject, idleMs) };
  await clients.aim(false);
  for (let i = 0; i <= CLIMBS; i++) {
    const openUs = await climbUs(part, climb);
    if (i > 0) part.record({ openUs });
  }
  if (subject.isTls) {
    await clients.aim(true);
    await climbUs(part, climb); // for the tickets
    for (let i = 1; i <= CLIMBS; i++) await measureResumed(part, climb);
  }
  await stop();
}

/** @typedef {{ subject: Subject, clients: Clients, idle: number }} Climb `idle`: share of a core that the server uses without streams */

/** @param {Part} part @param {Climb} climb */
async function measureResumed(part, climb) {
  const { counts: before } = await climb.clients.take();
  const resumedUs = await climbUs(part, climb);
  const { counts } = await climb.clients.take();
  const handshakes = counts.handshakes - before.handshakes;
  const resumedPercent = (100 * (counts.resumptions - before.resumptions)) / handshakes;
  part.record({ resumedUs, resumedPercent });
}

/** @param {Part} part @param {Climb} climb @returns {Promise<number>} µs of CPU per stream */
async function climbUs({ round: { lab, plan } }, { subject, clients, idle }) {
  const { high, settleMs } = sizesOf(plan);
  const us = await busyUs(subject, idle, async () => {
    await clients.open(high);
    await lab.sleep(settleMs); // what is left to do after the first bytes
  });
  await clients.close();
  await untilCalm(lab, subject, idle);
  return us / high;
}

/** Closing streams takes time too, and collecting what they leave. @param {import('../lab.js').Lab} lab @param {Subject} subject @param {number} idle */
async function untilCalm(lab, subject, idle) {
  for (let i = 0; i < MOST_CALM_WATCHES; i++)
    if ((await idleShare(lab, subject, CALM_MS)) < idle + CALM_SHARE) return;
}

/** @param {Part} part */
async function measurePings(part) {
  const { lab, plan } = part.round;
  const { high, idleMs, settleMs, restMs, windowMs } = sizesOf(plan);
  const { subject, clients, stop } = await start(part, 'pings', { pingIntervalMs: PING_INTERVAL_MS });
  await lab.sleep(restMs);
  const idle = await idleShare(lab, subject, idleMs);
  await clients.open(high);
  await lab.sleep(Math.max(settleMs, 2 * PING_INTERVAL_MS));
  for (let i = 0; i < WINDOWS; i++) {
    const { counts: before } = await clients.take();
    const us = await busyUs(subject, idle, () => lab.sleep(windowMs));
    const pings = (await clients.take()).counts.pings - before.pings;
    part.record({ pingUs: pings > 0 ? us / pings : null });
  }
  await stop();
}

/** Many connect at once, with full handshakes, while others are held and pinged. @param {Part} part */
async function measureStorms(part) {
  const { lab, plan } = part.round;
  const { high, held, settleMs, restMs } = sizesOf(plan);
  const how = { pingIntervalMs: PING_INTERVAL_MS };
  const refresh = { refreshMs: STORM_REFRESH_MS };
  const { subject, clients, stop } = await start(part, 'storm', { ...how, ...refresh }, { streams: held });
  const share = Math.ceil(high / STORM_CROWDS);
  const aims = Array.from({ length: STORM_CROWDS }, () => ({ ...how, streams: share, resumes: false }));
  const crowds = await Promise.all(aims.map((aim) => startClients(lab, subject, aim)));
  const pauses = await startPauses(lab);
  await clients.open(held);
  await lab.sleep(restMs);
  let counted = 0;
  // The first one warms it up.
  for (let storm = 0; storm < MOST_STORMS && counted < STORMS; storm++) {
    await pauses.take();
    const values = await stormOf(part, { subject, clients, crowds, share });
    const pauseMs = await pauses.take();
    const isCounted = storm > 0 && pauseMs <= PAUSE_MS;
    if (isCounted) counted++;
    if (storm > 0) part.record(isCounted ? { ...values, pauseMs } : { leftOutMs: pauseMs });
    await Promise.all(crowds.map((crowd) => crowd.close()));
    await lab.sleep(settleMs);
  }
  if (counted === 0)
    lab.note(
      `${part.run}: the machine paused for longer than ${PAUSE_MS} ms in each of ${MOST_STORMS} storms`,
    );
  await pauses.stop();
  for (const crowd of crowds) await crowd.stop();
  await stop();
}

/**
 * @param {Part} part
 * @param {{ subject: Subject, clients: Clients, crowds: Clients[], share: number }} parts `clients` are held; `share`: of each crowd
 */
async function stormOf({ round: { lab } }, { subject, clients, crowds, share }) {
  const ticksBefore = subject.server ? await nextTicks(lab, subject.server) : null;
  const usBefore = cpuUs(subject.pids());
  await clients.take();
  const ms = Math.max(...(await Promise.all(crowds.map((crowd) => crowd.open(share)))));
  const busyPercent = (cpuUs(subject.pids()) - usBefore) / ms / 10;
  const { latencies } = await clients.take();
  const ticks =
    subject.server && ticksBefore ? worstOf(ticksBefore, await nextTicks(lab, subject.server)) : null;
  return {
    stormPerSecond: ((share * crowds.length) / ms) * 1000,
    stormBusyPercent: busyPercent,
    stormTickP99Ms: ticks?.p99Ms ?? null,
    stormTickMaxMs: ticks?.maxMs ?? null,
    stormLatenessP99Ms: latencies.lateness.count > 0 ? latencies.lateness.p99 : null,
  };
}

/** @param {import('../lab.js').Lab} lab @param {import('../server.js').LabServer} server @returns of each worker since its start, as of the next frame */
async function nextTicks(lab, server) {
  const before = (await server.totals())?.elapsedMs ?? -1;
  for (;;) {
    await lab.sleep(ASK_EVERY_MS);
    if (((await server.totals())?.elapsedMs ?? -1) > before) return server.ticks();
  }
}

/** The worker with the worst ticks. @param {Awaited<ReturnType<typeof nextTicks>>} before @param {Awaited<ReturnType<typeof nextTicks>>} now */
function worstOf(before, now) {
  const between = [...now].flatMap(([pid, all]) => {
    const first = before.get(pid);
    return first ? [all.less(first)] : [];
  });
  return {
    p99Ms: Math.max(...between.map((ticks) => ticks.percentile(0.99, 'ms'))),
    maxMs: Math.max(...between.map((ticks) => ticks.maximum('ms'))),
  };
}

/** @param {import('../plan.js').Plan} plan @param {string} run @returns {number} about how many seconds a run takes */
export function secondsOf(plan, run) {
  const { high, idleMs, settleMs, restMs, windowMs } = sizesOf(plan);
  const openS = (high / 1000) * (OURS.includes(run) ? 0.35 : 0.8);
  const climbS = openS + (2 * CALM_MS + settleMs) / 1000;
  const memoryS = 2 * WARM_UPS * (settleMs / 1000) + openS * 2 + (2 * restMs) / 1000 + 6;
  const climbs = run === 'plain' ? 1 + CLIMBS : 2 * (1 + CLIMBS);
  const pingsS = (restMs + idleMs + WINDOWS * windowMs) / 1000 + openS + 4;
  const stormsS = (1 + STORMS) * (openS + settleMs / 1000 + 1) + restMs / 1000 + 4;
  return memoryS + climbs * climbS + pingsS + stormsS;
}
