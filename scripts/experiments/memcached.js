/*
 * nodecached next to memcached and redis: from the obvious server to the optimised one, on one core and on all. `--hold` is the time of a
 * measurement, `--repeats` the number of rounds.
 */
import { noTwoCores } from '../lab/cores.js';
import { CONNECTIONS, FIGURES } from '../lab/memcached/cells.js';
import { chartsOf } from '../lab/memcached/charts.js';
import { measureRound, prepareGenerator, roundSeconds } from '../lab/memcached/measure.js';
import { pageText } from '../lab/memcached/page.js';
import { subjects } from '../lab/memcached/subjects.js';
import { sentencesOf, targetTable } from '../lab/memcached/targets.js';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How fast is a memcached in Node, next to memcached itself, and where does the rest go?',
  usual: { streams: Math.max(...CONNECTIONS), holdS: 1.5, repeats: 3 },
  hasOwnPage: true,
  how: [
    'The servers take turns within a round. The client is a native program that checks every answer; streams are its connections at most.',
  ],
  runs: () =>
    subjects().map(({ name, text, missing }) => ({
      name,
      text,
      prepare: prepareGenerator,
      skip: missing || noTwoCores(),
    })),
  round: measureRound,
  roundSeconds,
  figures: FIGURES,
  read: sentencesOf,
  comparison: targetTable,
  charts: chartsOf,
  page: pageText,
};
