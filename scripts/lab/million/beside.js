/*
 * What was reached, beside what was to be reached and what others have said of theirs. Pure.
 */
import { valueText } from '../words.js';

/** Said of 1,000,000 streams (the original of 2012: of as many on one server and 40 machines of clients). */
const OTHERS = ['prototype', 'original, 2012', 'best published'];

/**
 * @typedef {object} Row
 * @property {string} text
 * @property {string[]} figures that are set beside the marks, in their order
 * @property {string} mark to reach
 * @property {number[]} marks the most that each may be
 * @property {string[]} others
 */

// biome-ignore format: a table reads best with a row a line
/** @type {Row[]} */
const ROWS = [
  { text: 'failed / lost', figures: ['failed', 'lost'], mark: '0 / 0', marks: [0, 0], others: ['0 / 0', '-', '-'] },
  { text: 'ramp', figures: ['upS'], mark: '80 s', marks: [80], others: ['82 s (loud ticks), 136 s (quiet ones)', '-', '-'] },
  { text: 'user memory of the server a stream, its start excluded / included', figures: ['userBytes', 'allUserBytes'], mark: '100 B / 300 B', marks: [100, 300], others: ['- / 59 B', '6.3 KB', '11.6 KB (Centrifugo, 2026), 290 to 580 B (uWebSockets, 2016)'] },
  { text: 'kernel memory a socket', figures: ['kernelBytes'], mark: '-', marks: [], others: ['-', '3.8 KB', 'about 4 KB (Centrifugo, 2026)'] },
  { text: 'ticks while held: avg / p90 / p99 / max', figures: ['heldTickAvgMs', 'heldTickP90Ms', 'heldTickP99Ms', 'heldTickMaxMs'], mark: '10.3 / 10.6 / 12 / 20 ms', marks: [10.3, 10.6, 12, 20], others: ['10.2 / 10.3 / 11.5 / 12 ms', '-', '-'] },
  { text: 'ticks while opening: p90 / p99', figures: ['upTickP90Ms', 'upTickP99Ms'], mark: '12 / 30 ms', marks: [12, 30], others: ['11.3 / 20 ms (in 136 s)', '-', '-'] },
  { text: 'ping lateness p99 / max, as the client sees it', figures: ['latenessP99Ms', 'latenessMaxMs'], mark: '50 / 500 ms', marks: [50, 500], others: ['-', '-', '-'] },
  { text: 'closing all, to the last socket', figures: ['downS'], mark: '20 s', marks: [20], others: ['16 s', '-', '-'] },
];
const CPU_MARK = 1.15;

/** @param {import('../findings.js').Findings} findings @returns {string} a table in Markdown */
export function besideText(findings) {
  const rows = ROWS.map(({ text, figures, mark, marks, others }) => {
    const found = figures.map((name) => findings.of(name, 'hold'));
    const cells = found.map((one, i) =>
      one ? valueText(one.median, findings.figure(figures[i]).unit) : '-',
    );
    const isKnown = marks.length > 0 && found.every((one) => one !== null);
    const isReached = found.every((one, i) => one !== null && one.median <= marks[i]);
    return [text, mark, cells.join(' / '), isKnown ? yesOrNo(isReached) : '-', ...others];
  });
  const [ours, floor] = ['hold', 'floor'].map((run) => findings.of('pingUs', run)?.median ?? null);
  const ratio = ours !== null && floor !== null ? ours / floor : null;
  rows.push([
    "CPU of the server while held, by the bare loop's",
    String(CPU_MARK),
    ratio === null ? '-' : ratio.toFixed(2),
    ratio === null ? '-' : yesOrNo(ratio <= CPU_MARK),
    ...OTHERS.map(() => '-'),
  ]);
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`;
  const head = ['figure', 'to reach', 'here', 'reached', ...OTHERS];
  const table = [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
  return `What was to be reached, and what others said, is of 1,000,000 streams.\n\n${table}`;
}

/** @param {boolean} isSo */
const yesOrNo = (isSo) => (isSo ? 'yes' : '**no**');
