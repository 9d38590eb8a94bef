/*
 * What became of the publications of a run: for the report, as JSON and as text, and for the progress. Pure.
 */
import { formatCount, formatNoun } from '../../lib/format.js';

/** @typedef {import('../ask.js').Counts} Counts */

/** What the publisher counts; the last six only if it publishes to topics.
 * @typedef {object} Published
 * @property {number} sent
 * @property {number} failed
 * @property {string} problem the last one
 * @property {number} [topics]
 * @property {number} [batch] publications per request
 * @property {import('../drone/topics/publication.js').Clock} [clock]
 * @property {number} [expected] deliveries, if every stream was open or came back with its cursor
 * @property {number} [retried] requests that were sent again
 * @property {{ hub: string, accepted: number, refused: number, unanswered: number }[]} [hubs] requests
 */

/** Each is a fault. @type {[keyof Outcome, string][]} */
const FAULTS = [
  ['lost', 'lost'],
  ['duplicated', 'duplicated'],
  ['outOfOrder', 'out of order'],
  ['strayed', 'to a stream that does not subscribe'],
];
const CLOCKS = {
  monotonic: 'the monotonic clock of this machine',
  wall: 'the wall clocks of the machines, whose difference is in it',
};

/** @typedef {ReturnType<typeof outcomeOf>} Outcome */

/** @param {Counts} counts @param {Published | null} published */
export function outcomeOf(counts, published) {
  const { delivered, missed: lost, discarded, duplicated, outOfOrder, strayed } = counts;
  const { churned, resumed, restarted, recovered, gaps } = counts;
  const unseen = published?.expected === undefined ? 0 : published.expected - delivered - lost - discarded;
  const faults = { lost, duplicated, outOfOrder, strayed, gaps, discarded, unseen: Math.max(0, unseen) };
  return { delivered, recovered, ...faults, churned, resumed, restarted };
}

/** @param {Outcome} outcome @returns {string[]} what must not happen, and has */
export function faultsOf(outcome) {
  const { gaps, discarded, unseen, restarted } = outcome;
  const faults = FAULTS.filter(([key]) => outcome[key] > 0).map(
    ([key, text]) => `${formatNoun(outcome[key], 'publication')} ${text}`,
  );
  if (gaps > 0)
    faults.push(
      `the server reported ${formatNoun(gaps, 'gap')} (${formatNoun(discarded, 'publication')} missing)`,
    );
  if (unseen > 0) {
    const why = restarted > 0 ? `; ${formatNoun(restarted, 'stream')} came back without a cursor` : '';
    faults.push(`${formatNoun(unseen, 'publication')} missing at the beginning or the end of streams${why}`);
  }
  return faults;
}

/**
 * @param {Outcome} outcome @param {Published | null} published
 * @param {(label: string, n: number, note?: string) => string} row
 * @returns {string[]} lines
 */
export function outcomeLines(outcome, published, row) {
  const { delivered, recovered, churned, resumed, restarted, gaps, discarded, unseen } = outcome;
  const { expected } = published ?? {};
  const anew = restarted > 0 ? `, ${formatCount(restarted)} without` : '';
  return [
    row('churned', churned, `${formatNoun(resumed, 'stream')} came back with a cursor${anew}`),
    ...(published ? [row('published', published.sent, publishedNote(published))] : []),
    row('delivered', delivered, deliveredNote(delivered, expected)),
    ...FAULTS.map(([key, text]) => row(`  ${key === 'strayed' ? 'astray' : text}`, outcome[key])),
    row('  unseen', unseen, unseen > 0 ? 'at the beginning or the end of streams' : ''),
    row('recovered', recovered, 'were sent while their stream was not open'),
    row(
      'gaps reported',
      gaps,
      discarded > 0 ? `${formatNoun(discarded, 'publication')} missing because of them` : '',
    ),
  ];
}

/** @param {number} delivered @param {number | undefined} expected */
function deliveredNote(delivered, expected) {
  if (expected === undefined) return '';
  const more = delivered > expected ? '; some were published although no answer came' : '';
  return `of ${formatCount(expected)}${more}`;
}

/** @param {Published} published */
function publishedNote({ topics = 0, batch = 1, failed, clock = 'wall' }) {
  const several = batch > 1 ? `, ${batch} per request` : '';
  const problems = failed > 0 ? `, ${formatCount(failed)} failed` : '';
  return `to ${formatNoun(topics, 'topic')}${several}${problems}; delivery is measured with ${CLOCKS[clock]}`;
}

/** @param {Counts} counts @param {import('../drone/histograms.js').Percentiles} delivery @param {(ms: number) => string} format */
export function progressParts(counts, delivery, format) {
  const outcome = outcomeOf(counts, null);
  if (outcome.delivered + outcome.strayed + outcome.gaps === 0) return [];
  const latency = delivery.count > 0 ? [`delivery p99 ${format(delivery.p99)} ms`] : [];
  return [`${formatCount(outcome.delivered)} delivered`, ...latency, ...faultsOf(outcome)];
}
