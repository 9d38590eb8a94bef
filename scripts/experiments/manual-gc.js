/*
 * The original's fourth test: collect garbage by hand, each minute.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/words.js';

const MINUTE_MS = 60_000;
/** So that there are some in a run that is shorter. */
const LEAST_COLLECTIONS = 3;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'What do full collections by hand, each minute or thrice a run, save in memory, and what do they cost in ticks?',
  usual: { holdS: 30, repeats: 2 },
  how: ['In the http transport, where the heap holds the streams.'],
  runs: ({ holdS }) => {
    const intervalMs = Math.min(MINUTE_MS, Math.max(100, Math.round((holdS * 1000) / LEAST_COLLECTIONS)));
    return [
      { name: 'as-it-is', text: 'V8 decides', args: ['--transport', 'http'] },
      {
        name: 'manual-gc',
        text: `gc() each ${intervalMs / 1000} s in each process`,
        args: ['--transport', 'http', '--gc-interval', String(intervalMs)],
        nodeFlags: ['--expose-gc'],
      },
    ];
  },
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) =>
    comparedToFirst(findings, ['heapBytes', 'rssBytes', 'gcMs', 'tickMaxMs', 'latenessMaxMs', 'cpuPercent']),
};
