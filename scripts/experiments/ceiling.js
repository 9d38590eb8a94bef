/*
 * How many streams: the target rises until something gives, and that is named.
 */
import { availableParallelism } from 'node:os';
import { formatBytes, formatCount } from '../../lib/format.js';
import { findLimits, mostStreams, verdictLine } from '../../limits/index.js';
import { readMachine } from '../../limits/kernel.js';
import { native } from '../../native/index.js';
import { figure, last, max, median } from '../lab/figures.js';
import { networkOfMany } from '../lab/namespace.js';
import { Recorder } from '../lab/phases.js';
import { change, hold, rest } from '../lab/steps.js';
import { closeStage, leave, openStage } from '../lab/trial.js';
import { known } from '../lab/words.js';

const FACTOR = 1.5;
/** It stops there even where nothing gives. */
const MOST_TIMES = 200;
const RAMP = 10_000;
const PING_INTERVAL_MS = 20_000;
const LATENESS_MS = 500;
const TICK_MS = 50;
const IDLE_PERCENT = 5;
/** Of the machine's memory, that stays free. */
const SPARE = 0.1;
const STEPS = 12;

/** @typedef {'CPU' | 'memory' | 'a limit' | 'lateness' | 'ticks' | 'streams'} Cause */
/** @type {Record<Cause, string>} the names of their figures */
const CAUSES = {
  CPU: 'cpu',
  memory: 'memory',
  'a limit': 'limit',
  lateness: 'lateness',
  ticks: 'ticks',
  streams: 'streams',
};

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'How many streams does this machine hold, clients with it, until something gives, and what gives?',
  usual: { holdS: 10, repeats: 1 },
  hasOwnNetwork: true,
  how: [
    `The target begins at the number of streams and rises by half, each held, pinged each ${PING_INTERVAL_MS / 1000} s, ${formatCount(RAMP)} opened a second.`,
    `What gives is CPU (less than ${IDLE_PERCENT} % idle, most of it ours), memory (by what a stream took so far the next step would leave less than ${SPARE * 100} % of it, or it is more than the tune check lets through), a limit that limits/index.js knows, lateness (p99 above ${LATENESS_MS} ms in the server),`,
    `ticks (p90 above ${TICK_MS} ms), or streams (some are refused, lost, or not open in time).`,
  ],
  runs: () => [
    {
      name: 'ceiling',
      args: ['--transport', native ? 'hold' : 'http', '--ping-interval', String(PING_INTERVAL_MS)],
    },
  ],
  trial,
  trialSeconds: (plan) => 5 + (STEPS + 1) * (plan.holdS + 1) + (plan.streams * FACTOR ** STEPS) / RAMP,
  figures: [
    figure('held', 'streams held, all well', 'count'),
    figure('gave', 'streams at which something gave', 'count'),
    figure('usedBytes', 'memory used a stream, both ends, all well', 'bytes'),
    figure('tickP90Ms', 'tick p90, all well', 'ms'),
    figure('latenessMs', 'ping lateness p99, all well', 'ms'),
    figure('idlePercent', 'CPU of the machine that was idle, all well', '%'),
    ...Object.entries(CAUSES).map(([cause, name]) => figure(name, `trials in which ${cause} gave`, 'count')),
  ],
  read: (findings) => {
    const [run] = findings.runs;
    const value = (/** @type {string} */ name) => known(findings, name, run);
    const gave = Object.entries(CAUSES).filter(([, name]) => (findings.of(name, run)?.most ?? 0) > 0);
    const named = gave.map(([cause]) => cause).join(' and ');
    if (!findings.of('held', run))
      return [`Even ${value('gave')} streams were too many here: it was ${named} that gave.`];
    const well = `${value('held')} streams were held with all well`;
    return [
      gave.length > 0
        ? `${well}; at ${value('gave')} it was ${named} that gave.`
        : `${well}, and nothing gave: give more --streams to begin with.`,
    ];
  },
};

/** @typedef {Map<Cause, string>} Given what gave, and how it was seen */

/** @param {import('../lab/experiment.js').Trial} all @returns {Promise<import('../lab/experiment.js').Values>} */
async function trial(all) {
  const { lab, plan, name } = all;
  const machine = readMachine();
  const most = mostStreams(machine, wish());
  const stage = await openStage(all, {
    network: networkOfMany(),
    most: Math.min(Math.max(most, plan.streams), plan.streams * MOST_TIMES),
    ramp: RAMP,
  });
  const recorder = new Recorder(stage.server, stage.load);
  lab.status = () => `[${name}] ${stage.load.text()}`;
  await recorder.during('idle', () => rest('idle', plan.idleS).run(stage));
  const climb = new Climb(stage, recorder, { machine, most });
  try {
    await climb.run(plan.streams);
  } finally {
    leave(all, stage, recorder.spans);
  }
  for (const [cause, how] of climb.given)
    lab.note(`${cause} gave at ${formatCount(climb.gave ?? 0)} streams: ${how}`);
  await closeStage(stage);
  const causes = Object.entries(CAUSES).map(([cause, figure]) => [
    figure,
    climb.given.has(/** @type {Cause} */ (cause)) ? 1 : null,
  ]);
  return { ...climb.well, gave: climb.gave, ...Object.fromEntries(causes) };
}

