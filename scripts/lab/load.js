/*
 * The load of an experiment: drones on this machine, which end with it.
 */
import { availableParallelism } from 'node:os';
import { askAll, askCounts, each, setParams } from '../../fleet/ask.js';
import { merge, mergeCounts } from '../../fleet/merge.js';
import { local } from '../../fleet/on/local.js';
import { defaultFolder } from '../../fleet/on/registry.js';
import { planDrones, spread } from '../../fleet/spread.js';
import { descriptorLimit } from '../../lib/descriptors.js';
import { HoldfastError } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { mergeHistograms } from '../../lib/histogram.js';
import { native } from '../../native/index.js';
import { causesText } from './text.js';

/** Asking a drone costs CPU that its streams need: with more streams everything takes longer, so it is asked less often. */
const POLL_MS_PER_STREAM = 1 / 200;
const LEAST_POLL_MS = 50;
const MOST_POLL_MS = 500;
/** How long the figures of a phase wait for a drone to answer. */
const ALL_MS = 15_000;
/** In addition to three times the time that the ramp should take. */
const PATIENCE_MS = 30_000;

/** @typedef {import('../../fleet/merge.js').Total} Total */
/** @typedef {import('../../fleet/on/local.js').LocalMember} LocalMember */

/**
 * @typedef {object} Aim
 * @property {number} port
 * @property {number} most streams that will be wanted
 * @property {number} ramp streams to open per second, all drones together
 * @property {import('../../fleet/texts.js').Texts} [params] for each drone; with topics, streams are numbered
 * @property {number} [first] number of the first stream; 0 unless another load has those before it
 */

/**
 * @param {import('./lab.js').Lab} lab @param {Aim} aim
 * @returns {Promise<Load>} without streams
 */
export async function startLoad(lab, aim) {
  const place = local({ folder: defaultFolder(), isOwn: true });
  const close = lab.clean.add(() => place.close());
  const { count } = planDrones({
    streams: aim.most,
    ramp: aim.ramp,
    drones: 0,
    isNative: native !== null,
    cores: availableParallelism(),
    descriptorLimit: descriptorLimit(),
  });
  const members = await lab.unlessAborted(place.start(count, {}));
  return new Load({ lab, place, members, aim, close });
}

export class Load {
  /**
   * @param {object} parts
   * @param {import('./lab.js').Lab} parts.lab
   * @param {ReturnType<typeof local>} parts.place
   * @param {import('../../fleet/on/local.js').LocalMember[]} parts.members
   * @param {Aim} parts.aim
   * @param {() => Promise<void>} parts.close
   */
  constructor({ lab, place, members, aim, close }) {
    this.lab = lab;
    this.place = place;
    this.members = members;
    this.aim = aim;
    this.close = close;
    /** Streams that are to be open now, and streams that there are, also when they are away. */
    this.target = 0;
    this.streams = 0;
    /** The last answer of each. @type {(import('../../fleet/ask.js').Stats | null)[]} */
    this.answers = members.map(() => null);
    /** Names of those that did not answer the last time. @type {string[]} */
    this.late = [];
    /** The last counts of each, which are asked for more often. @type {import('../../fleet/ask.js').Counts[]} */
    this.counts = [];
  }

  /** @param {number} streams wanted from now on */
  async set(streams) {
    const { port, ramp, params, first = 0 } = this.aim;
    const [shares, ramps] = [spread(streams, this.members.length), spread(ramp, this.members.length)];
    this.target = streams;
    this.streams = streams;
    await this.lab.unlessAborted(
      each(this.members, (member, i) =>
        setParams(member, {
          port: String(port),
          ...params,
          n: String(shares[i]),
          ramp: String(Math.max(1, ramps[i])),
          // Drones take turns, so that the numbers of all streams are 0, 1, 2, …
          ...(params?.topic ? { first: String(first + i), step: String(this.members.length) } : {}),
        }),
      ),
    );
  }

