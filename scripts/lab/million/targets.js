/*
 * The results of the million run beside its targets and what others have published. Pure.
 */
import { markdownTable, valueText } from '../text.js';

/** Figures for 1,000,000 streams (the original of 2012: as many on one server, with 40 client machines). */
const OTHERS = ['prototype', 'original, 2012', 'best published'];

/**
 * @typedef {object} Row
 * @property {string} text
 * @property {string[]} figures to compare with the targets, in their order
 * @property {string} target
 * @property {number[]} most the largest allowed value of each
 * @property {string[]} others
 */

// biome-ignore format: a table reads best with a row a line
/** @type {Row[]} */
const ROWS = [
  { text: 'failed / lost', figures: ['failed', 'lost'], target: '0 / 0', most: [0, 0], others: ['0 / 0', '-', '-'] },
  { text: 'ramp', figures: ['upS'], target: '80 s', most: [80], others: ['82 s (loud ticks), 136 s (quiet ticks)', '-', '-'] },
  { text: 'user memory of the server per stream, without / with the memory of the idle server', figures: ['userBytes', 'allUserBytes'], target: '100 B / 300 B', most: [100, 300], others: ['- / 59 B', '6.3 KB', '11.6 KB (Centrifugo, 2026), 290 to 580 B (uWebSockets, 2016)'] },
  { text: 'kernel memory per socket', figures: ['kernelBytes'], target: '-', most: [], others: ['-', '3.8 KB', 'about 4 KB (Centrifugo, 2026)'] },
  { text: 'ticks while held: avg / p90 / p99 / max', figures: ['heldTickAvgMs', 'heldTickP90Ms', 'heldTickP99Ms', 'heldTickMaxMs'], target: '10.3 / 10.6 / 12 / 20 ms', most: [10.3, 10.6, 12, 20], others: ['10.2 / 10.3 / 11.5 / 12 ms', '-', '-'] },
  { text: 'ticks while opening: p90 / p99', figures: ['upTickP90Ms', 'upTickP99Ms'], target: '12 / 30 ms', most: [12, 30], others: ['11.3 / 20 ms (in 136 s)', '-', '-'] },
  { text: 'ping lateness p99 / max, at the client', figures: ['latenessP99Ms', 'latenessMaxMs'], target: '50 / 500 ms', most: [50, 500], others: ['-', '-', '-'] },
  { text: 'closing all streams, to the last socket', figures: ['downS'], target: '20 s', most: [20], others: ['16 s', '-', '-'] },
];
const CPU_TARGET = 1.15;

/** @param {import('../findings.js').Findings} findings @returns {string} a table in Markdown */
export function targetsText(findings) {
  const rows = ROWS.map(({ text, figures, target, most, others }) => {
    const found = figures.map((name) => findings.of(name, 'hold'));
    const cells = found.map((one, i) =>
      one ? valueText(one.median, findings.figure(figures[i]).unit) : '-',
    );
    const isKnown = most.length > 0 && found.every((one) => one !== null);
    const isReached = found.every((one, i) => one !== null && one.median <= most[i]);
    return [text, target, cells.join(' / '), isKnown ? yesOrNo(isReached) : '-', ...others];
  });
  const head = ['figure', 'to reach', 'here', 'reached', ...OTHERS];
  const table = markdownTable(head, [...rows, cpuRow(findings)]);
  return `The targets, and the figures of others, are for 1,000,000 streams.\n\n${table}`;
}

/** @param {import('../findings.js').Findings} findings @returns {string[]} */
function cpuRow(findings) {
  const [ours, floor] = ['hold', 'floor'].map((run) => findings.of('pingUs', run)?.median ?? null);
  const ratio = ours !== null && floor !== null ? ours / floor : null;
  return [
    'CPU of the server while held, relative to the bare loop',
    String(CPU_TARGET),
    ratio === null ? '-' : ratio.toFixed(2),
    ratio === null ? '-' : yesOrNo(ratio <= CPU_TARGET),
    ...OTHERS.map(() => '-'),
  ];
}

/** @param {boolean} isSo */
const yesOrNo = (isSo) => (isSo ? 'yes' : '**no**');
