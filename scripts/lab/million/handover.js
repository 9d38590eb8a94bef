/*
 * The trial of the million run with takeovers: two new servers take over all streams, one after the other, while publications go on.
 */
import { sumOf } from '../../../fleet/drone/causes.js';
import { figure } from '../figures.js';
import { startGenerations } from '../handover/generations.js';
import { Helper } from '../helper.js';
import { HUB_PATH, SECRET } from '../hub/subjects.js';
import { change, hold, rest } from '../steps.js';
import { moveValues } from './moves.js';
import { onStage } from './stage.js';
import { latenessValues, memoryValues, streamValues, tickValues } from './values.js';

const TOPIC = 'https://example.com/{n}';
const SERVER = ['--anonymous', '--jwt-secret', SECRET];
export const PER_SECOND = 1000;
const CONNECTIONS = 16;
/** Publications per request. */
export const BATCH = 10;
/** With more of them, each would get too few publications to tell anything about their order. */
const MOST_TOPICS = 20_000;
const FOREVER_MS = 3_600_000;
/** How long the last publications may take. */
const DELIVERY_MS = 30_000;
const POLL_MS = 100;

/** @typedef {import('../experiment.js').Trial} Trial */
/** @typedef {import('../experiment.js').Values} Values */
/** @typedef {import('../handover/generations.js').Generations} Generations */
/** @typedef {import('../handover/generations.js').Takeover} Takeover */
/** @typedef {import('../phases.js').Phases} Phases */
/** @typedef {Takeover & { descriptors: number, memoryBytes: number }} Seen `descriptors` and `memoryBytes` of the new server */
/** @typedef {{ sent: number, failed: number, problem: string, reopened: number }} Published */

/** The takeovers, by the names of their phases. */
export const TAKEOVERS = /** @type {const} */ (['first', 'second']);

/** @type {{ name: string, text: string, unit: import('../experiment.js').Figure['unit'], of: (seen: Seen, phases: Phases, name: string) => number | null }[]} */
// biome-ignore format: a table reads best with a row a line
const ROWS = [
  { name: 'TookS', text: 'from the command until the old server is gone', unit: 's', of: ({ tookMs }) => tookMs / 1000 },
  { name: 'HaveAllS', text: 'from the command until the new server has all streams', unit: 's', of: ({ haveAllMs }) => seconds(haveAllMs) },
  { name: 'StartS', text: 'of that: until the new server is ready for them', unit: 's', of: ({ haveAllMs, movedMs }) => haveAllMs !== null && movedMs !== null ? seconds(haveAllMs - movedMs) : null },
  { name: 'MovedS', text: 'of that: while streams move', unit: 's', of: ({ movedMs }) => seconds(movedMs) },
  { name: 'PerSecond', text: 'streams moved per second', unit: '1/s', of: ({ moved, movedMs }) => (moved && movedMs ? (1000 * moved) / movedMs : null) },
  { name: 'Moved', text: 'streams moved', unit: 'count', of: ({ moved }) => moved },
  { name: 'PauseMs', text: 'longest time from publishing to the client', unit: 'ms', of: (_, phases, name) => worst(phases, name, 'deliveryMs') },
  { name: 'LatenessP99Ms', text: 'ping lateness p99', unit: 'ms', of: (_, phases, name) => phases[name].latenessMs.p99 },
  { name: 'LatenessMaxMs', text: 'worst ping lateness', unit: 'ms', of: (_, phases, name) => worst(phases, name, 'latenessMs') },
  { name: 'CpuS', text: 'CPU of both servers', unit: 's', of: ({ cpuMs }) => cpuMs / 1000 },
  { name: 'DronesPercent', text: 'CPU of the clients', unit: '%', of: (_, phases, name) => phases[name].dronesCpuPercent },
  { name: 'Bytes', text: 'user memory of the new server per stream', unit: 'bytes', of: (_, phases, name) => phases[afterOf(name)].serverPssBytes / phases.held.load.counts.open },
  { name: 'Descriptors', text: 'descriptors of the new server', unit: 'count', of: ({ descriptors }) => descriptors },
];

export const HANDOVER_FIGURES = [
  ...TAKEOVERS.flatMap((name) =>
    ROWS.map((row) => figure(`${name}${row.name}`, `${name} takeover: ${row.text}`, row.unit)),
  ),
  figure('usualPauseMs', 'longest time from publishing to the client before the takeovers', 'ms'),
  figure('usualLatenessMaxMs', 'worst ping lateness before the takeovers', 'ms'),
  figure('descriptors', 'descriptors of the server before the takeovers', 'count'),
  figure('published', 'publications', 'count'),
  figure('unpublished', 'publications that failed', 'count'),
  figure('reopened', 'connections of the publisher that were closed by a takeover', 'count'),
  figure('missing', 'publications lost', 'count'),
  figure('duplicated', 'publications that arrived again', 'count'),
  figure('disordered', 'publications out of order, or elsewhere', 'count'),
  figure('gaps', 'answers that say that publications may be missing', 'count'),
  figure('closedStreams', 'streams closed', 'count'),
  figure('cpuPercent', 'CPU of the server before the takeovers', '%'),
  figure('dronesPercent', 'CPU of the clients before the takeovers', '%'),
  figure('pauseMs', 'longest pause of the machine itself, meanwhile', 'ms'),
];

