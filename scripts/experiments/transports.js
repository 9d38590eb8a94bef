/*
 * node:http, one ServerResponse a stream, against the native transport.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { bothTransports } from '../lab/transports.js';
import { comparedToFirst } from '../lab/words.js';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does holding streams outside of the JS heap save, against node:http?',
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
