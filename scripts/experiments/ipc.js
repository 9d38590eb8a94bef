/*
 * What it costs to speak between primary and workers, and to hand an open descriptor over.
 */
import { fileURLToPath } from 'node:url';
import { figure } from '../lab/figures.js';
import { readProgram } from '../lab/install.js';
import { measureQuiet } from '../lab/measure.js';
import { startPeer } from '../lab/peers.js';
import { capital, known } from '../lab/words.js';

const PROGRAMS = fileURLToPath(new URL('../lab/ipc/', import.meta.url));
const MESSAGES = {
  publish: 'a message of 64 bytes, one way, as many as go',
  sample: 'a question and a snapshot of some hundred bytes, one at a time',
};
const WAYS = {
  alone: 'one process accepts and keeps',
  shared: 'two workers accept on one shared socket',
  'round-robin': "node's cluster hands connections round",
  passed: 'the primary accepts and sends each descriptor',
};

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'What do messages between primary and workers cost, and what does it cost to pass an open descriptor?',
  usual: { holdS: 5, repeats: 2 },
  how: [
    'Messages are sent as those of primary/messages.js are, between two processes, for as long as streams would be held; CPU is of both.',
    'Connections come from the clients of the other experiments, from a third of the streams to all of them, to small programs (scripts/lab/ipc) that only keep them: what the ways differ by is what it costs to hand over.',
  ],
  runs: () => [
    ...Object.entries(MESSAGES).map(([name, text]) => ({ name, text })),
    ...Object.entries(WAYS).map(([name, text]) => ({ name, text })),
  ],
  trial,
  trialSeconds: (plan) => 2 * plan.holdS + 3 + plan.streams / plan.ramp,
  figures: [
    figure('perSecond', 'messages a second', '1/s'),
    figure('cpuUs', 'CPU a message', 'µs'),
    figure('roundTripUs', 'there and back, median', 'µs'),
    figure('openUs', 'CPU a connection', 'µs'),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name, /** @type {string} */ run) => known(findings, name, run);
    const alone = findings.of('openUs', 'alone');
    const handed = Object.keys(WAYS)
      .slice(1)
      .flatMap((run) => {
        const found = findings.of('openUs', run);
        if (!alone || !found) return [];
        const more = found.median - alone.median;
        return [
          `${capital(run)}: a connection takes ${value('openUs', run)}, ${Math.abs(more).toFixed(1)} µs ${more < 0 ? 'less' : 'more'} than in one process.`,
        ];
      });
    return [
      `One way, ${value('perSecond', 'publish')} messages go, at ${value('cpuUs', 'publish')} of CPU each (both ends).`,
      `A question and its snapshot take ${value('roundTripUs', 'sample')} there and back, and ${value('cpuUs', 'sample')} of CPU.`,
      ...handed,
    ];
  },
};

/** @param {import('../lab/experiment.js').Trial} all @returns {Promise<import('../lab/experiment.js').Values>} */
async function trial(all) {
  const { lab, run, plan, name } = all;
  if (run.name in MESSAGES) {
    lab.status = () => `[${name}] sending`;
    return JSON.parse(
      await readProgram(lab, process.execPath, [`${PROGRAMS}messages.js`, run.name, String(plan.holdS)]),
    );
  }
  const peer = {
    name: run.name,
    text: run.text ?? '',
    params: {},
    prepare: async () => '',
    command: (/** @type {number} */ port) => [
      process.execPath,
      `${PROGRAMS}accept.js`,
      run.name,
      String(port),
    ],
  };
  const make = { start: () => startPeer(lab, peer, 0), params: { expect: 'any' }, pingIntervalMs: 1000 };
  const { openUs } = await measureQuiet(all, make);
  return { openUs };
}
