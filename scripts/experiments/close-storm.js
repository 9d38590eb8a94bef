/*
 * Many streams close at once, as when a network fails, compared with opening as many.
 */
import { figure, last, max, of, openUs } from '../lab/figures.js';
import { down, hold, rest, up } from '../lab/steps.js';
import { capital, known } from '../lab/text.js';
import { bothTransports } from '../lab/transports.js';

const LEFT = 0.6;
/** The storm is short, so rows come this often. */
const ROW_MS = 250;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does it cost when 40 % of the streams close at once, compared with opening them?',
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
    figure('closeUs', 'CPU to close a stream', 'µs', openUs('held', 'storm', 'closed')),
    figure('openUs', 'CPU to open it again', 'µs', openUs('after', 'up again')),
    figure(
      'stormMs',
      'time until the server had noticed all of them',
      'ms',
      of('storm', ({ tookMs }) => tookMs),
    ),
    figure('stormTickMaxMs', 'longest tick during the storm', 'ms', max('storm', 'tickMaxMs')),
    figure('openTickMaxMs', 'longest tick while they open again', 'ms', max('up again', 'tickMaxMs')),
    figure('heldTickMaxMs', 'longest tick while held before', 'ms', max('held', 'tickMaxMs')),
    figure('rssBytes', 'resident memory before', 'bytes', last('held', 'rssBytes')),
    figure('afterRssBytes', 'resident memory after', 'bytes', last('after', 'rssBytes')),
  ],
  read: (findings) =>
    findings.runs.map((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const cost = `closing a stream costs ${value('closeUs')} of CPU, opening one ${value('openUs')}`;
      const ticks = `the longest tick was ${value('stormTickMaxMs')} during the storm, ${value('openTickMaxMs')} while they opened again, and ${value('heldTickMaxMs')} while held`;
      return `${capital(run)}: ${cost}; ${ticks}; the server had noticed all of them after ${value('stormMs')}.`;
    }),
};

/** @param {import('../lab/steps.js').Stage} stage @param {number} left streams that stay open */
async function storm({ lab, load, server }, left) {
  await load.set(left);
  await load.untilThere();
  while (Number((await server.totals())?.streams ?? Number.POSITIVE_INFINITY) > left) await lab.sleep(50);
}
