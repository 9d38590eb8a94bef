/*
 * The comparison with other technologies in the README, from the report of the experiment `technologies`. Everything here but
 * the last function is pure.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { formatCount } from '../../lib/format.js';
import { Findings } from './findings.js';
import { insertBetween } from './insert.js';
import { alignedTable, valueText } from './text.js';

const NAME = 'comparison';
const OURS = 'hold';

const COLUMNS = /** @type {const} */ ([
  { figure: 'bytes', title: 'memory per stream', unit: 'bytes' },
  { figure: 'openUs', title: 'CPU to open a stream', unit: 'µs' },
  { figure: 'pingUs', title: 'CPU per ping', unit: 'µs' },
]);

/** What the README calls each run, in the order of the rows. @type {Record<string, string>} */
const NAMES = {
  hold: '**Holdfast**',
  http: 'Holdfast on node:http',
  'node-http': 'node:http',
  'better-sse': 'better-sse',
  bun: 'Bun',
  go: 'Go net/http',
  nchan: 'nginx with nchan',
  uwebsockets: 'uWebSockets (C++)',
};

/** @typedef {import('./report.js').Report} Report */

/** @param {Report} report of `technologies` @returns {string} in Markdown */
export function comparisonText(report) {
  const findings = new Findings(
    report.figures,
    report.runs.map(({ name }) => name),
    report.outcomes,
  );
  const runs = Object.keys(NAMES).filter((run) => findings.runs.includes(run));
  const rows = runs.map((run) => [NAMES[run], ...COLUMNS.map((column) => cellText(findings, run, column))]);
  const head = ['', ...COLUMNS.map(({ title }) => title)];
  const { plan, startedAt, facts } = report;
  const size = `${formatCount(plan.streams)} streams on one machine, clients included`;
  return `${alignedTable(head, rows)}

In brackets: relative to Holdfast, which is measured as a whole server with its monitoring. All in one run of
\`node scripts/experiment.js technologies\`: ${size}, ${startedAt.slice(0, 10)}, ${facts.machine}. Details:
[docs/experiments.md](docs/experiments.md#technologies).`;
}

/** @param {Findings} findings @param {string} run @param {(typeof COLUMNS)[number]} column @returns {string} '8.4 KB (130 x)' */
function cellText(findings, run, { figure, unit }) {
  const [value, ours] = [run, OURS].map((name) => findings.of(figure, name)?.median ?? null);
  if (value === null) return '-';
  const text = value < 0 ? 'too little to measure' : valueText(value, unit);
  if (run === OURS || value < 0 || ours === null || ours <= 0) return text;
  return `${text} (${ratioText(value / ours)} x)`;
}

/** @param {number} ratio */
function ratioText(ratio) {
  return ratio >= 10 ? formatCount(ratio) : ratio.toFixed(1);
}

/** @param {string} file @param {Report} report @returns {boolean} false when the file has no markers */
export function writeComparison(file, report) {
  const page = insertBetween(readFileSync(file, 'utf8'), NAME, comparisonText(report));
  if (page === null) return false;
  writeFileSync(file, page);
  return true;
}
