/*
 * Web frameworks of Node, Bun and Rust, and a Hold, answer the same requests. `--streams` is the number of connections.
 */
import { noTwoCores } from '../lab/cores.js';
import { findCommand } from '../lab/install.js';
import { ALONE_S, measureRequests, WARM_UP_S } from '../lab/requests/measure.js';
import { partsOf, runOf, sentencesOf } from '../lab/requests/sentences.js';
import { subjects } from '../lab/requests/subjects.js';
import { chartsOf, FIGURES, MODES, originalTable, pageText } from '../lab/requests/table.js';

const CONNECTIONS = 256;
/** Its start, its end, the questions, and rests. */
const AROUND_S = 1.3;
const PLAN_S = 4;

/** @typedef {import('../lab/requests/start.js').Mode} Mode */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'How many requests per second do Express, Fastify, Velocy, node:http, a Hold, Elysia, axum and hyper answer?',
  usual: { streams: CONNECTIONS, holdS: 3, repeats: 3 },
  hasOwnPage: true,
  how: [
    '`GET /bench/:name?id=10` is answered with the name and the id as JSON, with identical headers; the answers are compared byte by byte. The client is wrk with one thread; streams are its connections.',
  ],
  runs: () => {
    const missing = missingHere();
    return /** @type {Mode[]} */ (Object.keys(MODES)).flatMap((mode) =>
      subjects().map(({ name, text, skip, prepare }) => ({
        name: runOf(name, mode),
        text: `${text}; ${MODES[mode]}`,
        mayFail: true,
        skip: missing || skip,
        prepare,
      })),
    );
  },
  trial,
  // The plan adds PLAN_S for a server and drones; half of the trials have a part with one connection.
  trialSeconds: ({ holdS }) => Math.min(WARM_UP_S, holdS) + ALONE_S / 2 + holdS + AROUND_S - PLAN_S,
  figures: FIGURES,
  read: sentencesOf,
  comparison: originalTable,
  charts: chartsOf,
  page: pageText,
};

/** @returns {string} what keeps everything from running here, or '' */
function missingHere() {
  return findCommand('wrk') ? noTwoCores() : 'wrk is not installed (Debian: wrk)';
}

/** @param {import('../lab/experiment.js').Trial} all */
async function trial(all) {
  const { subject: name, mode } = partsOf(all.run.name);
  const subject = subjects().find((one) => one.name === name);
  return measureRequests(all, /** @type {import('../lab/requests/subjects.js').Subject} */ (subject), mode);
}