/** @param {number | null} ms */
function seconds(ms) {
  return ms === null ? null : ms / 1000;
}

/** @param {string} name of a takeover @returns {string} that of the phase after it */
export const afterOf = (name) => `${name}Over`;

/** What began in a takeover may end after it. @param {Phases} phases @param {string} name @param {'deliveryMs' | 'latenessMs'} what */
function worst(phases, name, what) {
  return Math.max(phases[name][what].max, phases[afterOf(name)][what].max);
}

/** @param {Trial} trial @returns {Promise<Values>} */
export async function trialOfHandover(trial) {
  const { plan } = trial;
  const how = { args: SERVER, params: { topic: [TOPIC] }, start: startGenerations };
  /** @type {Seen[]} */
  const takeovers = [];
  /** @type {Published} */
  let published = { sent: 0, failed: 0, problem: '', reopened: 0 };
  let descriptors = 0;
  const { phases, watch } = await onStage(trial, how, async (watch) => {
    const { stage } = watch;
    const server = /** @type {Generations} */ (stage.server);
    await watch.during('idle', () => rest('idle', plan.idleS).run(stage));
    await watch.during('up', () => change(stage, plan.streams));
    const publishing = await publish(trial, server.port);
    await watch.during('held', () => hold('held', plan.holdS).run(stage));
    ({ descriptors } = server.size());
    await watch.pauses.start();
    for (const name of TAKEOVERS) {
      await watch.during(name, async () => takeovers.push({ ...(await server.next()), ...server.size() }));
      await watch.during(afterOf(name), () => hold(name, plan.holdS).run(stage));
    }
    await watch.pauses.stop(`${trial.name}-pauses`);
    await watch.during('end', async () => {
      published = await publishing.finish();
      await untilDelivered(stage, published.sent);
    });
  });
  if (published.problem) trial.lab.note(`a publication failed: ${published.problem}`);
  const { serverCpuPercent: usualPercent } = phases.held;
  return {
    ...Object.fromEntries(
      TAKEOVERS.flatMap((name, i) =>
        ROWS.map((row) => [`${name}${row.name}`, row.of(takeovers[i], phases, name)]),
      ),
    ),
    ...streamValues(phases),
    ...memoryValues(phases, plan.streams),
    ...tickValues('held', phases.held),
    ...movesOf(takeovers, usualPercent),
    cpuPercent: usualPercent,
    dronesPercent: phases.held.dronesCpuPercent,
    ...latenessValues(phases.held),
    ...endValues(phases.end.load.counts, published, plan.streams),
    usualPauseMs: phases.held.deliveryMs.max,
    usualLatenessMaxMs: phases.held.latenessMs.max,
    descriptors,
    pauseMs: watch.pauses.figures().worstMs,
  };
}

/** @param {Seen[]} takeovers @param {number} usualPercent what the servers would have used without them @returns {Values} */
function movesOf(takeovers, usualPercent) {
  const cpuMs = takeovers.map(({ cpuMs, tookMs }) => cpuMs - (usualPercent / 100) * tookMs);
  const moved = takeovers.map(({ moved }) => moved ?? 0);
  return moveValues(total(cpuMs), total(moved));
}

/** @param {number[]} numbers */
const total = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

/**
 * What has happened to publications and streams, up to the end. Each publication is for one stream.
 * @param {import('../../../fleet/ask.js').Counts} counts @param {Published} published @param {number} streams
 * @returns {Values}
 */
export function endValues(counts, { sent, failed, reopened }, streams) {
  const { delivered, duplicated, outOfOrder, strayed, gaps, opened } = counts;
  return {
    published: sent,
    unpublished: failed,
    reopened,
    missing: sent - delivered,
    duplicated,
    disordered: outOfOrder + strayed,
    gaps,
    closedStreams: Math.max(sumOf(counts.lost), opened - streams),
  };
}

/** @param {Trial} trial @param {number} port @returns {Promise<{ finish: () => Promise<Published> }>} publishes until then */
async function publish({ lab, plan }, port) {
  const publisher = new Helper(lab, 'publisher');
  const topics = Math.min(plan.streams, MOST_TOPICS);
  const step = Math.floor(plan.streams / topics);
  const numbered = { batch: BATCH, isNumbered: true, comesBack: true };
  const where = { port, path: HUB_PATH, secret: SECRET };
  const series = [{ topic: TOPIC, topics, step }];
  await publisher.ask('aim', { ...where, series, connections: CONNECTIONS, ...numbered });
  const run = publisher.ask('run', { ms: FOREVER_MS, perSecond: PER_SECOND / BATCH });
  run.catch(() => {}); // `finish` says so
  return {
    finish: async () => {
      await publisher.ask('finish');
      const published = await run;
      await publisher.ask('leave');
      await publisher.stop();
      return published;
    },
  };
}

/** @param {import('../steps.js').Stage} stage @param {number} sent what does not come by then is lost */
async function untilDelivered({ lab, load, server }, sent) {
  const endMs = Date.now() + DELIVERY_MS;
  while ((await load.pollCounts()).delivered < sent && Date.now() < endMs) {
    server.check();
    await lab.sleep(POLL_MS);
  }
}
