/*
 * The same load on other technologies, and on our two transports. The README has a summary of it (lab/comparison.js).
 */
import { descriptorLimit } from '../../lib/descriptors.js';
import { figure } from '../lab/figures.js';
import { measure } from '../lab/measure.js';
import { PEER_LIST, startPeer } from '../lab/peers.js';
import { startServer } from '../lab/server.js';
import { capital, valueText } from '../lab/text.js';
import { bothTransports } from '../lab/transports.js';

const PING_INTERVAL_MS = 2000;
const NEVER_MS = '86400000';

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'What does a stream cost with plain node:http, better-sse, Bun, Go, nginx with nchan, uWebSockets, and our two transports?',
  usual: { holdS: 4, repeats: 1 },
  how: [
    'Each is started twice. First without pings, to measure memory (PSS, after a rest as long as the hold) and CPU (minus what it uses when idle) per stream, from a third of the streams to all of them;',
    `then with a ping to each stream every ${PING_INTERVAL_MS / 1000} s, to measure its CPU per ping that a client read.`,
    'Each collects garbage as it does by default. Ours are the whole server with one worker, including its monitor; clients accept anything after a 200.',
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
    figure('bytes', 'memory per stream', 'bytes'),
    figure('openUs', 'CPU to open a stream', 'µs'),
    figure('pingUs', 'CPU per ping', 'µs'),
    figure('pings', 'pings per second that clients read', '1/s'),
  ],
  read: (findings) => ['bytes', 'openUs', 'pingUs'].flatMap((name) => ranked(findings, name)),
};

/** One process has to hold all the streams. @param {import('../lab/plan.js').Plan} plan */
function tooMany({ streams }) {
  const most = Math.floor(descriptorLimit() * 0.95);
  return streams > most
    ? `a process may have ${descriptorLimit()} descriptors here (nofile), too few for ${streams} streams`
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

/** All runs in one sentence, sorted by a figure. @param {import('../lab/findings.js').Findings} findings @param {string} figure */
function ranked(findings, figure) {
  const all = findings.runs.flatMap((run) => {
    const summary = findings.of(figure, run);
    return summary ? [{ run, value: summary.median }] : [];
  });
  if (all.length === 0) return [];
  all.sort((one, other) => one.value - other.value);
  const { text, unit } = findings.figure(figure);
  const list = all
    .map(({ run, value }) => `${run} ${value < 0 ? 'too little to measure' : valueText(value, unit)}`)
    .join(', ');
  return [`${capital(text)}, in ascending order: ${list}.`];
}
