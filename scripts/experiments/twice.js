/*
 * The original's third test: up, down, up again.
 */
import { figure, growth, last, median, minus, openUs } from '../lab/figures.js';
import { down, hold, rest, up } from '../lab/steps.js';
import { compared, known } from '../lab/text.js';
import { bothTransports } from '../lab/transports.js';

/** Less does not count as growth. */
const GROWN_SHARE = 0.1;
const GROWTH = minus(median('held again', 'rssBytes'), median('held', 'rssBytes'));

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Up, down, up again: is memory reused, or does it grow?',
  usual: { holdS: 15, repeats: 2 },
  runs: () => bothTransports(),
  steps: (plan) => [
    rest('idle', plan.idleS),
    up('up', plan),
    hold('held', plan.holdS),
    down('down', plan),
    rest('between', Math.max(2, Math.round(plan.holdS / 2))),
    up('up again', plan),
    hold('held again', plan.holdS),
  ],
  figures: [
    figure('idleRssBytes', 'resident memory of the workers, idle', 'bytes', median('idle', 'rssBytes')),
    figure('rssBytes', 'resident memory, held the first time', 'bytes', median('held', 'rssBytes')),
    figure('betweenRssBytes', 'resident memory, between', 'bytes', last('between', 'rssBytes')),
    figure(
      'againRssBytes',
      'resident memory, held the second time',
      'bytes',
      median('held again', 'rssBytes'),
    ),
    figure('growthBytes', 'growth from the first time to the second', 'bytes', GROWTH),
    figure('heapBytes', 'JS heap in use, held the first time', 'bytes', median('held', 'heapUsedBytes')),
    figure(
      'againHeapBytes',
      'JS heap in use, held the second time',
      'bytes',
      median('held again', 'heapUsedBytes'),
    ),
    figure('openUs', 'CPU to open a stream, the first time', 'µs', openUs('idle', 'up')),
    figure('againOpenUs', 'CPU to open a stream, the second time', 'µs', openUs('between', 'up again')),
    figure('gcMs', 'time in garbage collection, total', 'ms', growth('idle', 'held again', 'gcMs')),
  ],
  read: (findings) => [
    ...findings.runs.flatMap((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      return [
        `${run}: from ${value('idleRssBytes')} idle to ${value('rssBytes')} held, ${value('betweenRssBytes')} after all were closed, ${value('againRssBytes')} held again: ${judged(findings, run)}.`,
        `${run}: opening a stream took ${value('openUs')} of CPU the first time, ${value('againOpenUs')} the second time.`,
      ];
    }),
    ...compared(findings, 'againRssBytes', 'http', 'hold'),
  ],
};

/**
 * Memory counts as reused if it grew by less than a tenth of what the streams took, or of half of what the workers have:
 * V8 allocates and frees some memory by itself.
 * @param {import('../lab/findings.js').Findings} findings @param {string} run
 */
function judged(findings, run) {
  const [idle, held, grown] = ['idleRssBytes', 'rssBytes', 'growthBytes'].map((name) =>
    findings.of(name, run),
  );
  if (!idle || !held || !grown) return 'whether memory is reused is not known';
  const least = Math.max(held.median - idle.median, held.median / 2) * GROWN_SHARE;
  return grown.median < least
    ? 'memory is reused'
    : `it grew by ${known(findings, 'growthBytes', run)} from the first time to the second`;
}
