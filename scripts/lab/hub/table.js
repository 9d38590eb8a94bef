/*
 * From the findings about the hub to its tables and its page. Pure.
 */
import { formatCount } from '../../../lib/format.js';
import { figure } from '../figures.js';
import { markdownTable, summaryText, valueText } from '../text.js';
import { PAUSE_MS, sizesOf } from './sizes.js';
import { KINDS } from './subjects.js';

/** @typedef {import('../findings.js').Findings} Findings */

/**
 * What must be reached: at most so much more than plain streams need (`more`), so many times as much (`ratio`), or a value by itself.
 * @typedef {object} Target
 * @property {string} name of the figure
 * @property {string} run
 * @property {number} [more]
 * @property {number} [ratio]
 * @property {number} [most]
 * @property {number} [least]
 */

const PLAIN = 'plain';

/** @type {Target[]} */
const TARGETS = [
  { name: 'memoryBytes', run: 'topic', more: 40 },
  { name: 'memoryBytes', run: 'shared', more: 44 },
  { name: 'memoryBytes', run: 'own', more: 200 },
  { name: 'openUs', run: 'shared', ratio: 1.3 },
  { name: 'openUs', run: 'own', ratio: 2.5 },
  { name: 'deliveryUs', run: 'topic', ratio: 1.1 },
  { name: 'latencyP99Ms', run: 'hub', most: 5 },
  { name: 'batchRate', run: 'hub', least: 20_000 },
  { name: 'batchRate', run: 'disk', least: 10_000 },
  { name: 'noMatchUs', run: 'hub', most: 50 },
  { name: 'unserved', run: 'storm', most: 0 },
  { name: 'tickP99Ms', run: 'storm', most: 15 },
  { name: 'patternTickMs', run: 'hub', most: 20 },
];

export const FIGURES = [
  figure('memoryBytes', 'user memory per stream', 'bytes'),
  figure('openUs', 'CPU to open a stream', 'µs'),
  figure('deliveryUs', 'CPU per delivery, 64 bytes to every stream', 'µs'),
  figure('latencyP50Ms', 'publish to first byte at the client, p50', 'ms'),
  figure('latencyP99Ms', 'publish to first byte at the client, p99', 'ms'),
  figure('singleRate', 'publications per second, one per request', '1/s'),
  figure('singleUs', 'CPU of a publication, one per request', 'µs'),
  figure('batchRate', 'publications per second, in batches', '1/s'),
  figure('batchUs', 'CPU of a publication, in batches', 'µs'),
  figure('nobodyUs', 'CPU of a publication in a batch while nobody is subscribed', 'µs'),
  figure('noMatchUs', 'CPU of a publication in a batch that matches none of 1,000 patterns', 'µs'),
  figure('openRate', 'streams opened per second', '1/s'),
  figure('unserved', 'publications that were not recovered', 'count'),
  figure('servedMs', 'time until all have everything they missed', 'ms'),
  figure('tickP99Ms', 'JS tick p99 while they open or reconnect, worst second', 'ms'),
  figure('tickMaxMs', 'longest JS tick while they open or reconnect', 'ms'),
  figure('refusedPatterns', 'catastrophic patterns that are refused, of 5', 'count'),
  figure('patternTickMs', 'longest JS tick with patterns that are not refused', 'ms'),
];

/** What each run is, if it is not a kind of stream. @type {Record<string, string>} */
export const RUNS = {
  ...KINDS,
  'own-es256': 'an ES256 token each that was not seen before, 10,000 streams per second',
  hub: 'publications to one of many streams each, with the memory broker',
  disk: 'the same with the disk broker',
  storm: 'all reconnect at once with a shared token, and each has missed 20 publications',
  'storm-own': 'the same with a token each',
};

/**
 * A figure against its target.
 * @typedef {Target & { text: string, isMet: boolean, value: number | null, plain: number | null }} Judged
 */

/** @param {Findings} findings @returns {Judged[]} of what was measured here */
export function judge(findings) {
  return TARGETS.filter(({ run }) => run !== 'disk' || findings.runs.includes(run)).map((target) => {
    const { name, run, more, ratio, most, least } = target;
    const [value, plain] = [run, PLAIN].map((one) => findings.of(name, one)?.median ?? null);
    const limit = limitOf(target, plain);
    const isMet = value !== null && limit !== null && (least === undefined ? value <= limit : value >= limit);
    const { unit } = findings.figure(name);
    const text =
      more !== undefined
        ? `plain + ${valueText(more, unit)}`
        : ratio !== undefined
          ? `${ratio} x plain`
          : `${least === undefined ? 'at most' : 'at least'} ${valueText(least ?? most ?? 0, unit)}`;
    return { ...target, text, isMet, value, plain };
  });
}

