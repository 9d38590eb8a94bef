/*
 * What messages between primary and workers cost, and passing an open descriptor.
 */
import { fileURLToPath } from 'node:url';
import { figure } from '../lab/figures.js';
import { readProgram } from '../lab/install.js';
import { measureQuiet } from '../lab/measure.js';
import { startPeer } from '../lab/peers.js';
import { capital, known } from '../lab/text.js';

const PROGRAMS = fileURLToPath(new URL('../lab/ipc/', import.meta.url));
const MESSAGES = {
  publish: 'messages of 64 bytes, one way, as many as possible',
  sample: 'a request and a snapshot of several hundred bytes in return, one at a time',
};
const WAYS = {
  alone: 'one process accepts and keeps them',
  shared: 'two workers accept on one shared socket',
  'round-robin': 'node:cluster distributes connections',
  passed: 'the primary accepts, and passes each descriptor to a worker',
};

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What do messages between primary and workers cost, and passing an open descriptor?',
  usual: { holdS: 5, repeats: 2 },
  how: [
    'Messages go between two processes through node:cluster, as in the server, for as long as streams would be held; CPU is that of both.',
    'Connections come from the usual clients, from a third of the streams to all of them, to small programs (scripts/lab/ipc) that only keep them. The differences between the ways are the cost of passing a connection on.',
  ],
  runs: () => [
    ...Object.entries(MESSAGES).map(([name, text]) => ({ name, text })),
    ...Object.entries(WAYS).map(([name, text]) => ({ name, text })),
  ],
  trial,
  trialSeconds: (plan) => 2 * plan.holdS + 3 + plan.streams / plan.ramp,
  figures: [
    figure('perSecond', 'messages per second', '1/s'),
    figure('cpuUs', 'CPU per message', 'µs'),
    figure('roundTripUs', 'round trip, median', 'µs'),
    figure('openUs', 'CPU per connection', 'µs'),
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
          `${capital(run)}: a connection costs ${value('openUs', run)} of CPU, ${Math.abs(more).toFixed(1)} µs ${more < 0 ? 'less' : 'more'} than in one process.`,
        ];
      });
    return [
      `One way: ${value('perSecond', 'publish')} messages, at ${value('cpuUs', 'publish')} of CPU each (both ends).`,
      `Round trip, a request and its snapshot: ${value('roundTripUs', 'sample')}, and ${value('cpuUs', 'sample')} of CPU.`,
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
