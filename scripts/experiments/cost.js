/*
 * What a stream costs with the http transport, the baseline. `npm run cost` runs it and writes docs/cost.md.
 */
import { HoldfastError } from '../../lib/errors.js';
import { formatCount, formatMs } from '../../lib/format.js';
import { figure, growth, idleSeconds, max, median, minus, per, rate, rise, times } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { known } from '../lab/text.js';
import { runSteps } from '../lab/trial.js';

const PING_INTERVAL_S = 20;
/** A row comes each second, give or take. */
const ROW_MS = 1000;
const ROW_TOLERANCE_MS = 250;
const PING_TOLERANCE = 0.02;
const RUN = 'http';

/** CPU between two phases, or within one, beyond what the server uses when idle: µs. */
const OPEN_US = times(
  minus(growth('idle', 'up', 'processCpuSeconds'), idleSeconds(growth('idle', 'up', 'elapsedMs'))),
  1e6,
);
const PING_US = times(minus(rise('held', 'processCpuSeconds'), idleSeconds(rise('held', 'elapsedMs'))), 1e6);

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does a stream cost with the http transport?',
  usual: { streams: 15_000, ramp: 2500, holdS: 60, repeats: 1 },
  hasOwnPage: true,
  how: [`Each stream is pinged every ${PING_INTERVAL_S} s. Ticks are of the worker with the worst ones.`],
  runs: () => [
    {
      name: RUN,
      args: ['--transport', 'http', '--refresh', '1000', '--ping-interval', String(PING_INTERVAL_S * 1000)],
    },
  ],
  steps: upAndHold,
  trial: (trial) => runSteps(trial, (phases) => checkHeld(phases, trial.plan)),
  trialSeconds: ({ streams, ramp, idleS, holdS }) => idleS + streams / ramp + holdS + 2,
  figures: [
    figure('heapBytes', 'JS heap per stream', 'bytes', median('held', 'streamHeapBytes')),
    figure('nativeBytes', 'native memory per stream', 'bytes', median('held', 'streamNativeBytes')),
    figure('kernelBytes', 'kernel memory per socket', 'bytes', median('held', 'streamKernelBytes')),
    figure('openUs', 'CPU to open a stream', 'µs', per(OPEN_US, growth('idle', 'up', 'opened'))),
    figure('pingUs', 'CPU per ping', 'µs', per(PING_US, rise('held', 'pings'))),
    figure('pings', 'pings per second', '1/s', rate('held', 'pings')),
    figure('tickAvgMs', 'tick avg, median second', 'ms', median('held', 'tickAvgMs')),
    figure('tickP90Ms', 'tick p90, median second', 'ms', median('held', 'tickP90Ms')),
    figure('tickP99Ms', 'tick p99, median second', 'ms', median('held', 'tickP99Ms')),
    figure('tickMaxMs', 'longest tick', 'ms', max('held', 'tickMaxMs')),
    figure('latenessMs', 'ping lateness p99, worst second', 'ms', max('held', 'pingLatenessP99Ms')),
    figure('idlePercent', 'CPU of the server when idle', '%', times(rate('idle', 'processCpuSeconds'), 100)),
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      `A stream takes ${value('heapBytes')} of JS heap, ${value('nativeBytes')} of native memory, and ${value('kernelBytes')} of kernel memory per socket.`,
      `Opening one takes ${value('openUs')} of CPU, a ping ${value('pingUs')}.`,
    ];
  },
  page: pageText,
};

/**
 * No stream is lost, there is a row for every second, and every stream gets its pings.
 * @param {import('../lab/phases.js').Phases} phases @param {import('../lab/plan.js').Plan} plan
 * @throws {HoldfastError} BAD_RUN
 */
function checkHeld(phases, { streams }) {
  const { rows } = phases.held;
  const gaps = rows.slice(1).map((row, i) => Number(row.elapsedMs) - Number(rows[i].elapsedMs));
  const pings = rate('held', 'pings')(phases) ?? 0;
  const due = streams / PING_INTERVAL_S;
  const problems = [
    gaps.some((ms) => Math.abs(ms - ROW_MS) > ROW_TOLERANCE_MS) &&
      `rows came ${formatMs(Math.min(...gaps))} to ${formatMs(Math.max(...gaps))} ms apart`,
    rows.some((row) => row.streams !== streams) && `not every row has ${formatCount(streams)} streams`,
    rows.some((row) => Number(row.lost) + Number(row.closed) > 0) && 'streams were lost or closed',
    Math.abs(pings - due) > due * PING_TOLERANCE &&
      `${formatCount(pings)} pings per second instead of ${formatCount(due)}`,
  ].filter((problem) => problem !== false);
  if (problems.length > 0) throw new HoldfastError('BAD_RUN', problems.join('; '));
}

/** @param {import('../lab/report.js').Report} report @param {import('../lab/findings.js').Findings} findings @returns {string} docs/cost.md */
function pageText({ plan, facts, figures }, findings) {
  const shown = figures.filter(({ name }) => name !== 'idlePercent');
  const rows = shown.map(({ name, text }) => {
    const due = name === 'pings' ? ` (due: ${formatCount(plan.streams / PING_INTERVAL_S)})` : '';
    return `| ${text}${due} | ${known(findings, name, RUN)} |`;
  });
  return `# What a stream costs with the http transport

${formatCount(plan.streams)} streams, held for ${plan.holdS} s, none lost, one CSV row per second. Written by \`npm run cost\`.

${facts.machine}

| figure | value |
|---|---|
${rows.join('\n')}

Memory is its growth since the second before the first stream, divided by the number of streams (medians of the seconds while
they are held), so it includes the young generation, which V8 grows once. Kernel memory is divided by the sockets that were
added, including those of the clients on the same machine. CPU is that of the primary and the workers, minus what they use when
idle (${known(findings, 'idlePercent', RUN)} of one core).
`;
}
