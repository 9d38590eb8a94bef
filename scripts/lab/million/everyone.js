/*
 * One publication to everyone: how long until everyone has it, as the clients measure it, and how late pings are meanwhile.
 */
import { formatCount } from '../../../lib/format.js';
import { Histogram } from '../../../lib/histogram.js';
import { cpuUs } from '../processes.js';

/** Drones look at their counters every 100 ms. */
const POLL_MS = 200;
/** What nobody has by then is missing. */
const PATIENCE_MS = 60_000;
const SECOND_MS = 1000;
/** Pings are on time again when those of a whole second are (p99). */
const ON_TIME_MS = 50;
/** A publication replaces pings for up to an interval; in the next one they are back. */
const MOST_INTERVALS = 3;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('../load.js').Load} Load */

/**
 * What all drones have measured since they started.
 * @typedef {object} Look
 * @property {number} ms
 * @property {import('../../../fleet/ask.js').Counts} counts
 * @property {Histogram} lateness of pings
 * @property {Histogram} delivery from publishing to reading
 */

/**
 * @typedef {object} Audience
 * @property {Lab} lab
 * @property {string} name of the trial
 * @property {Load} load
 * @property {number} streams all of which get each publication
 * @property {number} pingIntervalMs
 * @property {boolean} knowsLateness whether the clients know which pings a publication has taken the place of; if not, those count as late
 * @property {() => number[]} serverPids
 * @property {() => Promise<unknown>} publish
 *
 * @typedef {object} Broadcast
 * @property {number} streams
 * @property {number} delivered
 * @property {Histogram} delivery
 * @property {Histogram} lateness of the pings, or of the publications in their place, until everyone had it, and then until they were on time again
 * @property {number} serverUs CPU, from the publication until everyone was seen to have it
 * @property {number} clientsUs
 * @property {number} tookMs how long that was
 * @property {number} bytes that clients read meanwhile
 * @property {number} pings likewise
 * @property {number} usualPings that are due in so long a time
 */

/** @param {Load} load @returns {Promise<Look>} */
export async function look(load) {
  const { counts } = await load.pollAll();
  return {
    ms: performance.now(),
    counts,
    lateness: load.measured('lateness'),
    delivery: load.measured('delivery'),
  };
}

/** @param {Audience} audience @returns {Promise<Broadcast>} */
export async function broadcast(audience) {
  const { lab, name, load, streams, pingIntervalMs, serverPids, publish } = audience;
  const before = await untilAsUsual(audience);
  const cpu = { server: cpuUs(serverPids()), clients: cpuUs(load.pids()) };
  const published = lab.unlessAborted(publish());
  const after = await untilEveryoneHasIt(audience, before);
  const serverUs = cpuUs(serverPids()) - cpu.server;
  const clientsUs = cpuUs(load.pids()) - cpu.clients;
  await published;
  const delivery = after.delivery.less(before.delivery);
  if (delivery.count < streams)
    lab.note(
      `${name}: ${formatCount(streams - delivery.count)} of ${formatCount(streams)} streams did not have a publication after ${PATIENCE_MS / SECOND_MS} s`,
    );
  const { last } = audience.knowsLateness
    ? await untilOnTime(lab, load, after, pingIntervalMs)
    : { last: after };
  const tookMs = after.ms - before.ms;
  return {
    streams,
    delivered: delivery.count,
    delivery,
    lateness: audience.knowsLateness ? last.lateness.less(before.lateness) : new Histogram(),
    serverUs,
    clientsUs,
    tookMs,
    bytes: after.counts.bytes - before.counts.bytes,
    pings: after.counts.pings - before.counts.pings,
    usualPings: (streams * tookMs) / pingIntervalMs,
  };
}

/**
 * Waits for a second with at least half of the usual pings, which were on time: after a publication that took their place, there are few.
 * @param {Audience} audience @returns {Promise<Look>} the last one
 */
async function untilAsUsual({ lab, load, streams, pingIntervalMs, knowsLateness }) {
  const endMs = performance.now() + MOST_INTERVALS * pingIntervalMs;
  for (let last = await look(load); ; ) {
    await lab.sleep(SECOND_MS);
    const now = await look(load);
    const usual = (streams * (now.ms - last.ms)) / pingIntervalMs;
    const hasPings = now.counts.pings - last.counts.pings >= usual / 2;
    const isLate = knowsLateness && !isOnTime(now.lateness.less(last.lateness));
    if ((hasPings && !isLate) || now.ms > endMs) return now;
    last = now;
  }
}

/** @param {Audience} audience @param {Look} before @returns {Promise<Look>} the first in which everyone has it, or the last one */
async function untilEveryoneHasIt({ lab, load, streams }, before) {
  const endMs = before.ms + PATIENCE_MS;
  for (;;) {
    const now = await look(load);
    if (now.delivery.count - before.delivery.count >= streams || now.ms > endMs) return now;
    await lab.sleep(POLL_MS);
  }
}

/**
 * Waits for a second in which pings were on time.
 * @param {Lab} lab @param {Load} load @param {Look} from @param {number} withinMs
 * @returns {Promise<{ last: Look, isOnTime: boolean }>} `last`: from when they were not yet; `isOnTime`: whether they are now
 */
export async function untilOnTime(lab, load, from, withinMs) {
  const endMs = performance.now() + withinMs;
  for (let last = from; ; ) {
    await lab.sleep(SECOND_MS);
    const now = await look(load);
    const isNow = isOnTime(now.lateness.less(last.lateness));
    if (isNow || now.ms > endMs) return { last, isOnTime: isNow };
    last = now;
  }
}

/** @param {Histogram} lateness */
function isOnTime(lateness) {
  return lateness.count === 0 || lateness.percentile(0.99, 'ms') <= ON_TIME_MS;
}
