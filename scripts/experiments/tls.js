/*
 * What TLS adds to a stream, and what it costs others. `node scripts/experiment.js tls --to docs/tls.md` writes docs/tls.md.
 */
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { buildBare } from '../lab/bare.js';
import { makeCertificate } from '../lab/tls/certificate.js';
import { CIPHER } from '../lab/tls/cipher.js';
import { measureAll, secondsOf } from '../lab/tls/measure.js';
import { OURS, TLS_PEERS } from '../lab/tls/subjects.js';
import { chartsOf, FIGURES, pageText, sentencesOf, tableText } from '../lab/tls/table.js';
import { noHold } from '../lab/transports.js';

const TEXTS = {
  plain: 'our server with the native transport, two workers, without TLS',
  tls: 'the same with TLS',
};

/** @typedef {import('../lab/experiment.js').Round} Round */

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'What does TLS add to a stream, and what do others notice while many connect at once?',
  usual: { streams: 15_000, holdS: 3, repeats: 1 },
  hasOwnPage: true,
  how: [
    `TLS 1.3, ${CIPHER} and a certificate with ECDSA P-256 for everybody. The clients are the fleet’s own dialer.`,
  ],
  runs: () => [
    ...Object.entries(TEXTS).map(([name, text]) => ({
      name,
      text,
      skip: noHold(),
      prepare: prepareOurs,
    })),
    ...TLS_PEERS.map(({ name, text, prepare }) => ({ name, text: `${text}; with TLS`, prepare })),
  ],
  round: measureRound,
  roundSeconds: (plan) =>
    [...OURS, ...TLS_PEERS.map(({ name }) => name)].reduce((all, run) => all + secondsOf(plan, run), 0),
  figures: FIGURES,
  read: sentencesOf,
  comparison: tableText,
  charts: chartsOf,
  page: pageText,
};

/** @param {import('../lab/lab.js').Lab} lab */
async function prepareOurs(lab) {
  return (await buildBare(lab)) || (await makeCertificate(lab));
}

/** @param {Round} round */
async function measureRound(round) {
  for (const { name } of round.runs) await measureRun(round, name);
}

/** A peer that fails is left out; ours may not. @param {Round} round @param {string} run */
async function measureRun(round, run) {
  try {
    await measureAll(round, run);
  } catch (error) {
    if (round.lab.signal.aborted || OURS.includes(run) || !(error instanceof HoldfastError)) throw error;
    round.lab.note(`${run} could not be measured completely: ${messageOf(error)}`);
    await round.lab.clean.clear();
  }
}