/** @returns {import('../../limits/index.js').Wish} */
function wish() {
  return {
    streams: 0,
    transport: native ? 'hold' : 'http',
    pingIntervalMs: PING_INTERVAL_MS,
    openRate: RAMP,
    isFleetHere: true,
  };
}

/** @param {import('../../limits/index.js').Finding[]} findings that forbid @returns {Cause} */
function causeOf(findings) {
  if (findings.length > 0 && findings.every(({ name }) => name.startsWith('memory'))) return 'memory';
  return findings.length > 0 && findings.every(({ name }) => name.startsWith('CPU')) ? 'CPU' : 'a limit';
}

/** From target to target. */
class Climb {
  /**
   * @param {import('../lab/steps.js').Stage} stage @param {Recorder} recorder
   * @param {{ machine: import('../../limits/kernel.js').Machine, most: number }} room the machine before the first stream,
   *   and what the tune check lets through on it, which the server is planned for
   */
  constructor(stage, recorder, { machine, most }) {
    this.stage = stage;
    this.recorder = recorder;
    this.machine = machine;
    this.most = most;
    /** @type {import('../lab/experiment.js').Values} */
    this.well = {};
    /** @type {number | null} */
    this.gave = null;
    /** @type {Given} */
    this.given = new Map();
  }

  /** @param {number} first target */
  async run(first) {
    for (let target = first; target <= first * MOST_TIMES; target = Math.round(target * FACTOR)) {
      this.given = this.forbidden(target);
      if (this.given.size === 0) this.given = await this.tryOut(target);
      if (this.given.size === 0) continue;
      this.gave = target;
      return;
    }
  }

  /** What is known to give before it is tried: nobody wants the kernel to look for a victim. @param {number} target @returns {Given} */
  forbidden(target) {
    const { memory } = readMachine();
    const { held, usedBytes } = this.well;
    if (held && usedBytes) {
      const leftBytes = memory.availableBytes - (target - held) * usedBytes;
      if (leftBytes < memory.totalBytes * SPARE) {
        const free = formatBytes(memory.availableBytes);
        return new Map([
          ['memory', `${formatBytes((target - held) * usedBytes)} more would be needed, ${free} are free`],
        ]);
      }
    }
    if (target <= this.most) return new Map();
    const findings = findLimits(this.machine, { ...wish(), streams: target }).filter(
      ({ isForbidding }) => isForbidding,
    );
    const cause = causeOf(findings);
    const why =
      findings.length > 0 ? verdictLine(findings, target).replace(/^limits: /, '') : 'the tune check';
    return new Map([[cause, `not tried, for the tune check lets ${formatCount(this.most)} through: ${why}`]]);
  }

  /** @param {number} target @returns {Promise<Given>} */
  async tryOut(target) {
    const { stage, recorder } = this;
    const [open, held] = [`up ${target}`, `held ${target}`];
    try {
      await recorder.during(open, () => change(stage, target));
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'NOT_OPEN')) throw error;
      return new Map([['streams', error.message]]);
    }
    await recorder.during(held, () => hold(held, stage.plan.holdS).run(stage));
    const found = this.figuresOf(target, held);
    const given = givenBy(found);
    if (given.size === 0) this.well = found.values;
    return given;
  }

  /** @param {number} target @param {string} held */
  figuresOf(target, held) {
    const phases = this.recorder.phases();
    const used =
      (last(held, 'memoryUsedBytes')(phases) ?? 0) - (last('idle', 'memoryUsedBytes')(phases) ?? 0);
    const values = {
      held: target,
      usedBytes: used / target,
      tickP90Ms: median(held, 'tickP90Ms')(phases),
      latenessMs: median(held, 'pingLatenessP99Ms')(phases),
      idlePercent: median(held, 'cpuIdlePercent')(phases),
    };
    const ownPercent = (median(held, 'processCpuPercent')(phases) ?? 0) + phases[held].dronesCpuPercent;
    const refused = max(held, 'refused503')(phases) ?? 0;
    return { values, ownPercent, refused, missing: target - this.stage.load.total().counts.open };
  }
}

/** @param {ReturnType<Climb['figuresOf']>} found @returns {Given} */
function givenBy({ values, ownPercent, refused, missing }) {
  /** @type {Given} */
  const given = new Map();
  const { idlePercent, latenessMs, tickP90Ms } = values;
  const isOurs = ownPercent > availableParallelism() * 50;
  if (idlePercent !== null && idlePercent < IDLE_PERCENT && isOurs)
    given.set(
      'CPU',
      `${idlePercent.toFixed(1)} % of one core was idle, server and clients took ${ownPercent.toFixed(0)} %`,
    );
  if (latenessMs !== null && latenessMs > LATENESS_MS)
    given.set('lateness', `p99 was ${latenessMs.toFixed(0)} ms`);
  if (tickP90Ms !== null && tickP90Ms > TICK_MS) given.set('ticks', `p90 was ${tickP90Ms.toFixed(0)} ms`);
  if (refused > 0) given.set('streams', `${formatCount(refused)} were refused with 503`);
  else if (missing > 0) given.set('streams', `${formatCount(missing)} were not open any more`);
  return given;
}
