/*
 * node:http, with a ServerResponse per stream, compared with the native transport.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/text.js';
import { bothTransports } from '../lab/transports.js';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How much does holding streams outside the JS heap save, compared with node:http?',
  usual: { holdS: 30, repeats: 2 },
  runs: () => bothTransports(),
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) =>
    comparedToFirst(findings, [
      'heapBytes',
      'nativeBytes',
      'kernelBytes',
      'openUs',
      'cpuPercent',
      'upTickP90Ms',
      'tickMaxMs',
      'latenessP99Ms',
    ]),
};
