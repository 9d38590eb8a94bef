/*
 * Nagle's algorithm: a small write waits until earlier data is acknowledged.
 */
import { cpuFigures, figure, kernelBytes, latenessFigures, median, tickFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/text.js';

const PING = ['--ping-interval', '1000'];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: "Does Nagle's algorithm change CPU or lateness when all writes are small and rare?",
  usual: { holdS: 30, repeats: 2 },
  how: ['Each stream is pinged once a second, more often than usual, so that an effect would show.'],
  runs: () => [
    { name: 'off', text: 'the default', args: PING },
    { name: 'on', args: [...PING, '--nagle'] },
  ],
  steps: upAndHold,
  figures: [
    ...cpuFigures(),
    figure(
      'sysPercent',
      'kernel CPU of the machine while held, clients included',
      '%',
      median('held', 'cpuSysPercent'),
    ),
    figure('kernelBytes', 'kernel memory per socket', 'bytes', kernelBytes('idle', 'held')),
    ...latenessFigures(),
    ...tickFigures(),
  ],
  read: (findings) =>
    comparedToFirst(findings, ['cpuPercent', 'sysPercent', 'latenessP99Ms', 'latenessMaxMs', 'openUs']),
};
