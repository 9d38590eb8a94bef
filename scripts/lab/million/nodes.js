/*
 * The trial of the million run with three nodes: one of them is killed while it is published at all of them, and its clients recover at the
 * others.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { HubPublisher, hubUrl } from '../../../fleet/publish/hub.js';
import { figure } from '../figures.js';
import { SECRET } from '../hub/subjects.js';
import { networkOfMany } from '../namespace.js';
import { startNodes } from '../nodes/trio.js';
import { change, hold, rest } from '../steps.js';
import { onStage } from './stage.js';
import { memoryValues, streamValues, tickValues } from './values.js';

export const NODES = 3;
const PER_ROOM = 100;
export const PER_SECOND = 300;
const TOPIC = `https://example.com/rooms/{n/${PER_ROOM}}`;
const HISTORY = ['--history-count', '100000', '--history-bytes', '100000000'];
const SERVER = ['--anonymous', '--jwt-secret', SECRET, ...HISTORY];
/** A publication is tried again for so long. */
const RETRY_MS = 60_000;
const TOKEN_S = 86_400;
const POLL_MS = 50;
/** How long everybody may take to come back, and to get everything. */
const BACK_MS = 180_000;
const DELIVERY_MS = 60_000;
/** Nothing more has been recovered for so long: then everybody has everything. */
const QUIET_MS = 2000;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../nodes/trio.js').Nodes} Nodes */
/** @typedef {import('../steps.js').Stage} Stage */
/** @typedef {ReturnType<HubPublisher['counts']>} Published */
/** @typedef {{ killed: number, killMs: number, backMs: number, recoveredMs: number }} Return from the kill: streams of the node, and times */

export const NODE_FIGURES = [
  figure('killed', 'streams of the node that was killed', 'count'),
  figure('backS', 'from the kill until all of them are open at other nodes', 's'),
  figure('recoveredS', 'from the kill until they have everything that they missed', 's'),
  figure('moved', 'streams opened at another node than before', 'count'),
  figure('recovered', 'deliveries that streams missed at first, and then got', 'count'),
  figure('accepted', 'publications answered with 200', 'count'),
  figure('missing', 'deliveries of them that did not arrive', 'count'),
  figure('duplicated', 'deliveries that arrived again', 'count'),
  figure('disordered', 'deliveries out of order, or elsewhere', 'count'),
  figure('gaps', 'false alarms: answers that say that publications may be missing', 'count'),
  figure('restarted', 'streams that came back without a cursor', 'count'),
  figure('expected', 'deliveries expected', 'count'),
  figure('refused', 'requests that were refused', 'count'),
  figure('unanswered', 'requests without an answer', 'count'),
  figure('retried', 'requests that were sent again', 'count'),
  figure('unpublished', 'publications that were never answered with 200', 'count'),
  figure('beforeP99Ms', 'from publishing to the client, p99, before the kill', 'ms'),
  figure('beforeMaxMs', 'the longest, before the kill', 'ms'),
  figure('afterP99Ms', 'from publishing to the client, p99, once all are back', 'ms'),
  figure('afterMaxMs', 'the longest, once all are back', 'ms'),
  figure('longestMs', 'from publishing to the client, the longest after the kill', 'ms'),
  figure('killedLatenessP99Ms', 'ping lateness p99, from the kill until all have everything', 'ms'),
  figure('killedLatenessMaxMs', 'worst ping lateness, from the kill until all have everything', 'ms'),
  figure('beforeLatenessP99Ms', 'ping lateness p99 before the kill', 'ms'),
  figure('closingS', 'until the kernel had closed all connections of the killed node', 's'),
  figure('cpuPercent', 'CPU of the nodes before the kill', '%'),
  figure('natsPercent', 'CPU of NATS before the kill', '%'),
  figure('dronesPercent', 'CPU of the clients before the kill', '%'),
  figure('afterCpuPercent', 'CPU of the nodes once all are back', '%'),
];

