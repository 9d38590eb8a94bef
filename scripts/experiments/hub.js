/*
 * What the hub costs beside plain streams of the same server, and how far it is from its targets.
 */
import { join } from 'node:path';
import { buildBare } from '../lab/bare.js';
import { measureMemory } from '../lab/hub/memory.js';
import { measureOpeningsAndDeliveries, measureSteadyOpenings } from '../lab/hub/openings.js';
import { measureCatastrophes, measureNoMatch } from '../lab/hub/patterns.js';
import { measureLatency, measureRates } from '../lab/hub/publishing.js';
import { measureStorms } from '../lab/hub/storm.js';
import { KINDS } from '../lab/hub/subjects.js';
import { FIGURES, judge, pageText, RUNS, tableText } from '../lab/hub/table.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const STREAMS = 15_000;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does the hub cost beside plain streams, and does it reach its targets?',
  usual: { streams: STREAMS, holdS: 20, repeats: 2 },
  hasOwnPage: true,
  how: [
    'The kinds of streams take turns within a round, each in a server of its own, with clients that cost little. Each is warmed up first.',
    'CPU is run time of all threads minus what they use while idle; memory is what no other process shares.',
  ],
  runs: () =>
    Object.entries(RUNS).map(([name, text]) => ({
      name,
      text,
      prepare: buildBare,
      skip: noHold(),
    })),
  round: measureRound,
  roundSeconds: ({ holdS }) => 35 * holdS,
  figures: FIGURES,
  read: (findings) => {
    const missed = judge(findings).filter(({ isMet }) => !isMet);
    const list = missed.map(
      ({ name, run, text }) =>
        `${findings.figure(name).text} of ${run} (${known(findings, name, run)}, target ${text})`,
    );
    return [missed.length === 0 ? 'Every target was reached.' : `Targets missed: ${list.join('; ')}.`];
  },
  comparison: tableText,
  page: pageText,
};

/** @param {import('../lab/experiment.js').Round} round */
async function measureRound(round) {
  const kinds = /** @type {import('../lab/hub/subjects.js').Kind[]} */ (Object.keys(KINDS));
  const names = round.runs.map(({ name }) => name);
  await measureMemory(round, kinds);
  await measureOpeningsAndDeliveries(round, kinds);
  await measureSteadyOpenings(round);
  await measureLatency(round);
  await measureRates(round, 'hub');
  if (names.includes('disk'))
    await measureRates(round, 'disk', ['--store', join(round.lab.folder, `store-${round.name}`)]);
  await measureNoMatch(round);
  await measureStorms(round);
  await measureCatastrophes(round);
}
