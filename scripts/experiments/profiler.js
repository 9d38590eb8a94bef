/*
 * What the microprofiler costs, and what it costs to write the same code in different ways, on several versions of Node.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildBare } from '../lab/bare.js';
import { readProgram } from '../lab/install.js';
import { medianOf } from '../lab/phases.js';
import { ALL_CLIMBS, measureAttached, restSeconds, SERVERS } from '../lab/profiler/attached.js';
import { GROUPS } from '../lab/profiler/groups.js';
import { NODES, nodeProgram, prepareNode } from '../lab/profiler/nodes.js';
import { sentencesOf } from '../lab/profiler/sentences.js';
import { chartsOf, FIGURES, pageText, targetsText } from '../lab/profiler/table.js';
import { noHold } from '../lab/transports.js';

const PROGRAM = fileURLToPath(new URL('../lab/profiler/program.js', import.meta.url));
const STREAMS = 12_000;
/** A program that times all cases takes about this long. */
const CASES_S = 7;
/** A climb of a server, without its rests; and the start of a server. */
const CLIMB_S = 0.7;
const START_S = 2;

/** @typedef {import('../lab/experiment.js').Round} Round */
/** @typedef {import('../lab/profiler/micro.js').Timed} Timed */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'What does it cost to measure microseconds, and which code is cheaper: buffers or strings, one write or several?',
  usual: { streams: STREAMS, holdS: 5, repeats: 3 },
  hasOwnPage: true,
  how: [
    'Each version of Node times all cases in a process of its own. Streams and seconds are those of the servers with the profiler attached.',
  ],
  runs: () => [
    ...NODES.map(({ run, version }) => ({
      name: run,
      text: `Node ${version}`,
      prepare: (/** @type {import('../lab/lab.js').Lab} */ lab) => prepareNode(lab, version),
    })),
    ...Object.entries(SERVERS).map(([name, every]) => ({
      name,
      text: `server.js with two workers on Node ${process.versions.node}, ${attachedText(every)}`,
      prepare: buildBare,
      skip: noHold(),
    })),
  ],
  round: measureRound,
  roundSeconds: ({ holdS }) =>
    NODES.length * CASES_S +
    Object.keys(SERVERS).length * (START_S + restSeconds(holdS) + ALL_CLIMBS * CLIMB_S),
  figures: FIGURES,
  read: sentencesOf,
  comparison: targetsText,
  charts: chartsOf,
  page: pageText,
};

/** @param {number} every */
function attachedText(every) {
  if (every === 0) return 'without the profiler';
  return every === 1 ? 'with every call measured' : `with one call in ${every} measured`;
}

/** @param {Round} round */
async function measureRound(round) {
  for (const { run, version } of NODES)
    if (round.runs.some(({ name }) => name === run)) await timeCases(round, run, version);
  await measureAttached(round);
}

/** @param {Round} round @param {string} run @param {string} version */
async function timeCases({ lab, name, record }, run, version) {
  lab.status = () => `[${name}] cases with Node ${version}`;
  const file = join(lab.folder, `${run}-${name}.json`);
  await readProgram(lab, nodeProgram(version), [PROGRAM, file]);
  /** @type {{ floor: Timed, timed: Timed[] }} */
  const { floor, timed } = JSON.parse(readFileSync(file, 'utf8'));
  const shares = timed.filter(({ ns }) => ns > 1).map(({ ns, noiseNs }) => (noiseNs / ns) * 100);
  record(run, { floorNs: floor.ns, noisePercent: medianOf(shares) });
  const nsOf = new Map(timed.map(({ name: one, ns }) => [one, ns]));
  for (const { cases } of GROUPS)
    record(run, Object.fromEntries(cases.map(({ name: one }) => [one, nsOf.get(one) ?? null])));
}
