/*
 * From the findings of the benchmark to its table and its page. Pure.
 */
import { formatCount } from '../../../lib/format.js';
import { figure } from '../figures.js';
import { summaryText } from '../text.js';
import { PAUSE_MS, sizesOf } from './sizes.js';

/** @typedef {import('../findings.js').Findings} Findings */

/**
 * What hold must reach: `most` by itself, or `ratio` times the floor.
 * @type {Record<string, { most: number } | { ratio: number }>}
 */
const TARGETS = {
  memoryBytes: { most: 100 },
  openUs: { ratio: 1.4 },
  pingUs: { ratio: 1.15 },
  deliveryUs: { ratio: 1.15 },
  manyPssBytes: { most: 220e6 },
  busyTickP99Ms: { most: 11 },
  busyTickMaxMs: { most: 20 },
  stormTickP99Ms: { most: 15 },
};
const KINDS = ['floor', 'http', 'hold'];

export const FIGURES = [
  figure('memoryBytes', 'user memory per stream', 'bytes'),
  figure('openUs', 'CPU to open a stream', 'µs'),
  figure('pingUs', 'CPU per ping', 'µs'),
  figure('deliveryUs', 'CPU per delivery, 64 bytes to every stream', 'µs'),
  figure('manyPssBytes', 'memory of the whole server with four times as many streams', 'bytes'),
  figure('busyTickP99Ms', 'JS tick p99 while every stream is pinged and gets messages', 'ms'),
  figure('busyTickMaxMs', 'JS tick max meanwhile', 'ms'),
  figure('stormTickP99Ms', 'JS tick p99 while streams open as fast as they can', 'ms'),
  figure('busyPauseMs', 'longest pause of the machine meanwhile, by second', 'ms'),
];

/**
 * @typedef {object} Judged a figure against its target
 * @property {string} name
 * @property {number | null} ratio of hold to the floor
 * @property {string} target
 * @property {boolean} isMet
 */

/** @param {Findings} findings @returns {Judged[]} */
export function judge(findings) {
  return Object.entries(TARGETS).map(([name, target]) => {
    const [floor, hold] = ['floor', 'hold'].map((kind) => findings.of(name, kind)?.median ?? null);
    const ratio = floor && hold !== null && 'ratio' in target ? hold / floor : null;
    const { unit } = findings.figure(name);
    if ('ratio' in target)
      return {
        name,
        ratio,
        target: `${target.ratio} x floor`,
        isMet: ratio !== null && ratio <= target.ratio,
      };
    const isMet = hold !== null && hold <= target.most;
    return {
      name,
      ratio,
      target: summaryText({ median: target.most, least: 0, most: 0, count: 1 }, unit),
      isMet,
    };
  });
}

/** @param {Findings} findings @returns {string} the table in Markdown */
export function tableText(findings) {
  const rows = judge(findings).map(({ name, ratio, target, isMet }) => {
    const { text, unit } = findings.figure(name);
    const cells = KINDS.map((kind) => {
      const summary = findings.of(name, kind);
      return summary ? summaryText(summary, unit) : '';
    });
    const verdict = `${target}: ${isMet ? 'reached' : '**missed**'}`;
    return `| ${[text, ...cells, ratio === null ? '' : ratio.toFixed(2), verdict].join(' | ')} |`;
  });
  return `| figure | floor | http | hold | hold / floor | to reach |\n|---|---|---|---|---|---|\n${rows.join('\n')}`;
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/bench.md */
export function pageText({ plan, facts }, findings) {
  const { low, high, many, restMs } = sizesOf(plan);
  const [lowText, highText, manyText] = [low, high, many].map(formatCount);
  const pauses = findings.valuesOf('busyPauseMs', 'hold');
  const disturbed = pauses.filter((ms) => ms > PAUSE_MS).length;
  return `# Both transports against a bare epoll loop

Three kinds of server in one run, with the same client; ${plan.repeats} ${plan.repeats === 1 ? 'round' : 'rounds'}. Each cell shows the median, and in brackets the
smallest and the largest value. Written by \`npm run bench\`; every single value is in [bench.json](bench.json).

${facts.machine}

${tableText(findings)}

The floor ([floor.rs](../scripts/lab/bare/src/bin/floor.rs)) accepts, answers, keeps the descriptor and sends, in one thread and without any
checks. The others are \`server.js\` with two workers. All streams are on one channel.

- Memory is PSS of all processes of the server: its growth from ${lowText} to ${highText} streams, in a server that has opened and
  closed ${lowText} streams several times before and collects garbage every second. Each reading follows ${restMs / 1000} s of rest. The
  whole server is measured with ${manyText} streams.
- CPU is the run time of all threads of the server, minus what the server used while idle. Openings go from ${lowText} to
  ${highText} streams as fast as the client can, in a server that has done the same before: JS gets faster as it runs. Pings
  are two per second to each of ${highText} streams.
- Ticks are due every 10 ms; the worker with the worst ones counts: p99 of each second, and the maximum of each run.
  Streams are pinged every 5 s and get a message every second. On each core a thread with the highest priority watches
  the machine itself; seconds in which it was delayed by more than ${PAUSE_MS} ms are left out (${disturbed} of ${pauses.length} busy seconds).
`;
}