/** @param {Target} target @param {number | null} plain @returns {number | null} */
function limitOf({ more, ratio, most, least }, plain) {
  if (more !== undefined) return plain === null ? null : plain + more;
  if (ratio !== undefined) return plain === null ? null : plain * ratio;
  return most ?? least ?? null;
}

/** @param {Judged} judged @param {Findings} findings @returns {string} compared with plain streams */
function comparedText({ name, more, ratio, value, plain }, findings) {
  if (value === null || plain === null) return '';
  if (more !== undefined) return signed(value - plain, findings.figure(name).unit);
  return ratio === undefined ? '' : `${(value / plain).toFixed(2)} x`;
}

/** @param {number} difference @param {Parameters<typeof valueText>[1]} unit @returns {string} with its sign */
function signed(difference, unit) {
  return `${difference < 0 ? '-' : '+'} ${valueText(Math.abs(difference), unit)}`;
}

/** @param {Findings} findings @returns {string} the targets in Markdown */
export function tableText(findings) {
  const rows = judge(findings).map((judged) => {
    const { name, run, text, isMet, more, ratio } = judged;
    const { text: what, unit } = findings.figure(name);
    const isCompared = more !== undefined || ratio !== undefined;
    const plain = isCompared ? summaryText(findings.of(name, PLAIN), unit) : '';
    const cells = [
      what,
      run,
      plain,
      summaryText(findings.of(name, run), unit),
      comparedText(judged, findings),
    ];
    return [...cells, `${text}: ${isMet ? 'reached' : '**missed**'}`];
  });
  return markdownTable(['figure', 'run', 'plain', 'hub', 'difference', 'to reach'], rows);
}

/** @param {Findings} findings @returns {string} everything else that was measured */
function othersText(findings) {
  const judged = new Set(TARGETS.map(({ name, run }) => `${name} ${run}`));
  const rows = findings.figures.flatMap(({ name, text, unit }) =>
    findings.runs
      .filter((run) => findings.of(name, run) && run !== PLAIN && !judged.has(`${name} ${run}`))
      .map((run) => [text, run, summaryText(findings.of(name, run), unit)]),
  );
  return markdownTable(['figure', 'run', 'value'], rows);
}

/** @param {import('../report.js').Report} report @param {Findings} findings @returns {string} docs/hub.md */
export function pageText({ plan, facts, command, notes }, findings) {
  const { low, high, restMs } = sizesOf(plan);
  const [lowText, highText] = [low, high].map(formatCount);
  const runs = Object.entries(RUNS).filter(([name]) => findings.runs.includes(name));
  return `# The hub next to plain streams

Measured in one run with the same clients; ${plan.repeats} ${plan.repeats === 1 ? 'round' : 'rounds'}. Each cell shows the median, and in brackets the
smallest and the largest value. Written by \`${command}\`; every single value is in [hub.json](hub.json).

${facts.machine}

${tableText(findings)}

The runs:

${runs.map(([name, text]) => `- **${name}**: ${text}`).join('\n')}

Other figures of the same run:

${othersText(findings)}

- The server is \`server.js\` with two workers; server and clients share the machine. CPU is that of all processes of the
  server, minus what it uses when idle.
- Memory is anonymous memory of all processes of the server: its growth from ${lowText} to ${highText} streams, in a server that has
  opened and closed ${lowText} streams several times before and collects garbage every second. Each reading follows ${restMs / 1000} s of
  rest. Tokens that the server remembers are included.
- Openings go from ${lowText} to ${highText} streams as fast as the client can, in a server that has seen the same tokens before: JS gets
  faster as it runs.
- Publications are numbered, and clients check that each arrives once and in order; otherwise there is no report. Batches have 100
  publications.
- Ticks are due every 10 ms; the worker with the worst ones counts. On each core a thread with the highest priority watches the
  machine itself; storms during which it was delayed by more than ${PAUSE_MS} ms are left out.
${notes.map((note) => `- ${note}.\n`).join('')}`;
}
