/*
 * CPU: to open a stream, for a delivery, for a ping.
 */
import { busyUs, idleShare } from '../usage.js';
import { sizesOf } from './sizes.js';
import { clientOf, startSubject, stopBoth } from './subjects.js';

/** Climbs that are measured, after as many that are not: code gets faster as it runs. */
const CLIMBS = 3;
const MESSAGE = 'x'.repeat(64);
const MESSAGE_BYTES = `40\r\n${MESSAGE}\r\n`.length;
const PING_BYTES = '4\r\nping\r\n'.length;
const FAN_OUTS = 10;
const PING_INTERVAL_MS = 500;
const PING_WINDOWS = 4;
const POLL_MS = 20;

/** @typedef {import('./subjects.js').Round} Round */
/** @typedef {import('./subjects.js').Kind} Kind */
/** @typedef {import('../client.js').Client} Client */
/** @typedef {{ kind: Kind, subject: import('./subjects.js').Subject, client: Client, idle: number }} Server */

/**
 * Openings and deliveries while no ping is due. All kinds run at the same time and take turns, so that whatever drifts
 * on the machine affects all of them alike.
 * @param {Round} round @param {Kind[]} kinds
 */
export async function measureOpeningsAndDeliveries(round, kinds) {
  /** @type {Server[]} */
  const servers = [];
  for (const kind of kinds) {
    const subject = await startSubject(round, kind, { part: 'openings' });
    const idle = await idleShare(round.lab, subject, sizesOf(round.plan).idleMs);
    servers.push({ kind, subject, idle, client: clientOf(round, subject) });
  }
  for (let climb = -CLIMBS; climb < CLIMBS; climb++) {
    for (const server of servers) {
      const openUs = await openingUs(round, server);
      if (climb >= 0) round.record(server.kind, { openUs });
    }
  }
  for (let i = 0; i < CLIMBS; i++) {
    for (const server of servers) round.record(server.kind, { deliveryUs: await deliveryUs(round, server) });
  }
  for (const { subject, client } of servers) await stopBoth(client, subject);
}

/** @param {Round} round @param {Server} server @returns {Promise<number>} µs of CPU per opening */
async function openingUs({ lab, plan }, { subject, idle, client }) {
  const { low, high, settleMs } = sizesOf(plan);
  await client.close();
  await lab.sleep(settleMs);
  await client.open(low);
  await lab.sleep(settleMs);
  return (await busyUs(subject, idle, () => client.open(high))) / (high - low);
}

/** @param {Round} round @param {Server} server @returns {Promise<number>} µs of CPU per delivery */
async function deliveryUs(round, { subject, idle, client }) {
  const { high } = sizesOf(round.plan);
  const us = await busyUs(subject, idle, async () => {
    for (let i = 0; i < FAN_OUTS; i++) {
      const target = (await client.read()) + MESSAGE_BYTES * high;
      await subject.publish(MESSAGE);
      while ((await client.read()) < target) await round.lab.sleep(POLL_MS);
    }
  });
  return us / (high * FAN_OUTS);
}

/** @param {Round} round @param {Kind} kind */
export async function measurePings(round, kind) {
  const { lab, plan, record } = round;
  const { high, settleMs, idleMs, pingWindowMs } = sizesOf(plan);
  const subject = await startSubject(round, kind, { part: 'pings', pingIntervalMs: PING_INTERVAL_MS });
  const client = clientOf(round, subject);
  await lab.sleep(settleMs);
  const idle = await idleShare(lab, subject, idleMs);
  await client.open(high);
  await lab.sleep(idleMs);
  for (let i = 0; i < PING_WINDOWS; i++) {
    const before = await client.read();
    const us = await busyUs(subject, idle, () => lab.sleep(pingWindowMs));
    const pings = ((await client.read()) - before) / PING_BYTES;
    record(kind, { pingUs: pings > 0 ? us / pings : null });
  }
  await stopBoth(client, subject);
}
