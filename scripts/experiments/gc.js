/*
 * V8 flags for garbage collection, as far as this version of Node accepts them.
 */
import { usualFigures } from '../lab/figures.js';
import { flagProblem } from '../lab/flags.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/text.js';

const FLAGS = {
  'semi-space-1': ['--max-semi-space-size=1'],
  'semi-space-64': ['--max-semi-space-size=64'],
  'least-semi-space-16': ['--min-semi-space-size=16'],
  'single-threaded': ['--single-threaded-gc'],
  'for-size': ['--optimize-for-size'],
};

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Do the size of the young generation and other V8 flags change memory, CPU or ticks?',
  usual: { holdS: 20, repeats: 1 },
  how: ['With the http transport, whose streams live in the JS heap.'],
  runs: () => [
    { name: 'as-it-is', args: ['--transport', 'http'] },
    ...Object.entries(FLAGS).map(([name, nodeFlags]) => ({
      name,
      args: ['--transport', 'http'],
      nodeFlags,
      skip: nodeFlags.map(flagProblem).find(Boolean) ?? '',
    })),
  ],
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) => comparedToFirst(findings, ['heapBytes', 'rssBytes', 'openUs', 'upGcMs', 'upTickP90Ms']),
};
