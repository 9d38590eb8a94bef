/*
 * A million streams over TLS 1.3. `npm run million -- --tls` checks the machine and runs it.
 */
import { figure } from '../lab/figures.js';
import { trialOfServer } from '../lab/million/server.js';
import { targetsText } from '../lab/million/targets.js';
import {
  CPU_FIGURES,
  LATENESS_FIGURES,
  MEMORY_FIGURES,
  PAUSE_FIGURES,
  STREAM_FIGURES,
  tickFigures,
} from '../lab/million/values.js';
import { known } from '../lab/text.js';
import { certificateFiles, makeCertificate } from '../lab/tls/certificate.js';
import { noHold } from '../lab/transports.js';

const PING_INTERVAL_MS = 20_000;
const RUN = 'tls';
const OTHERS = ['best published'];

// biome-ignore format: a table reads best with a row a line
/** @type {import('../lab/million/targets.js').Target[]} */
const TARGETS = [
  { text: 'failed / lost', figures: ['failed', 'lost'], target: '0 / 0', most: [0, 0] },
  { text: 'user memory of the server per stream, without that of the idle server', figures: ['userBytes'], target: '180 B', most: [180], headline: '{} of user memory per stream, without the idle server', others: ['30 to 40 KB (Node, Go, nginx in [tls.md](../tls.md))'] },
  { text: 'ramp, full handshakes', figures: ['upS'], target: '300 s', most: [300], headline: 'opened in {}' },
  { text: 'ping lateness p99, at the client', figures: ['latenessP99Ms'], target: '50 ms', most: [50], headline: 'pings {} late (p99)' },
  { text: 'CPU of the server per ping', figures: ['pingUs'], target: '-' },
];

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Can this machine hold so many TLS streams, clients included, and what do they cost?',
  title: 'a million TLS 1.3 streams',
  usual: { streams: 1_000_000, ramp: 5000, holdS: 120, repeats: 1 },
  small: { streams: 15_000, ramp: 3000, holdS: 30 },
  targets: TARGETS,
  hasOwnNetwork: true,
  hasOwnPage: true,
  how: [
    `Each stream is pinged every ${PING_INTERVAL_MS / 1000} s. All handshakes are full ones (TLS 1.3, an ECDSA P-256 certificate, TLS_AES_128_GCM_SHA256): nobody has a ticket. The ramp is what the clients try to reach; both ends of the handshakes share the machine.`,
    'Memory is PSS of all processes of the server. Lateness is measured by the clients against the schedule.',
  ],
  runs: () => [
    {
      name: RUN,
      text: 'our server; one worker, as in the run without TLS',
      args: ['--transport', 'hold', '--workers', '1', '--ping-interval', String(PING_INTERVAL_MS)],
      skip: noHold(),
      prepare: makeCertificate,
    },
  ],
  trial: (trial) => {
    const { cert, key } = certificateFiles(trial.lab);
    return trialOfServer(trial, {
      args: ['--tls-cert', cert, '--tls-key', key],
      params: { tls: '1', insecure: '1', 'no-resume': '1' },
    });
  },
  trialSeconds: ({ streams, ramp, idleS, holdS }) => idleS + streams / ramp + holdS + streams / 30_000,
  figures: [
    ...STREAM_FIGURES,
    ...MEMORY_FIGURES,
    ...tickFigures('held', 'held'),
    ...tickFigures('up', 'opening'),
    ...LATENESS_FIGURES,
    ...CPU_FIGURES,
    figure('downS', 'time to close all streams, to the last socket', 's'),
    figure('answerMs', 'slowest answer to a request during close', 'ms'),
    figure('unanswered', 'unanswered requests during close', 'count'),
    ...PAUSE_FIGURES,
  ],
  read: (findings) => {
    const value = (/** @type {string} */ name) => known(findings, name, RUN);
    return [
      `${value('open')} TLS streams were open after ${value('upS')} (${value('openRate')}); ${value('failed')} failed, ${value('lost')} were lost.`,
      `A stream takes ${value('userBytes')} of the server's memory (${value('allUserBytes')} including the idle server).`,
      `Pings (${value('pings')}) were ${value('latenessP99Ms')} late at p99, ${value('latenessMaxMs')} at most; each cost the server ${value('pingUs')}.`,
    ];
  },
  comparison: (findings) => targetsText(TARGETS, findings, { run: RUN, others: OTHERS }),
};
