/*
 * The trial of the rooms: opens all streams, raises the rate of publications step by step, and holds what was good.
 */
import { signerOf } from '../../../fleet/drone/topics/tokens.js';
import { HoldfastError } from '../../../lib/errors.js';
import { formatCount, formatMs } from '../../../lib/format.js';
import { HUB_PATH, SECRET } from '../hub/subjects.js';
import { change, rest } from '../steps.js';
import { deliveryValues, faultValues, Publications, roomsFor, topicsFor } from './publications.js';
import { searched } from './search.js';
import { sendValues } from './spread.js';
import { onStage } from './stage.js';
import { cellsOf, valuesOfSteps } from './steps.js';
import { cpuValues, latenessValues, memoryValues, pauseValues, streamValues, tickValues } from './values.js';

/** The list of a million streams takes about 250 bytes of each. */
export const MAX_PRESENCE = 1_073_741_824;
/** What a step has to be. */
export const GOOD = { deliveryP99Ms: 100, latenessP99Ms: 100, tickP99Ms: 50, keptPercent: 98 };
const FIRST_RATE = 20_000;
/** What is held, of the best rate, and then of what was too much to hold. */
const HELD_SHARE = 0.95;
const LESS = 0.9;
/** Rates that are held for long. If none of them is good, the machine is probably busy with something else. */
const MOST_HELD = 3;
const MOST_STEP_S = 20;
const LEAST_STEP_S = 1;
/** Steps last as long as this part of what is held. */
const STEP_SHARE = 1 / 20;
/** Whoever wants to hold only for so long does not want to wait for many steps either. */
const SHORT_HOLD_S = 10;
const STEPS_OF_SHORT_HOLD = 3;
const ROOMS_ASKED = 10;
const ANSWER_MS = 30_000;
const TTL_S = 86_400;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('./stage.js').Watch} Watch */
/** @typedef {import('./steps.js').Step} Step */

// biome-ignore format: a table reads best with a row a line
/** @type {import('./steps.js').Column[]} */
export const COLUMNS = [
  { name: 'wanted', text: 'deliveries wanted', unit: '1/s' },
  { name: 'rate', text: 'made', unit: '1/s' },
  { name: 'deliveryP50Ms', text: 'p50', unit: 'ms' },
  { name: 'deliveryP99Ms', text: 'p99', unit: 'ms' },
  { name: 'deliveryMaxMs', text: 'max', unit: 'ms' },
  { name: 'latenessP99Ms', text: 'ping lateness p99', unit: 'ms' },
  { name: 'tickP99Ms', text: 'tick p99', unit: 'ms' },
  { name: 'serverPercent', text: 'CPU of the server', unit: '%' },
  { name: 'clientsPercent', text: 'of the clients', unit: '%' },
  { name: 'keptPercent', text: 'published of what was due', unit: '%' },
];

/** @param {Trial} trial @returns {Promise<Values>} */
export async function trialOfRooms(trial) {
  const { lab, plan } = trial;
  const publications = new Publications(lab, plan.streams);
  /** @type {Step[]} */
  let steps = [];
  /** @type {Values} */
  let found = {};
  const params = { topic: topicsFor(plan.streams) };
  const { phases, watch } = await onStage(trial, { params }, async (watch) => {
    await publications.aim(watch.stage.server.adminPort);
    await watch.during('idle', () => rest('idle', plan.idleS).run(watch.stage));
    await watch.during('up', () => change(watch.stage, plan.streams));
    steps = await climb(watch, publications, plan.holdS);
    const held = await keep(watch, publications, heldRate(steps), plan.holdS);
    const { counts } = watch.stage.load.total();
    found = { ...held, ...faultValues(publications.expected, [counts]), ...(await presenceValues(watch)) };
    await publications.stop();
  });
  const cpu = cpuValues({ ...phases, up: phases[stepName(steps.length)] });
  return {
    ...streamValues(phases),
    ...memoryValues(phases, plan.streams),
    ...tickValues('held', phases.held),
    ...tickValues('up', phases.up),
    ...cpu,
    ...sendsIn(cpu, found),
    ...latenessValues(phases.held),
    ...deliveryValues(phases.held),
    ...pauseValues(phases.held, watch.pauses),
    ...found,
    bestRate: searched(FIRST_RATE, verdictsOf(steps)).best,
    ...valuesOfSteps(steps),
  };
}

/** @param {Values} cpu @param {Values} held @returns {Values} */
function sendsIn({ cpuPercent, dronesPercent, pings }, { deliveryRate }) {
  return sendValues((cpuPercent ?? 0) + (dronesPercent ?? 0), (deliveryRate ?? 0) + (pings ?? 0));
}

/** @param {number} number from 1 @returns {string} of its phase */
const stepName = (number) => `step ${number}`;

/** @param {Step[]} steps @returns {boolean[]} whether each was good */
const verdictsOf = (steps) => steps.map(({ good }) => good === 1);

/** @param {Step[]} steps @returns {number} deliveries per second */
function heldRate(steps) {
  return HELD_SHARE * (searched(FIRST_RATE, verdictsOf(steps)).best || FIRST_RATE);
}

