/*
 * Climbs from one number of streams to the next until something reaches its limit, or would with the next step. Then it goes back
 * to the last number that was well, and holds that for long, or fewer if something reaches its limit meanwhile.
 */
import { availableParallelism } from 'node:os';
import { sumOf } from '../../../fleet/drone/causes.js';
import { formatBytes, formatCount, formatMs } from '../../../lib/format.js';
import { findLimits, verdictLine } from '../../../limits/index.js';
import { max, median } from '../phases.js';
import { hold } from '../steps.js';
import { causesText } from '../text.js';
import { look, untilOnTime } from './everyone.js';
import { DANGER, fewer, nextTarget, readMemory, roomIn, SPARE } from './room.js';

const POLL_MS = 250;
/** Streams that are opened before somebody looks whether pings are on time, in seconds of the ramp. */
const BATCH_S = 2;
/** How long that may take, and for how many ping intervals pings may be late afterwards. */
const PATIENCE_MS = 60_000;
const MOST_INTERVALS = 6;
const LATENESS_MS = 200;
const TICK_MS = 50;
const IDLE_PERCENT = 5;
/** How many numbers are held for long. If none of them is well, the machine is probably busy with something else. */
const MOST_LONG = 3;

/** @typedef {'CPU' | 'memory' | 'another limit' | 'lateness' | 'ticks' | 'streams'} Cause */

/** What also shows when the machine stands still for a moment: then a number is tried out again. @type {Set<Cause>} */
const MOMENTARY = new Set(['CPU', 'lateness', 'ticks']);

/** @typedef {Map<Cause, string>} Reached the limits that were reached, and how that showed */
/** @typedef {import('./stage.js').Watch} Watch */

/**
 * @typedef {object} Way
 * @property {number} first number of streams
 * @property {number} most 0 for as many as fit
 * @property {number} stepS how long each number is held
 * @property {number} pingIntervalMs
 * @property {import('../../../limits/kernel.js').Machine} machine before the first stream
 * @property {import('../../../limits/index.js').Wish} wish
 */

export class Climb {
  /** @param {Watch} watch @param {Way} way */
  constructor(watch, way) {
    this.watch = watch;
    this.stage = watch.stage;
    this.way = way;
    this.idle = readMemory();
    /** How many streams are to stay open: the last number that was well, or fewer. */
    this.held = 0;
    /** The number at which a limit was reached, or would be. @type {number | null} */
    this.limitAt = null;
    /** @type {Reached} */
    this.reached = new Map();
    /** The phase that ended last. */
    this.last = '';
  }

  /** Leaves `held` streams open. */
  async run() {
    for (let target = this.way.first; ; ) {
      const reached = await this.tryOut(target);
      if (reached.size > 0) return this.goBack(target, reached);
      this.held = target;
      const next = nextTarget(target, this.room().fits, this.way.most);
      if (next === null) return;
      const forbidden = this.forbidden(next);
      if (forbidden.size > 0) return this.noteLimit(next, forbidden);
      target = next;
    }
  }

  /**
   * Holds for long what was well for a moment, or fewer if that turns out to be too many.
   * @param {string} phase of the last of them @param {number} holdS
   */
  async keep(phase, holdS) {
    for (let more = MOST_LONG - 1; ; more--) {
      const late = await this.untilOnTime();
      const reached = late.size > 0 && more > 0 ? late : await this.holdLong(phase, holdS);
      if (reached.size === 0 || more === 0) return;
      const tooMany = this.held;
      this.held = fewer(tooMany);
      await this.goBack(tooMany, reached);
    }
  }

  /** @param {string} phase @param {number} holdS @returns {Promise<Reached>} */
  async holdLong(phase, holdS) {
    const { stage, watch } = this;
    const lost = sumOf(stage.load.total().counts.lost);
    await watch.duringWatched(phase, () => hold(phase, holdS).run(stage));
    return reachedIn(watch.recorder.phases(), phase, { target: this.held, lost });
  }

  /** @param {number} target @param {Reached} reached */
  noteLimit(target, reached) {
    this.limitAt = target;
    this.reached = reached;
    for (const [cause, how] of reached)
      this.stage.lab.note(`limit at ${formatCount(target)} streams: ${cause} (${how})`);
  }

  room() {
    return roomIn(this.idle, readMemory(), this.held);
  }

  /** Limits known in advance: nobody wants to wake the kernel's out-of-memory killer. @param {number} target @returns {Reached} */
  forbidden(target) {
    const { machine, wish } = this.way;
    const { fits, freeBytes, streamBytes, what } = this.room();
    if (target > fits && what === 'memory') {
      const [more, free] = [(target - this.held) * streamBytes, freeBytes].map(formatBytes);
      return new Map([
        ['memory', `it would need ${more} more; ${free} are free, and ${SPARE * 100} % stay so`],
      ]);
    }
    if (target > fits)
      return new Map([['another limit', 'the socket buffers would need more than net.ipv4.tcp_mem']]);
    // What memory is needed has been measured.
    const others = findLimits(machine, { ...wish, streams: target }).filter(
      ({ name, isForbidding }) => isForbidding && !name.startsWith('memory'),
    );
    if (others.length === 0) return new Map();
    const isCpu = others.every(({ name }) => name.startsWith('CPU'));
    return new Map([[isCpu ? 'CPU' : 'another limit', verdictLine(others, target).replace(/^limits: /, '')]]);
  }

