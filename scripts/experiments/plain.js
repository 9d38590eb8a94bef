/*
 * The original's first test: what so many streams take, and how evenly the event loop turns meanwhile.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { known } from '../lab/words.js';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What do the streams take in memory and CPU, and what do they do to the ticks?',
  usual: { holdS: 60, repeats: 2 },
  runs: () => [
    { name: 'plain', text: 'the server as it is started by default', args: ['--ping-interval', '20000'] },
  ],
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) => {
    const value = (/** @type {string} */ figure) => known(findings, figure, 'plain');
    return [
      `A stream takes ${value('heapBytes')} of JS heap, ${value('nativeBytes')} of native memory and its socket ${value('kernelBytes')} of the kernel's.`,
      `To open one takes ${value('openUs')} of CPU; held, the server takes ${value('cpuPercent')} of one core.`,
      `Ticks (due each 10 ms): p90 ${value('upTickP90Ms')} in the worst second of opening, ${value('tickP90Ms')} held; the worst held tick took ${value('tickMaxMs')}.`,
      `Garbage collections took ${value('upGcMs')} while streams opened, ${value('gcMs')} while they were held.`,
    ];
  },
};
