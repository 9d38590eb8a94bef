/*
 * Nagle's algorithm: a small write waits until what was written before is acknowledged.
 */
import { cpuFigures, figure, kernelBytes, latenessFigures, median, tickFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/words.js';

const PING = ['--ping-interval', '1000'];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'Does Nagle on the connections change CPU or lateness where all that is written is small and rare?',
  usual: { holdS: 30, repeats: 2 },
  how: ['Each stream is pinged once a second, which is more than usual, so that an effect would show.'],
  runs: () => [
    { name: 'off', text: 'as the server is by default', args: PING },
    { name: 'on', args: [...PING, '--nagle'] },
  ],
  steps: upAndHold,
  figures: [
    ...cpuFigures(),
    figure(
      'sysPercent',
      'CPU of the machine in the kernel, clients with it, while held',
      '%',
      median('held', 'cpuSysPercent'),
    ),
    figure('kernelBytes', 'kernel memory a socket', 'bytes', kernelBytes('idle', 'held')),
    ...latenessFigures(),
    ...tickFigures(),
  ],
  read: (findings) =>
    comparedToFirst(findings, ['cpuPercent', 'sysPercent', 'latenessP99Ms', 'latenessMaxMs', 'openUs']),
};