  /** @param {number} target @returns {Promise<Reached>} */
  async tryOut(target) {
    const lost = sumOf(this.stage.load.total().counts.lost);
    /** @type {Reached} */
    let stopped = new Map();
    await this.during(`up ${target}`, async () => {
      stopped = await this.rise(target);
    });
    if (stopped.size > 0) return stopped;
    const held = `held ${target}`;
    const reached = await this.tryHolding(held, { target, lost });
    if (reached.size === 0 || ![...reached.keys()].every((cause) => MOMENTARY.has(cause))) return reached;
    const why = Array.from(reached, ([cause, how]) => `${cause} (${how})`).join(', ');
    this.stage.lab.note(`${formatCount(target)} streams were tried out again: ${why}`);
    if ((await this.untilOnTime()).size > 0) return reached;
    return this.tryHolding(`${held} again`, { target, lost });
  }

  /** @param {string} held the phase @param {{ target: number, lost: number }} expected @returns {Promise<Reached>} */
  async tryHolding(held, expected) {
    const { watch, stage, way } = this;
    await this.during(held, () => hold(held, way.stepS).run(stage));
    return reachedIn(watch.recorder.phases(), held, expected);
  }

  /** Waits until pings are on time, but not forever. @returns {Promise<Reached>} that they are not */
  async untilOnTime() {
    const { lab, load } = this.stage;
    const withinMs = MOST_INTERVALS * this.way.pingIntervalMs;
    const { isOnTime } = await untilOnTime(lab, load, await look(load), withinMs);
    if (isOnTime) return new Map();
    const count = formatCount(load.target);
    return new Map([['lateness', `with ${count} streams, pings were late for ${withinMs / 1000} s`]]);
  }

  /** @param {string} phase @param {() => Promise<unknown>} act */
  async during(phase, act) {
    await this.watch.during(phase, act);
    this.last = phase;
  }

  /**
   * Opens streams, and keeps an eye on the memory. Opening one costs as much as many pings, so more are opened only once pings are on time
   * again: what is to be found is how many can be held, not how many can be opened at the same time.
   * @param {number} target @returns {Promise<Reached>}
   */
  async rise(target) {
    const { load } = this.stage;
    while (load.target < target) {
      await load.set(Math.min(target, load.target + BATCH_S * load.aim.ramp));
      const stopped = await this.untilOpen();
      if (stopped.size > 0) return stopped;
      const late = await this.untilOnTime();
      if (late.size > 0) return late;
    }
    return new Map();
  }

  /** @returns {Promise<Reached>} what prevents it */
  async untilOpen() {
    const { lab, load, server } = this.stage;
    const endMs = Date.now() + PATIENCE_MS;
    for (;;) {
      server.check();
      const { open, inFlight, failed, lost } = await load.pollCounts();
      if (open === load.target && inFlight === 0) return new Map();
      const { freeBytes } = this.room();
      if (freeBytes < this.idle.totalBytes * DANGER)
        return new Map([
          ['memory', `only ${formatBytes(freeBytes)} were free when ${formatCount(open)} were open`],
        ]);
      if (Date.now() > endMs) {
        const why = causesText({ failed, lost });
        return new Map([['streams', `${formatCount(open)} opened in time${why ? `: ${why}` : ''}`]]);
      }
      await lab.sleep(POLL_MS);
    }
  }

  /** Closes what was too much. @param {number} target @param {Reached} reached */
  async goBack(target, reached) {
    const { load } = this.stage;
    this.noteLimit(target, reached);
    await this.during('back', async () => {
      await load.set(this.held);
      await load.untilThere();
      await this.untilOnTime();
    });
  }
}

/**
 * @param {import('../phases.js').Phases} phases @param {string} held the phase
 * @param {{ target: number, lost: number }} expected streams, and how many were lost before
 * @returns {Reached}
 */
export function reachedIn(phases, held, { target, lost }) {
  /** @type {Reached} */
  const reached = new Map();
  const { serverCpuPercent, dronesCpuPercent, latenessMs, load } = phases[held];
  const idlePercent = median(held, 'cpuIdlePercent')(phases);
  const ownPercent = serverCpuPercent + dronesCpuPercent;
  if (idlePercent !== null && idlePercent < IDLE_PERCENT && ownPercent > availableParallelism() * 50)
    reached.set(
      'CPU',
      `${idlePercent.toFixed(1)} % of one core was idle, server and clients used ${ownPercent.toFixed(0)} %`,
    );
  if (latenessMs.count > 0 && latenessMs.p99 > LATENESS_MS)
    reached.set('lateness', `p99 was ${formatMs(latenessMs.p99)} ms`);
  const tickMs = median(held, 'tickP90Ms')(phases);
  if (tickMs !== null && tickMs > TICK_MS) reached.set('ticks', `p90 was ${formatMs(tickMs)} ms`);
  const refused = max(held, 'refused503')(phases) ?? 0;
  const gone = sumOf(load.counts.lost) - lost;
  const missing = target - load.counts.open;
  if (refused > 0) reached.set('streams', `${formatCount(refused)} were refused with 503`);
  else if (gone > 0) reached.set('streams', `${formatCount(gone)} were lost`);
  else if (missing > 0) reached.set('streams', `${formatCount(missing)} were not open`);
  return reached;
}
