/*
 * The original's second test. The flag is from a time when Node told V8 that it was idle; V8 took it away.
 */
import { usualFigures } from '../lab/figures.js';
import { flagProblem } from '../lab/flags.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/words.js';

const FLAG = '--nouse-idle-notification';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: `Does ${FLAG}, which keeps V8 from collecting garbage when idle, still change anything?`,
  usual: { holdS: 30, repeats: 2 },
  how: ['In the http transport, where the heap holds the streams.'],
  runs: () => [
    {
      name: 'as-it-is',
      args: ['--transport', 'http'],
      skip: flagProblem(FLAG) && `${flagProblem(FLAG)}, so there is nothing to compare`,
    },
    { name: 'no-idle-gc', args: ['--transport', 'http'], nodeFlags: [FLAG], skip: flagProblem(FLAG) },
  ],
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) => comparedToFirst(findings, ['heapBytes', 'rssBytes', 'gcMs', 'tickMaxMs', 'cpuPercent']),
};