/** Step by step to the highest good rate. @param {Watch} watch @param {Publications} publications @param {number} holdS @returns {Promise<Step[]>} */
async function climb(watch, publications, holdS) {
  const ms = 1000 * Math.min(MOST_STEP_S, Math.max(LEAST_STEP_S, holdS * STEP_SHARE));
  const most = holdS >= SHORT_HOLD_S ? undefined : STEPS_OF_SHORT_HOLD;
  /** @type {Step[]} */
  const steps = [];
  for (;;) {
    const { next } = searched(FIRST_RATE, verdictsOf(steps), most);
    if (next === null) return steps;
    const name = stepName(steps.length + 1);
    const step = await publishedDuring(watch, publications, name, next, ms);
    const good = isGood(step);
    steps.push({ ...step, good: good ? 1 : 0 });
    const cells = cellsOf(step, COLUMNS).map((cell, i) => `${COLUMNS[i].text} ${cell}`);
    watch.lab.say(`  ${good ? 'good' : 'not good'}: ${cells.join(', ')}`);
  }
}

/** Pure. @param {Step} step @returns {boolean} */
export function isGood(step) {
  const isBelow = (/** @type {'deliveryP99Ms' | 'latenessP99Ms' | 'tickP99Ms'} */ name) =>
    (step[name] ?? 0) <= GOOD[name];
  const isKept = (step.keptPercent ?? 0) >= GOOD.keptPercent && step.arrived === 1;
  return isKept && isBelow('deliveryP99Ms') && isBelow('latenessP99Ms') && isBelow('tickP99Ms');
}

/**
 * A phase with publications; it ends when the last of them has arrived.
 * @param {Watch} watch @param {Publications} publications @param {string} phase @param {number} rate deliveries per second @param {number} ms
 * @returns {Promise<Step>}
 */
async function publishedDuring(watch, publications, phase, rate, ms) {
  const { load, server } = watch.stage;
  let published = { sent: 0, expected: 0, wanted: 1 };
  let arrived = false;
  const status = () => `${formatCount(rate)} deliveries per second`;
  const cpuBefore = publications.cpuUs();
  await watch.during(
    phase,
    async () => {
      published = await publications.run(ms, rate);
      server.check();
      arrived = await publications.untilDelivered([load]);
    },
    status,
  );
  const span = watch.recorder.spans[phase];
  const { sent, expected, wanted } = published;
  return {
    wanted: rate,
    rate: (1000 * expected) / span.tookMs,
    publicationRate: (1000 * sent) / span.tookMs,
    ...deliveryValues(span),
    ...latenessValues(span),
    tickP99Ms: span.ticks?.p99Ms ?? null,
    serverPercent: span.serverCpuPercent,
    clientsPercent: span.dronesCpuPercent,
    publisherPercent: (publications.cpuUs() - cpuBefore) / span.tookMs / 10,
    keptPercent: Math.min(100, (100 * sent) / wanted),
    arrived: arrived ? 1 : 0,
  };
}

/**
 * Holds for long what was good for a moment, or less if that turns out to be too much.
 * @param {Watch} watch @param {Publications} publications @param {number} first rate @param {number} holdS
 * @returns {Promise<Values>} of the last one
 */
async function keep(watch, publications, first, holdS) {
  for (let [rate, more] = [first, MOST_HELD - 1]; ; rate *= LESS, more--) {
    await watch.pauses.start();
    const held = await publishedDuring(watch, publications, 'held', rate, 1000 * holdS);
    await watch.pauses.stop(`${watch.name}-pauses`);
    const { publicationRate, publisherPercent, deliveryP99Ms } = held;
    if (isGood(held) || more === 0) return { deliveryRate: held.rate, publicationRate, publisherPercent };
    const p99 = formatMs(deliveryP99Ms ?? 0);
    watch.lab.note(
      `${formatCount(Math.round(rate))} deliveries per second were too many to hold: p99 was ${p99} ms`,
    );
  }
}

/** Asks for the lists of some rooms, as their members could. @param {Watch} watch @returns {Promise<Values>} */
async function presenceValues({ lab, stage }) {
  const { server, plan } = stage;
  const rooms = roomsFor(plan.streams);
  const token = signerOf({ secret: SECRET, dialect: '0.x', ttlS: TTL_S })('lab', 'subscribe', ['*']);
  const counts = [];
  let slowestMs = 0;
  for (let i = 0; i < Math.min(ROOMS_ASKED, rooms); i++) {
    const room = Math.floor((i * rooms) / ROOMS_ASKED);
    const begunMs = performance.now();
    const answer = await lab.unlessAborted(
      fetch(listUrl(server.port, `rooms/${room}`), {
        headers: { Authorization: `Bearer ${token}` },
        signal: AbortSignal.timeout(ANSWER_MS),
      }),
    );
    if (answer.status !== 200)
      throw new HoldfastError('PRESENCE', `the list of room ${room} got status ${answer.status}`);
    counts.push((await answer.json()).subscriptions.length);
    slowestMs = Math.max(slowestMs, performance.now() - begunMs);
  }
  return { leastPresent: Math.min(...counts), mostPresent: Math.max(...counts), presenceMs: slowestMs };
}

/** @param {number} port @param {string} topic */
function listUrl(port, topic) {
  return `http://127.0.0.1:${port}${HUB_PATH}/subscriptions/${encodeURIComponent(topic)}`;
}
