/*
 * What several nodes on NATS cost beside one node without: latency, rates, CPU, and how long an outage is felt.
 */
import { latencyOf, ratesOf, stopAll } from '../lab/hub/publishing.js';
import { startHub } from '../lab/hub/subjects.js';
import { natsVersion, startNats } from '../lab/nodes/nats.js';
import { afterOutageMs, catchUpMs } from '../lab/nodes/outages.js';
import { FIGURES, pageText, RUNS, tableText } from '../lab/nodes/table.js';
import { known } from '../lab/text.js';

/** How many servers of NATS each run has. @type {Record<string, number>} */
const SERVERS = { one: 0, nats: 1, 'nats-3': 3 };
/** No node may miss anything while it is stopped. */
const HISTORY = ['--history-count', '1000000', '--history-bytes', '1000000000'];

/** @typedef {import('../lab/experiment.js').Round} Round */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What do several nodes on NATS cost beside one node, and how long is an outage felt?',
  usual: { streams: 2000, holdS: 20, repeats: 3 },
  hasOwnPage: true,
  how: [
    `In each round, one node without NATS, and two nodes on NATS (${natsVersion() || 'not installed'}) take turns.`,
    'With two nodes, all publications go to one, and all clients are at the other.',
  ],
  runs: () =>
    Object.entries(RUNS).map(([name, text]) => ({
      name,
      text,
      skip: SERVERS[name] > 0 && natsVersion() === '' ? 'nats-server is not installed' : '',
    })),
  round: measureRound,
  roundSeconds: ({ holdS }) => 9 * holdS,
  figures: FIGURES,
  read: (findings) =>
    findings.runs.map((run) => {
      const [p99, rate] = ['latencyP99Ms', 'batchRate'].map((name) => known(findings, name, run));
      return `${run}: p99 ${p99} from publishing to the client, ${rate} in batches.`;
    }),
  comparison: tableText,
  page: pageText,
};

/** @param {Round} round */
async function measureRound(round) {
  for (const { name } of round.runs) await measureRun(round, name, SERVERS[name]);
}

/** @param {Round} round @param {string} run @param {number} count of servers of NATS */
async function measureRun(round, run, count) {
  const { lab, plan, name, record } = round;
  const outageMs = plan.holdS * 500;
  const nats = count > 0 ? await startNats(lab, `nats-${run}-${name}`, count) : [];
  const urls = nats.map(({ url }) => url).join(',');
  const args = nats.length > 0 ? [...HISTORY, '--nats', urls, '--nats-replicas', String(count)] : HISTORY;
  const start = (/** @type {string} */ part) => startHub(round, { part: `${run}-${part}`, workers: 1, args });
  const publishAt = await start('a');
  const clientsAt = nats.length > 0 ? await start('b') : publishAt;
  const nodes = new Set([publishAt, clientsAt]);
  const route = { publishAt, clientsAt };

  lab.status = () => `[${name}] ${run}: latency`;
  record(run, await latencyOf(round, route));
  lab.status = () => `[${name}] ${run}: publications per second`;
  const all = { nodes: together([...nodes]), ...(nats.length > 0 ? { nats: together(nats) } : {}) };
  const { single, batch } = await ratesOf(round, route, all);
  record(run, {
    singleRate: single.rate,
    singleUs: single.us.nodes,
    singleNatsUs: single.us.nats ?? null,
    batchRate: batch.rate,
    batchUs: batch.us.nodes,
    batchNatsUs: batch.us.nats ?? null,
  });
  if (nats.length > 0) {
    lab.status = () => `[${name}] ${run}: a node is stopped for ${outageMs / 1000} s`;
    record(run, { catchUpMs: await catchUpMs(round, route, outageMs) });
    lab.status = () => `[${name}] ${run}: NATS is away for ${outageMs / 1000} s`;
    record(run, { afterOutageMs: await afterOutageMs(round, route, nats, outageMs) });
  }
  await stopAll(...nodes, ...nats);
}

/** @param {import('../lab/usage.js').Measured[]} programs @returns {import('../lab/usage.js').Measured} */
function together(programs) {
  return { pids: () => programs.flatMap((program) => program.pids()) };
}
