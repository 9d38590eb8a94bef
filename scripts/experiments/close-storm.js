/*
 * Many streams closed at once, as when a network goes away, against opening as many.
 */
import { figure, last, max, of, openUs } from '../lab/figures.js';
import { down, hold, rest, up } from '../lab/steps.js';
import { bothTransports } from '../lab/transports.js';
import { capital, known } from '../lab/words.js';

const LEFT = 0.6;
/** Rows come as close as this, for the storm is short. */
const ROW_MS = 250;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does it take when 40 % of the streams are closed at once, against opening them?',
  usual: { holdS: 15, repeats: 2 },
  runs: () => bothTransports('--refresh', String(ROW_MS)),
  steps: (plan) => [
    rest('idle', plan.idleS),
    up('up', plan),
    hold('held', plan.holdS),
    { ...down('storm', plan, LEFT), run: async (stage) => storm(stage, Math.round(plan.streams * LEFT)) },
    hold('after', Math.max(2, Math.round(plan.holdS / 2))),
    up('up again', plan),
    hold('held again', plan.holdS),
  ],
  figures: [
    figure('closeUs', 'CPU to see a stream close', 'µs', openUs('held', 'storm', 'closed')),
    figure('openUs', 'CPU to open a stream, the same ones again', 'µs', openUs('after', 'up again')),
    figure(
      'stormMs',
      'until the server had seen all of them close',
      'ms',
      of('storm', ({ tookMs }) => tookMs),
    ),
    figure('stormTickMaxMs', 'tick during the storm, the worst', 'ms', max('storm', 'tickMaxMs')),
    figure('openTickMaxMs', 'tick while they open again, the worst', 'ms', max('up again', 'tickMaxMs')),
    figure('heldTickMaxMs', 'tick while held before, the worst', 'ms', max('held', 'tickMaxMs')),
    figure('rssBytes', 'resident memory before', 'bytes', last('held', 'rssBytes')),
    figure('afterRssBytes', 'resident memory after', 'bytes', last('after', 'rssBytes')),
  ],
  read: (findings) =>
    findings.runs.map((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const cost = `a stream that closes takes ${value('closeUs')} of CPU, one that opens ${value('openUs')}`;
      const ticks = `the worst tick was ${value('stormTickMaxMs')} in the storm, ${value('openTickMaxMs')} while they opened again, ${value('heldTickMaxMs')} held`;
      return `${capital(run)}: ${cost}; ${ticks}; all were seen to be gone after ${value('stormMs')}.`;
    }),
};

/** @param {import('../lab/steps.js').Stage} stage @param {number} left that the server has to come down to */
async function storm({ lab, load, server }, left) {
  await load.set(left);
  await load.untilThere();
  while (Number((await server.totals())?.streams ?? Number.POSITIVE_INFINITY) > left) await lab.sleep(50);
}
