/*
 * How long it takes until a new server has taken over all streams, and what clients notice.
 */
import { Clients, PING_MS } from '../lab/handover/clients.js';
import { startGenerations } from '../lab/handover/generations.js';
import { chartsOf, FIGURES, pageText, sentencesOf, tableText } from '../lab/handover/table.js';
import { SECRET } from '../lab/hub/subjects.js';
import { noHold } from '../lab/transports.js';

/** The most streams are those of the plan; these are parts of them. */
const PARTS = [60, 4, 1];
const TAKEOVERS = 5;
const SERVER = [
  ...['--workers', '2', '--ping-interval', String(PING_MS), '--refresh', '1000', '--no-log'],
  ...['--anonymous', '--jwt-secret', SECRET],
];
/** A takeover without its streams; opening 1,000 streams; everything else of a run. */
const [TAKEOVER_S, OPEN_S, START_S] = [4, 0.25, 8];

/** @typedef {import('../lab/experiment.js').Round} Round */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How long does it take to hand all streams over to a new server, and what do clients notice?',
  usual: { streams: 60_000, holdS: 5, repeats: 1 },
  hasOwnPage: true,
  how: [
    `For each number of streams, ${TAKEOVERS} servers take over from each other, one after the other, with 1,000 publications per second.`,
    'Between two takeovers, everything is held for the given seconds.',
  ],
  runs: (plan) =>
    sizesOf(plan).map((streams) => ({
      name: String(streams),
      text: `${streams} streams`,
      skip: noHold(),
    })),
  round: measureRound,
  roundSeconds: (plan) =>
    sizesOf(plan).reduce(
      (all, streams) => all + START_S + (streams / 1000) * OPEN_S + TAKEOVERS * (TAKEOVER_S + 2 * plan.holdS),
      0,
    ),
  figures: FIGURES,
  read: sentencesOf,
  comparison: tableText,
  charts: chartsOf,
  page: pageText,
};

/** @param {import('../lab/plan.js').Plan} plan @returns {number[]} different ones */
function sizesOf({ streams }) {
  return [...new Set(PARTS.map((part) => Math.max(1, Math.round(streams / part))))];
}

/** @param {Round} round */
async function measureRound(round) {
  for (const { name } of round.runs) await measureRun(round, name, Number(name));
}

/** @param {Round} round @param {string} run @param {number} streams */
async function measureRun({ lab, plan, name, record }, run, streams) {
  lab.status = () => `[${name}] ${run} streams: opening`;
  const generations = await startGenerations(lab, {
    name: `control-${run}-${name}`,
    args: [...SERVER, '--streams', String(streams)],
    host: '0.0.0.0',
  });
  const clients = new Clients(lab, generations.port, streams);
  await clients.start();
  for (let i = 1; i <= TAKEOVERS; i++) {
    lab.status = () => `[${name}] ${run} streams: takeover ${i}`;
    await lab.sleep(plan.holdS * 1000);
    const usual = await clients.take();
    const { tookMs, movedMs } = await generations.next();
    await lab.sleep(plan.holdS * 1000); // for pings that are late
    const { pauseMs, latenessMs } = await clients.take();
    const movedPerSecond = movedMs ? (streams / movedMs) * 1000 : null;
    record(run, { movedPerSecond, movedMs, pauseMs, latenessMs, tookMs, ...generations.size() });
    // Before the first one, streams were opened.
    if (i > 1) record(run, { usualMs: usual.pauseMs, usualLatenessMs: usual.latenessMs });
  }
  await clients.finish();
  record(run, { faults: 0 }); // or else it has thrown
  await clients.stop();
  await generations.stop();
}
