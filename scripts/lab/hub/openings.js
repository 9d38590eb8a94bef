/*
 * CPU to open a stream, and for a delivery to all.
 */
import { generateKeyPairSync } from 'node:crypto';
import { startPauses } from '../pauses.js';
import { busyUs, idleShare } from '../usage.js';
import { PAUSE_MS, sizesOf } from './sizes.js';
import { clientOf, publishTo, startHub } from './subjects.js';
import { TickWatch } from './ticks.js';

/** Climbs that are not measured, because code gets faster as it runs, and those that are. */
const WARM_CLIMBS = 6;
const CLIMBS = 2;
const MESSAGE = 'x'.repeat(64);
const FAN_OUTS = 10;
const POLL_MS = 20;
const PER_SECOND = 10_000;
const STEP_MS = 50;

/** @typedef {import('./subjects.js').Round} Round */
/** @typedef {import('./subjects.js').Kind} Kind */
/** @typedef {{ kind: Kind, server: import('./subjects.js').LabServer, client: import('../client.js').Client, idle: number }} Subject */

/**
 * All kinds run at the same time and take turns, so that whatever drifts on the machine affects all of them alike.
 * @param {Round} round @param {Kind[]} kinds
 */
export async function measureOpeningsAndDeliveries(round, kinds) {
  const { lab, plan, name, record } = round;
  /** @type {Subject[]} */
  const subjects = [];
  for (const kind of kinds) {
    lab.status = () => `[${name}] openings: ${kind}`;
    const server = await startHub(round, { part: `openings-${kind}` });
    const idle = await idleShare(lab, server, sizesOf(plan).idleMs);
    subjects.push({ kind, server, idle, client: clientOf(round, server, kind) });
  }
  for (let climb = -WARM_CLIMBS; climb < CLIMBS; climb++) {
    for (const subject of subjects) {
      lab.status = () => `[${name}] openings: ${subject.kind}`;
      const openUs = await openingUs(round, subject);
      if (climb >= 0) record(subject.kind, { openUs });
    }
  }
  for (let i = -1; i < CLIMBS; i++) {
    for (const subject of subjects) {
      lab.status = () => `[${name}] deliveries: ${subject.kind}`;
      const deliveryUs = await deliveriesUs(round, subject);
      if (i >= 0) record(subject.kind, { deliveryUs });
    }
  }
  for (const { client, server } of subjects) {
    await client.stop();
    await server.stop();
  }
}

/** @param {Round} round @param {Subject} subject @returns {Promise<number>} µs of CPU per opening */
async function openingUs({ lab, plan }, { server, idle, client }) {
  const { low, high, settleMs } = sizesOf(plan);
  await client.close();
  await lab.sleep(settleMs);
  await client.open(low);
  await lab.sleep(settleMs);
  return (await busyUs(server, idle, () => client.open(high))) / (high - low);
}

/** @param {Round} round @param {Subject} subject @returns {Promise<number>} µs of CPU per delivery */
async function deliveriesUs({ lab, plan }, { kind, server, idle, client }) {
  const { high } = sizesOf(plan);
  const us = await busyUs(server, idle, async () => {
    for (let i = 0; i < FAN_OUTS; i++) {
      const before = await client.read();
      const target = before + (await publishTo(server, kind, MESSAGE)) * high;
      while ((await client.read()) < target) await lab.sleep(POLL_MS);
    }
  });
  return us / (high * FAN_OUTS);
}

/** Streams open at a steady rate, each with its own ES256 token, which none of the workers has seen before. @param {Round} round */
export async function measureSteadyOpenings(round) {
  const { lab, plan, name, record } = round;
  lab.status = () => `[${name}] own ES256 tokens`;
  const { privateKey, publicKey } = generateKeyPairSync('ec', {
    namedCurve: 'P-256',
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  });
  const server = await startHub(round, { part: 'es256', args: ['--jwt-subscriber-key', publicKey] });
  const pauses = await startPauses(lab);
  const idle = await idleShare(lab, server, sizesOf(plan).idleMs);
  for (const isWarmUp of [true, false]) {
    // Other tokens than before.
    const client = clientOf(round, server, 'ec', { secret: privateKey });
    const watch = await new TickWatch(lab, server).start();
    await pauses.take();
    const begunMs = performance.now();
    const us = await busyUs(server, idle, () => openSteadily(round, client));
    const openRate = (plan.streams * 1000) / (performance.now() - begunMs);
    const ticks = await watch.stop();
    const isDisturbed = (await pauses.take()) > PAUSE_MS;
    if (!isWarmUp) record('own-es256', { openUs: us / plan.streams, openRate });
    if (!isWarmUp && !isDisturbed) record('own-es256', { tickP99Ms: ticks.p99Ms, tickMaxMs: ticks.maxMs });
    await client.stop();
    await lab.sleep(sizesOf(plan).settleMs);
  }
  await pauses.stop();
  await server.stop();
}

/** @param {Round} round @param {import('../client.js').Client} client */
async function openSteadily({ lab, plan }, client) {
  const step = (PER_SECOND * STEP_MS) / 1000;
  const begunMs = performance.now();
  for (let open = step, i = 1; open - step < plan.streams; open += step, i++) {
    await client.open(Math.min(open, plan.streams));
    await lab.sleep(Math.max(0, begunMs + i * STEP_MS - performance.now()));
  }
}
