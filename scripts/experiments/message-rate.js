/*
 * How many messages per second one core can send: the ping interval is halved step by step until lateness or ticks exceed
 * their limits.
 */
import { codeOf, messageOf } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { figure, growth, latenessFigures, max, median, per, times } from '../lab/figures.js';
import { Recorder } from '../lab/phases.js';
import { hold, rest, up } from '../lab/steps.js';
import { capital, known } from '../lab/text.js';
import { bothTransports } from '../lab/transports.js';
import { closeStage, describe, openStage } from '../lab/trial.js';

const FIRST_MS = 2000;
const LEAST_MS = 30;
const LATENESS_MS = 100;
const TICK_MS = 20;
/** With fewer than this share of the pings due, the server is behind, whatever its clocks say. */
const LEAST_SHARE = 0.9;
const STEPS = 7;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How many messages per second can one core of the server send before pings or ticks are late?',
  usual: { holdS: 8, repeats: 1 },
  how: [
    `One worker. The ping interval starts at ${FIRST_MS / 1000} s and is halved, with a new server and new clients each time, until`,
    `lateness p99 at the client exceeds ${LATENESS_MS} ms, tick p90 exceeds ${TICK_MS} ms, or fewer than ${LEAST_SHARE * 100} % of the pings due are written.`,
  ],
  runs: () => bothTransports('--workers', '1'),
  trial,
  trialSeconds: (plan) => STEPS * (4 + plan.streams / plan.ramp + plan.holdS),
  figures: [
    figure('carried', 'most messages per second within the limits', '1/s'),
    figure('cpuUs', 'CPU per message there', 'µs'),
    figure('cpuPercent', 'CPU of the server there', '%'),
    figure('latenessMs', 'ping lateness p99 there, at the client', 'ms'),
    figure('wanted', 'messages per second that were too many', '1/s'),
    figure('written', 'of which written', '1/s'),
    figure('wantedLatenessMs', 'ping lateness p99 there, at the client', 'ms'),
    figure('wantedTickMs', 'tick p90 there', 'ms'),
  ],
  read: (findings) =>
    findings.runs.map((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const most = `${capital(run)}: ${value('carried')}, at ${value('cpuUs')} of CPU each`;
      if (findings.of('wanted', run) && !findings.of('written', run))
        return `${most}; at ${value('wanted')} not all streams could be opened.`;
      if (!findings.of('wanted', run)) return `${most}; the limits were not reached.`;
      return `${most}; at ${value('wanted')} (${value('written')} written) lateness p99 was ${value('wantedLatenessMs')} and tick p90 ${value('wantedTickMs')}.`;
    }),
};

const [LATENESS] = latenessFigures();

/** @param {import('../lab/experiment.js').Trial} all @returns {Promise<import('../lab/experiment.js').Values>} */
async function trial(all) {
  /** @type {import('../lab/experiment.js').Values} */
  let values = {};
  for (let intervalMs = FIRST_MS; intervalMs >= LEAST_MS; intervalMs /= 2) {
    const found = await at(Math.round(intervalMs), all);
    if (!isWithin(found)) {
      return {
        ...values,
        wanted: found.due,
        written: found.rate,
        wantedLatenessMs: found.latenessMs,
        wantedTickMs: found.tickMs,
      };
    }
    const { rate, cpuPercent, latenessMs } = found;
    values = {
      carried: rate,
      cpuPercent,
      latenessMs,
      cpuUs: rate && cpuPercent !== null ? (cpuPercent * 1e4) / rate : null,
    };
  }
  return values;
}

/** @param {Found} found */
function isWithin({ latenessMs, tickMs, rate, due }) {
  if (rate === null || rate < due * LEAST_SHARE) return false;
  return (latenessMs ?? 0) <= LATENESS_MS && (tickMs ?? 0) <= TICK_MS;
}

/**
 * @typedef {object} Found with one ping interval
 * @property {number} due messages per second
 * @property {number | null} rate messages per second that were written; null when not all streams could be opened
 * @property {number | null} cpuPercent
 * @property {number | null} latenessMs
 * @property {number | null} tickMs
 */

/** @param {number} intervalMs @param {import('../lab/experiment.js').Trial} all @returns {Promise<Found>} */
async function at(intervalMs, all) {
  const { lab, plan, name } = all;
  const due = (plan.streams * 1000) / intervalMs;
  const own = { ...all, name: intervalMs === FIRST_MS ? name : `${name}-${intervalMs}ms` };
  const stage = await openStage(own, { args: ['--ping-interval', String(intervalMs)] });
  const recorder = new Recorder(stage.server, stage.load);
  try {
    await runPhases(own, stage, recorder, intervalMs);
    return foundIn(recorder.phases(), due);
  } catch (error) {
    // If not all streams can be opened, these were too many messages.
    if (codeOf(error) !== 'NOT_OPEN') throw error;
    lab.note(`${name}, ${formatCount(due)} messages per second: ${messageOf(error)}`);
    return { due, rate: null, cpuPercent: null, latenessMs: null, tickMs: null };
  } finally {
    describe(own, stage, recorder.spans);
    await closeStage(stage);
  }
}

/**
 * @param {import('../lab/experiment.js').Trial} trial @param {import('../lab/steps.js').Stage} stage @param {Recorder} recorder
 * @param {number} intervalMs
 */
async function runPhases({ lab, plan, name }, stage, recorder, intervalMs) {
  const settleS = Math.max(1, intervalMs / 1000);
  for (const step of [rest('idle', 1), up('up', plan), rest('settle', settleS), hold('held', plan.holdS)]) {
    lab.status = () => `[${name}] ${step.name}: ${stage.load.text()}`;
    await recorder.during(step.name, () => step.run(stage));
  }
}

/** @param {import('../lab/phases.js').Phases} phases @param {number} due @returns {Found} */
function foundIn(phases, due) {
  const rate = per(growth('settle', 'held', 'pings'), growth('settle', 'held', 'elapsedMs'));
  return {
    due,
    rate: times(rate, 1000)(phases),
    cpuPercent: median('held', 'processCpuPercent')(phases),
    latenessMs: LATENESS.read?.(phases) ?? max('held', 'pingLatenessP99Ms')(phases),
    tickMs: median('held', 'tickP90Ms')(phases),
  };
}