/** @param {Trial} trial @returns {Promise<Values>} */
export async function trialOfNodes(trial) {
  const { plan, lab } = trial;
  const most = Math.ceil(plan.streams / (NODES - 1)); // of each node, when one is gone
  const start = /** @type {any} */ (
    (/** @type {import('../lab.js').Lab} */ lab, /** @type {import('../server.js').How} */ how) =>
      startNodes(lab, how, NODES)
  );
  const publisher = { natsPercent: 0, published: /** @type {Published | null} */ (null) };
  /** @type {Return} */
  let back = { killed: 0, killMs: 0, backMs: 0, recoveredMs: 0 };
  const { phases } = await onStage(
    trial,
    { args: SERVER, params: { topic: [TOPIC] }, most, start },
    async (watch) => {
      const { stage } = watch;
      const nodes = /** @type {Nodes} */ (/** @type {unknown} */ (stage.server));
      Object.assign(stage.load.aim.params ?? {}, { others: nodes.others(networkOfMany().hosts) });
      await watch.during('idle', () => rest('idle', plan.idleS).run(stage));
      await watch.during('up', () => change(stage, plan.streams));
      const publishing = await startPublishing(trial, nodes);
      await watch.during('warm', () => untilAllHaveSome(stage, publishing));
      const natsUs = nodes.natsUs();
      await watch.during('held', () => hold('held', plan.holdS).run(stage));
      publisher.natsPercent = (nodes.natsUs() - natsUs) / plan.holdS / 1e4;
      await watch.during('killed', async () => {
        back = await killOne(stage, nodes);
      });
      await watch.during('after', () => hold('after', plan.holdS).run(stage));
      await watch.during('end', () => finish(stage, publishing));
      publisher.published = publishing.counts();
      await publishing.close();
    },
  );
  const { held, killed, after, end } = phases;
  const published = /** @type {Published} */ (publisher.published);
  if (published.problem) lab.note(`the last answer that was not 200: ${published.problem}`);
  return {
    ...endValues(end.load.counts, published),
    killed: back.killed,
    closingS: back.killMs / 1000,
    backS: back.backMs / 1000,
    recoveredS: back.recoveredMs / 1000,
    ...streamValues(phases),
    // Streams of the killed node were lost on purpose.
    lost: sumOf(end.load.counts.lost) - back.killed,
    ...memoryValues(phases, plan.streams),
    ...tickValues('held', held),
    ...tickValues('killed', killed),
    ...tickValues('after', after),
    beforeP99Ms: held.deliveryMs.p99,
    beforeMaxMs: held.deliveryMs.max,
    afterP99Ms: after.deliveryMs.p99,
    afterMaxMs: after.deliveryMs.max,
    longestMs: Math.max(killed.deliveryMs.max, after.deliveryMs.max, end.deliveryMs.max),
    killedLatenessP99Ms: killed.latenessMs.p99,
    killedLatenessMaxMs: killed.latenessMs.max,
    beforeLatenessP99Ms: held.latenessMs.p99,
    cpuPercent: held.serverCpuPercent,
    natsPercent: publisher.natsPercent,
    dronesPercent: held.dronesCpuPercent,
    afterCpuPercent: after.serverCpuPercent,
  };
}

/**
 * What has become of all publications. What was answered with 200 must have arrived at each stream of its topic.
 * @param {import('../../../fleet/ask.js').Counts} counts @param {Published} published
 * @returns {Values}
 */
export function endValues(counts, { sent, failed, retried, expected, hubs }) {
  const { delivered, duplicated, outOfOrder, strayed, gaps, restarted, recovered, moved } = counts;
  const total = (/** @type {'refused' | 'unanswered'} */ name) =>
    hubs.reduce((sum, hub) => sum + hub[name], 0);
  return {
    accepted: sent,
    unpublished: failed,
    retried,
    refused: total('refused'),
    unanswered: total('unanswered'),
    expected,
    missing: expected - delivered,
    duplicated,
    disordered: outOfOrder + strayed,
    gaps,
    restarted,
    recovered,
    moved,
  };
}

/** @param {Trial} trial @param {Nodes} nodes @returns {Promise<HubPublisher>} at all of them */
async function startPublishing({ lab, plan }, nodes) {
  const publisher = new HubPublisher({
    urls: nodes.urls().map(hubUrl),
    retryMs: RETRY_MS,
    topics: [TOPIC],
    streams: plan.streams,
    perSecond: PER_SECOND,
    batch: 1,
    size: 1,
    token: '',
    signer: { secret: SECRET, dialect: '0.x', ttlS: TOKEN_S, claims: {} },
    clock: 'monotonic',
  });
  lab.clean.add(() => publisher.close());
  publisher.start();
  return publisher;
}

/** A stream has a cursor when it got something; without one it could not recover. @param {Stage} stage @param {HubPublisher} publisher */
async function untilAllHaveSome({ lab, load, server }, { topics, audience }) {
  const all = [...audience.values()].reduce((sum, streams) => sum + streams, 0);
  while (topics.some(({ sent }) => sent === 0) || (await load.pollCounts()).delivered < all) {
    server.check();
    await lab.sleep(POLL_MS);
  }
}

/** @param {Stage} stage @param {Nodes} nodes @returns {Promise<Return>} when all streams are back, and have everything */
async function killOne({ lab, load }, nodes) {
  const { servers, counts } = await load.pollAll();
  const { moved, recovered } = counts;
  const begunMs = performance.now();
  const { port, tookMs: killMs } = await nodes.kill();
  const killed = servers.find(({ name }) => name.endsWith(`:${port}`))?.open ?? 0;
  const result = { killed, killMs, backMs: 0, recoveredMs: 0 };
  let lastRecovered = recovered;
  const passed = () => performance.now() - begunMs;
  while (passed() < BACK_MS) {
    const now = await load.pollCounts();
    if (!result.backMs && now.moved - moved >= killed && now.open === load.target) result.backMs = passed();
    if (now.recovered > lastRecovered) result.recoveredMs = passed();
    lastRecovered = now.recovered;
    if (result.backMs && passed() - Math.max(result.backMs, result.recoveredMs) > QUIET_MS) break;
    nodes.check();
    await lab.sleep(POLL_MS);
  }
  return result;
}

/** Nothing more is published, and everything has arrived. What does not come by then is lost. @param {Stage} stage @param {HubPublisher} publisher */
async function finish({ lab, load }, publisher) {
  publisher.requestsPerSecond = 0; // what waits for its turn is still sent
  const endMs = Date.now() + DELIVERY_MS;
  while (!publisher.isDelivered(await load.pollCounts()) && Date.now() < endMs) await lab.sleep(POLL_MS);
  publisher.stop();
}
