/*
 * The original's fourth test: collect garbage manually, every minute.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/text.js';

const MINUTE_MS = 60_000;
/** At least so many, even in a shorter run. */
const LEAST_COLLECTIONS = 3;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'How much memory do manual full garbage collections save (every minute, or three per run), and what do they cost in ticks?',
  usual: { holdS: 30, repeats: 2 },
  how: ['With the http transport, whose streams live in the JS heap.'],
  runs: ({ holdS }) => {
    const intervalMs = Math.min(MINUTE_MS, Math.max(100, Math.round((holdS * 1000) / LEAST_COLLECTIONS)));
    return [
      { name: 'as-it-is', text: 'V8 decides', args: ['--transport', 'http'] },
      {
        name: 'manual-gc',
        text: `gc() every ${intervalMs / 1000} s in each process`,
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
