/*
 * The same load against other technologies, and against our two transports.
 */
import { descriptorLimit } from '../../lib/descriptors.js';
import { figure } from '../lab/figures.js';
import { measure } from '../lab/measure.js';
import { PEER_LIST, startPeer } from '../lab/peers.js';
import { startServer } from '../lab/server.js';
import { bothTransports } from '../lab/transports.js';
import { capital, valueText } from '../lab/words.js';

const PING_INTERVAL_MS = 2000;
const NEVER_MS = '86400000';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'The same load against plain node:http, better-sse, Bun, Go, nginx with nchan, and our two transports: what does a stream cost?',
  usual: { holdS: 4, repeats: 1 },
  how: [
    'Each is started twice, first without pings: after a rest, from a third of the streams to all, its memory (PSS, after a rest as long as the hold) and its CPU (less what it takes idle) are taken by the stream;',
    `then with a ping to each stream every ${PING_INTERVAL_MS / 1000} s, held, and its CPU is taken by the ping that a client read.`,
    'Garbage is collected as each does by itself. Ours are the whole server with one worker, its monitor included; clients take anything after a 200.',
  ],
  runs: (plan) => [
    ...PEER_LIST.map(({ name, text, prepare }) => ({
      name,
      text,
      prepare,
      mayFail: true,
      skip: tooMany(plan),
    })),
    ...bothTransports('--workers', '1').map((run) => ({ ...run, text: 'our server, one worker' })),
  ],
  trial,
  trialSeconds: (plan) =>
    9 + plan.idleS + 2 * (plan.streams / plan.ramp) + 3 * plan.holdS + PING_INTERVAL_MS / 1000,
  figures: [
    figure('bytes', 'memory a stream', 'bytes'),
    figure('openUs', 'CPU to open a stream', 'µs'),
    figure('pingUs', 'CPU of a ping', 'µs'),
    figure('pings', 'pings a second that clients read', '1/s'),
  ],
  read: (findings) => ['bytes', 'openUs', 'pingUs'].flatMap((name) => ranked(findings, name)),
};

/** One process has all the streams. @param {import('../lab/plan.js').Plan} plan */
function tooMany({ streams }) {
  const most = Math.floor(descriptorLimit() * 0.95);
  return streams > most
    ? `one process may have ${descriptorLimit()} descriptors here (nofile), too few for ${streams} streams`
    : '';
}

/** @param {import('../lab/experiment.js').Trial} all */
async function trial(all) {
  const { lab, run, plan } = all;
  const peer = PEER_LIST.find(({ name }) => name === run.name);
  if (peer) {
    const params = { ...peer.params, expect: 'any' };
    return measure(all, {
      start: (intervalMs) => startPeer(lab, peer, intervalMs),
      params,
      pingIntervalMs: PING_INTERVAL_MS,
    });
  }
  const start = (/** @type {number} */ intervalMs) => {
    const args = [
      ...(run.args ?? []),
      '--streams',
      String(plan.streams),
      '--ping-interval',
      String(intervalMs || NEVER_MS),
    ];
    const name = `${all.name}-${intervalMs ? 'pings' : 'quiet'}`;
    return startServer(lab, { name, args, nodeFlags: run.nodeFlags ?? [] });
  };
  return measure(all, { start, params: { expect: 'any' }, pingIntervalMs: PING_INTERVAL_MS });
}

/** From the least to the most. @param {import('../lab/findings.js').Findings} findings @param {string} figure */
function ranked(findings, figure) {
  const all = findings.runs.flatMap((run) => {
    const summary = findings.of(figure, run);
    return summary ? [{ run, value: summary.median }] : [];
  });
  if (all.length === 0) return [];
  all.sort((one, other) => one.value - other.value);
  const { text, unit } = findings.figure(figure);
  const said = all
    .map(({ run, value }) => `${run} ${value < 0 ? 'too little to tell' : valueText(value, unit)}`)
    .join(', ');
  return [`${capital(text)}, from the least to the most: ${said}.`];
}