  /** Cuts all streams off, and keeps them away until they may come back. @param {boolean} isAway */
  async keepAway(isAway) {
    const shares = spread(this.streams, this.members.length);
    this.target = isAway ? 0 : this.streams;
    await this.lab.unlessAborted(
      each(this.members, (member, i) => setParams(member, { away: isAway ? String(shares[i]) : '0' })),
    );
  }

  /** @returns {Promise<Total>} with the last answer of a drone that is late */
  async poll() {
    const answers = await this.lab.unlessAborted(askAll(this.members));
    this.late = answers.flatMap(({ member, stats }) => (stats ? [] : [member.name]));
    for (const [i, { member, stats }] of answers.entries()) {
      if (stats) {
        this.answers[i] = stats;
        this.counts[i] = stats.counts;
      } else this.checkAlive(member);
    }
    return this.total();
  }

  /** @returns {Promise<Total>} once each drone has answered; if one takes too long, the report says so */
  async pollAll() {
    const endMs = Date.now() + ALL_MS;
    for (;;) {
      const total = await this.poll();
      if (this.late.length === 0) return total;
      if (Date.now() > endMs) {
        this.lab.note(
          `drone ${this.late.join(', ')} did not answer for ${ALL_MS / 1000} s, so its figures are older`,
        );
        return total;
      }
    }
  }

  /** @returns {Promise<import('../../fleet/ask.js').Counts>} the counts alone, which is cheaper */
  async pollCounts() {
    const ask = async (/** @type {LocalMember} */ member, /** @type {number} */ i) => {
      const counts = await askCounts(member).catch(() => null);
      if (counts) this.counts[i] = counts;
      else this.checkAlive(member);
    };
    await this.lab.unlessAborted(Promise.all(this.members.map(ask)));
    return mergeCounts(this.counts.filter(Boolean));
  }

  /** @param {import('../../fleet/ask.js').Member} member @throws {HoldfastError} NO_DRONE if it has ended */
  checkAlive(member) {
    if (this.place.hasEnded(member)) throw new HoldfastError('NO_DRONE', `drone ${member.name} has died`);
  }

  /** @returns {Total} from the last answers */
  total() {
    return merge(this.answers.filter((stats) => stats !== null));
  }

  /** @param {import('../../fleet/drone/counters.js').Measure} name @returns {import('../../lib/histogram.js').Histogram} since the drones started */
  measured(name) {
    return mergeHistograms(this.answers.flatMap((stats) => (stats ? [stats.histograms[name]] : [])));
  }

  /** @returns {import('../../lib/histogram.js').Histogram} lateness of all pings since the drones started */
  lateness() {
    return this.measured('lateness');
  }

  /**
   * @param {number} [withinMs]
   * @returns {Promise<Total>} once there are as many streams as wanted
   * @throws {HoldfastError} NOT_OPEN
   */
  async untilThere(withinMs = PATIENCE_MS + (3000 * this.target) / this.aim.ramp) {
    const endMs = Date.now() + withinMs;
    const pollMs = Math.min(Math.max(this.aim.most * POLL_MS_PER_STREAM, LEAST_POLL_MS), MOST_POLL_MS);
    for (;;) {
      const { open, inFlight, failed, lost } = await this.pollCounts();
      if (open === this.target && inFlight === 0) return this.poll();
      if (Date.now() > endMs) {
        const why = causesText({ failed, lost });
        const line = `${formatCount(open)} of ${formatCount(this.target)} streams were open after ${formatCount(withinMs / 1000)} s`;
        throw new HoldfastError('NOT_OPEN', why ? `${line}: ${why}` : line);
      }
      await this.lab.sleep(pollMs);
    }
  }

  /** @returns {number[]} */
  pids() {
    return this.members.map(({ pid }) => pid);
  }

  /** @returns {string} for the progress line */
  text() {
    return `${formatCount(mergeCounts(this.counts.filter(Boolean)).open)} of ${formatCount(this.target)} streams`;
  }
}
