/*
 * The original's second test. The flag dates from when Node told V8 that it was idle; V8 has removed it since.
 */
import { usualFigures } from '../lab/figures.js';
import { flagProblem } from '../lab/flags.js';
import { upAndHold } from '../lab/steps.js';
import { comparedToFirst } from '../lab/text.js';

const FLAG = '--nouse-idle-notification';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: `Does ${FLAG}, which kept V8 from collecting garbage when idle, still make a difference?`,
  usual: { holdS: 30, repeats: 2 },
  how: ['With the http transport, whose streams live in the JS heap.'],
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
