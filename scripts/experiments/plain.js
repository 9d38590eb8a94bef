/*
 * The original's first test: what the streams cost, and how evenly the event loop turns meanwhile.
 */
import { usualFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { known } from '../lab/text.js';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How much memory and CPU do the streams take, and how do they affect the ticks?',
  usual: { holdS: 60, repeats: 2 },
  runs: () => [
    { name: 'plain', text: 'the server with default options', args: ['--ping-interval', '20000'] },
  ],
  steps: upAndHold,
  figures: usualFigures(),
  read: (findings) => {
    const value = (/** @type {string} */ figure) => known(findings, figure, 'plain');
    return [
      `A stream takes ${value('heapBytes')} of JS heap, ${value('nativeBytes')} of native memory, and ${value('kernelBytes')} of kernel memory per socket.`,
      `Opening one takes ${value('openUs')} of CPU; while held, the server uses ${value('cpuPercent')} of one core.`,
      `Ticks (due every 10 ms): p90 ${value('upTickP90Ms')} in the worst second of opening, ${value('tickP90Ms')} while held; the longest tick while held took ${value('tickMaxMs')}.`,
      `Garbage collection took ${value('upGcMs')} while streams opened, ${value('gcMs')} while they were held.`,
    ];
  },
};
