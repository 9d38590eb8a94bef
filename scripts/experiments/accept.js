/*
 * What it costs to open a stream when the workers accept on one shared socket, and when the primary hands connections to
 * them in turn (both in the http transport). `npm run bench:accept` runs it and writes docs/accept.md.
 */
import { formatCount } from '../../lib/format.js';
import { figure, openUs } from '../lab/figures.js';
import { Recorder } from '../lab/phases.js';
import { rest, up } from '../lab/steps.js';
import { known } from '../lab/text.js';
import { closeStage, describe, openStage, valuesOf } from '../lab/trial.js';

const RAMPS = [1500, 6000];
/** Streams to plan for: above half of what two workers hold, the primary hands connections out. */
const WAYS = { shared: '0', 'round-robin': '20000' };
const WORKERS = 2;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Who should accept connections: the workers on a shared socket, or the primary?',
  usual: { streams: 10_000, holdS: 3, repeats: 3 },
  hasOwnPage: true,
  how: [
    'CPU is that of the primary and the workers. A share of 100 % means that both workers got the same number of streams.',
  ],
  runs: () =>
    RAMPS.flatMap((ramp) =>
      Object.entries(WAYS).map(([way, streams]) => ({
        name: `${way}-${ramp}`,
        text: `${formatCount(ramp)} streams opened per second`,
        args: [
          '--transport',
          'http',
          '--workers',
          String(WORKERS),
          '--ping-interval',
          '20000',
          '--streams',
          streams,
        ],
      })),
    ),
  trial,
  trialSeconds: ({ streams, idleS }) => {
    const openS = RAMPS.map((ramp) => streams / ramp);
    return idleS + 3 + openS.reduce((one, other) => one + other) / RAMPS.length;
  },
  figures: [
    figure('openUs', 'CPU to open a stream', 'µs', openUs('idle', 'up')),
    figure('share', 'streams of the worker with fewer, as a share of half', '%'),
  ],
  read: (findings) => RAMPS.map((ramp) => sentenceOf(findings, ramp)),
  page: pageText,
};

/** @param {import('../lab/experiment.js').Trial} all @returns {Promise<import('../lab/experiment.js').Values>} */
async function trial(all) {
  const { lab, plan, name, run } = all;
  const ramp = Number(run.name.split('-').at(-1));
  const stage = await openStage(all, { ramp });
  const recorder = new Recorder(stage.server, stage.load);
  lab.status = () => `[${name}] ${stage.load.text()}`;
  try {
    for (const step of [rest('idle', plan.idleS), up('up', { ...plan, ramp })])
      await recorder.during(step.name, () => step.run(stage));
  } finally {
    describe(all, stage, recorder.spans);
  }
  const share = fewestShare((await stage.server.ask('/frame'))?.workers ?? []);
  const phases = recorder.phases();
  await closeStage(stage);
  return { ...valuesOf(all, phases), share };
}

/** @param {{ values: Record<string, number> }[]} workers @returns {number | null} % of an even share */
function fewestShare(workers) {
  const streams = workers.map(({ values }) => values.streams);
  const sum = streams.reduce((one, other) => one + other, 0);
  return sum > 0 ? (100 * Math.min(...streams) * streams.length) / sum : null;
}

/** @param {import('../lab/findings.js').Findings} findings @param {number} ramp */
function ratioOf(findings, ramp) {
  const [shared, round] = Object.keys(WAYS).map((way) => findings.of('openUs', `${way}-${ramp}`)?.median);
  return shared && round ? (round / shared).toFixed(2) : '-';
}

/** @param {import('../lab/findings.js').Findings} findings @param {number} ramp */
function sentenceOf(findings, ramp) {
  const [shared, round] = Object.keys(WAYS).map((way) => known(findings, 'openUs', `${way}-${ramp}`));
  return `At ${formatCount(ramp)} per second a stream costs ${shared} of CPU to open on a shared socket, and ${round} when the primary hands it out (${ratioOf(findings, ramp)} times).`;
}

/** @param {import('../lab/report.js').Report} report @param {import('../lab/findings.js').Findings} findings @returns {string} docs/accept.md */
function pageText({ plan, facts }, findings) {
  const rows = RAMPS.map((ramp) => {
    const [shared, round] = Object.keys(WAYS).map((way) => known(findings, 'openUs', `${way}-${ramp}`));
    const share = known(findings, 'share', `shared-${ramp}`);
    return `| ${formatCount(ramp)} | ${shared} | ${round} | ${ratioOf(findings, ramp)} | ${share} |`;
  });
  return `# Who accepts connections

CPU of primary and workers to open a stream with the http transport: ${formatCount(plan.streams)} streams on two workers, medians of
${plan.repeats} ${plan.repeats === 1 ? 'trial' : 'trials'} each, in turn. Written by \`npm run bench:accept\`.

${facts.machine}

| streams opened per second | workers accept on one socket | primary hands them out | ratio | shared socket: streams of the worker with fewer, as a share of half |
|---|---|---|---|---|
${rows.join('\n')}
`;
}
