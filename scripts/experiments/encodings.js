/*
 * What a stream costs in each format, beside WebSockets and polls of others, and requests on kept connections.
 * `node scripts/experiment.js encodings --to docs/encodings.md` writes docs/encodings.md.
 */
import { noTwoCores } from '../lab/cores.js';
import { measureAll } from '../lab/encodings/measure.js';
import { kinds } from '../lab/encodings/subjects.js';
import { chartsOf, FIGURES, pageText, sentencesOf, tableText } from '../lab/encodings/table.js';
import { findCommand } from '../lab/install.js';

/** Roughly, with what does not depend on the plan. */
const SECONDS_PER_RUN = 100;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does a stream cost in each format, beside WebSockets and polls of others?',
  usual: { streams: 15_000, holdS: 3, repeats: 1 },
  hasOwnPage: true,
  how: [
    'The clients are the fleet’s own dialer, in each format. The requests on kept connections are those of wrk; streams are then idle connections.',
  ],
  runs: () => {
    const noRequests = findCommand('wrk') ? noTwoCores() : 'wrk is not installed (Debian: wrk)';
    return kinds().map(({ name, text, what, skip = '', prepare }) => ({
      name,
      text,
      skip: skip || (what === 'requests' ? noRequests : ''),
      prepare,
    }));
  },
  round: measureAll,
  roundSeconds: ({ holdS }) => kinds().length * SECONDS_PER_RUN * Math.min(1, holdS / 3),
  figures: FIGURES,
  read: sentencesOf,
  comparison: tableText,
  charts: chartsOf,
  page: pageText,
};
