/*
 * How many streams: the target rises until something reaches its limit.
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
import { known } from '../lab/text.js';
import { closeStage, describe, openStage } from '../lab/trial.js';

const FACTOR = 1.5;
/** It stops there even if no limit was reached. */
const MOST_TIMES = 200;
const RAMP = 10_000;
const PING_INTERVAL_MS = 20_000;
const LATENESS_MS = 500;
const TICK_MS = 50;
const IDLE_PERCENT = 5;
/** This share of the machine's memory stays free. */
const SPARE = 0.1;
const STEPS = 12;

/** @typedef {'CPU' | 'memory' | 'another limit' | 'lateness' | 'ticks' | 'streams'} Cause */
/** @type {Record<Cause, string>} the names of their figures */
const CAUSES = {
  CPU: 'cpu',
  memory: 'memory',
  'another limit': 'limit',
  lateness: 'lateness',
  ticks: 'ticks',
  streams: 'streams',
};

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How many streams can this machine hold, clients included, and what is the limit?',
  usual: { holdS: 10, repeats: 1 },
  hasOwnNetwork: true,
  how: [
    `The target starts at the given number of streams and rises by half each time. Streams are pinged every ${PING_INTERVAL_MS / 1000} s; ${formatCount(RAMP)} open per second.`,
    `The limit can be CPU (less than ${IDLE_PERCENT} % idle, most of it used by us), memory (the next step would leave less than ${SPARE * 100} % free, or the tune check forbids it), another limit that the tune check knows, lateness (p99 above ${LATENESS_MS} ms in the server),`,
    `ticks (p90 above ${TICK_MS} ms), or streams (some are refused, lost, or do not open in time).`,
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
    figure('held', 'streams held without problems', 'count'),
    figure('limitAt', 'streams at which a limit was reached', 'count'),
    figure('usedBytes', 'memory per stream, both ends, before the limit', 'bytes'),
    figure('tickP90Ms', 'tick p90, before the limit', 'ms'),
    figure('latenessMs', 'ping lateness p99, before the limit', 'ms'),
    figure('idlePercent', 'idle CPU of the machine, before the limit', '%'),
    ...Object.entries(CAUSES).map(([cause, name]) =>
      figure(
        name,
        `trials in which ${cause} ${cause === 'ticks' || cause === 'streams' ? 'were' : 'was'} the limit`,
        'count',
      ),
    ),
  ],
  read: (findings) => {
    const [run] = findings.runs;
    const value = (/** @type {string} */ name) => known(findings, name, run);
    const causes = Object.entries(CAUSES).filter(([, name]) => (findings.of(name, run)?.most ?? 0) > 0);
    const named = causes.map(([cause]) => cause).join(' and ');
    if (!findings.of('held', run))
      return [`Even ${value('limitAt')} streams were too many here: the limit was ${named}.`];
    const well = `${value('held')} streams were held without problems`;
    return [
      causes.length > 0
        ? `${well}; at ${value('limitAt')} the limit was ${named}.`
        : `${well}, and no limit was reached: start with more --streams.`,
    ];
  },
};

/** @typedef {Map<Cause, string>} Reached the limits that were reached, and how that showed */

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
    describe(all, stage, recorder.spans);
  }
  for (const [cause, how] of climb.reached)
    lab.note(`limit at ${formatCount(climb.limitAt ?? 0)} streams: ${cause} (${how})`);
  await closeStage(stage);
  const causes = Object.entries(CAUSES).map(([cause, figure]) => [
    figure,
    climb.reached.has(/** @type {Cause} */ (cause)) ? 1 : null,
  ]);
  return { ...climb.good, limitAt: climb.limitAt, ...Object.fromEntries(causes) };
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

/** @param {import('../../limits/index.js').Finding[]} findings what forbids so many streams @returns {Cause} */
function causeOf(findings) {
  if (findings.length > 0 && findings.every(({ name }) => name.startsWith('memory'))) return 'memory';
  return findings.length > 0 && findings.every(({ name }) => name.startsWith('CPU'))
    ? 'CPU'
    : 'another limit';
}

/** Climbs from target to target. */
class Climb {
  /**
   * @param {import('../lab/steps.js').Stage} stage @param {Recorder} recorder
   * @param {{ machine: import('../../limits/kernel.js').Machine, most: number }} room the machine before the first stream,
   *   and how many streams the tune check allows on it
   */
  constructor(stage, recorder, { machine, most }) {
    this.stage = stage;
    this.recorder = recorder;
    this.machine = machine;
    this.most = most;
    /** @type {import('../lab/experiment.js').Values} */
    this.good = {};
    /** The target at which a limit was reached. @type {number | null} */
    this.limitAt = null;
    /** @type {Reached} */
    this.reached = new Map();
  }

  /** @param {number} first target */
  async run(first) {
    for (let target = first; target <= first * MOST_TIMES; target = Math.round(target * FACTOR)) {
      this.reached = this.forbidden(target);
      if (this.reached.size === 0) this.reached = await this.tryOut(target);
      if (this.reached.size === 0) continue;
      this.limitAt = target;
      return;
    }
  }

  /** Limits known in advance: nobody wants to wake the kernel's out-of-memory killer. @param {number} target @returns {Reached} */
  forbidden(target) {
    const { memory } = readMachine();
    const { held, usedBytes } = this.good;
    if (held && usedBytes) {
      const leftBytes = memory.availableBytes - (target - held) * usedBytes;
      if (leftBytes < memory.totalBytes * SPARE) {
        const free = formatBytes(memory.availableBytes);
        return new Map([
          ['memory', `it would need ${formatBytes((target - held) * usedBytes)} more, and ${free} are free`],
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
    return new Map([[cause, `not tried: the tune check allows ${formatCount(this.most)}; ${why}`]]);
  }

  /** @param {number} target @returns {Promise<Reached>} */
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
    const reached = reachedBy(found);
    if (reached.size === 0) this.good = found.values;
    return reached;
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

/** @param {ReturnType<Climb['figuresOf']>} found @returns {Reached} */
function reachedBy({ values, ownPercent, refused, missing }) {
  /** @type {Reached} */
  const reached = new Map();
  const { idlePercent, latenessMs, tickP90Ms } = values;
  const isOurs = ownPercent > availableParallelism() * 50;
  if (idlePercent !== null && idlePercent < IDLE_PERCENT && isOurs)
    reached.set(
      'CPU',
      `${idlePercent.toFixed(1)} % of one core was idle, server and clients used ${ownPercent.toFixed(0)} %`,
    );
  if (latenessMs !== null && latenessMs > LATENESS_MS)
    reached.set('lateness', `p99 was ${latenessMs.toFixed(0)} ms`);
  if (tickP90Ms !== null && tickP90Ms > TICK_MS) reached.set('ticks', `p90 was ${tickP90Ms.toFixed(0)} ms`);
  if (refused > 0) reached.set('streams', `${formatCount(refused)} were refused with 503`);
  else if (missing > 0) reached.set('streams', `${formatCount(missing)} were no longer open`);
  return reached;
}
