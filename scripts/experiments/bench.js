/*
 * What a stream costs with the native transport, with node:http, and in a bare epoll loop. The three take turns within
 * each round, with the same client. `npm run bench` runs it and writes docs/bench.md.
 */
import { buildBare } from '../lab/bare.js';
import { measureOpeningsAndDeliveries, measurePings } from '../lab/bench/cpu.js';
import { measureMany, measureMemory } from '../lab/bench/memory.js';
import { FIGURES, judge, pageText, tableText } from '../lab/bench/table.js';
import { measureBusyTicks, measureStormTicks } from '../lab/bench/ticks.js';
import { known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const STREAMS = 15_000;

/** @typedef {import('../lab/bench/subjects.js').Kind} Kind */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does a stream cost with each transport, and how far is that from a bare epoll loop?',
  usual: { streams: STREAMS, holdS: 20, repeats: 3 },
  hasOwnPage: true,
  how: [
    'The kinds of server take turns within a round, with a client that costs little. Each is warmed up first.',
    'CPU is run time of all threads minus what they use while idle; memory is PSS. Seconds in which the machine paused are left out of the ticks.',
  ],
  runs: () => [
    { name: 'floor', text: 'a bare epoll loop', prepare: buildBare },
    { name: 'http', text: 'our server on node:http, two workers', prepare: buildBare },
    {
      name: 'hold',
      text: 'our server with the native transport, two workers',
      prepare: buildBare,
      skip: noHold(),
    },
  ],
  round: measureRound,
  roundSeconds: ({ holdS }) => 23 * holdS,
  figures: FIGURES,
  read: (findings) => {
    const missed = judge(findings).filter(({ isMet }) => !isMet);
    const list = missed.map(({ name, target }) => {
      return `${findings.figure(name).text} (${known(findings, name, 'hold')}, target ${target})`;
    });
    return [missed.length === 0 ? 'Every target was reached.' : `Targets missed: ${list.join('; ')}.`];
  },
  comparison: tableText,
  page: pageText,
};

/** @param {import('../lab/experiment.js').Round} round */
async function measureRound(round) {
  const kinds = /** @type {Kind[]} */ (round.runs.map(({ name }) => name));
  for (const kind of kinds) await measureMemory(round, kind);
  await measureOpeningsAndDeliveries(round, kinds);
  for (const kind of kinds) await measurePings(round, kind);
  for (const kind of kinds) if (kind !== 'floor') await measureStormTicks(round, kind);
  if (!kinds.includes('hold')) return;
  await measureBusyTicks(round);
  await measureMany(round);
}
