/*
 * The drones of one load. Each has a slot: its share of the streams. When a drone dies its final stats are kept, its
 * streams count as lost, and another drone takes over its slot.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { descriptorLimit } from '../lib/descriptors.js';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { formatCount, formatNoun } from '../lib/format.js';
import { native } from '../native/index.js';
import { askAll, each, setParams } from './ask.js';
import { DRONE_DIED, merge, noGauges } from './merge.js';
import { dronesText } from './show/table.js';
import { planDrones, spread } from './spread.js';

const ANSWER_MS = 1000;
const POLL_MS = 1000;
const RETRY_MS = 2000;
/** An instance in the cloud takes minutes to boot. */
const START_MS = 600_000;

/** @typedef {import('./ask.js').Member} Member */
/** @typedef {import('./ask.js').Stats} Stats */

/**
 * @typedef {object} Slot
 * @property {Member} member
 * @property {import('./texts.js').Texts} params its share included
 * @property {Stats | null} last its last answer
 * @property {boolean} isLate
 * @property {boolean} isEmpty its drone has died, and the next one is being started
 */

/** The drones together, as far as is known. @typedef {import('./merge.js').Total & { late: number, died: number }} Summary */

/**
 * @typedef {object} Wanted
 * @property {number} streams of all drones together; 0 to leave them idle
 * @property {number | ''} ramp of all drones together
 * @property {number} churn likewise
 * @property {number} drones 0 for as many as needed
 * @property {import('./texts.js').Texts} params for each
 */

export class Crew {
  /**
   * @param {import('./places.js').Place} place
   * @param {import('./places.js').Kind} kind of the place
   * @param {Wanted} wanted
   * @param {(line: string) => void} say
   */
  constructor(place, kind, wanted, say) {
    this.place = place;
    this.kind = kind;
    this.wanted = wanted;
    this.say = say;
    /** @type {Slot[]} */
    this.slots = [];
    /** Of drones that have died. @type {Stats[]} */
    this.finalStats = [];
    /** Requests to drones that have no answer yet. @type {Promise<unknown>} */
    this.pending = Promise.resolve();
    this.isClosed = false;
    this.started = 0;
  }

  /** Starts the drones, idle. @returns {Promise<void>} @throws {HoldfastError} */
  start() {
    const started = this.startAll();
    this.track(started);
    return started;
  }

  async startAll() {
    const { count, why } = await this.plan();
    if (count === 0) throw new HoldfastError('NO_DRONES', 'there is no drone to give the streams to');
    if (why) this.say(`${dronesText(count)}: ${why}`);
    const started = await this.place.start(count, {});
    this.started = started.length;
    const members = await this.untilAllAnswer(started);
    await this.addMissing(members);
    this.slots = members.map((member) => ({ member, params: {}, last: null, isLate: false, isEmpty: false }));
  }

  /** @returns {Promise<{ count: number, why: string }>} */
  async plan() {
    const { kind } = this;
    const { streams, ramp, drones, params } = this.wanted;
    if (kind === 'hosts') {
      const listed = (await this.place.list()).length;
      return { count: drones || listed, why: drones ? `out of ${listed} in the file` : 'all in the file' };
    }
    if (kind === 'ec2') {
      (await import('./on/ec2/options.js')).checkParams({ ...params, n: '1' });
      return { count: drones || 1, why: drones ? '' : 'the default without --drones' };
    }
    return planDrones({
      streams,
      ramp: Number(ramp),
      drones,
      isNative: native !== null,
      cores: availableParallelism(),
      descriptorLimit: descriptorLimit(),
    });
  }

  /** @param {Member[]} members @returns {Promise<Member[]>} with the addresses they have by then */
  async untilAllAnswer(members) {
    const endMs = Date.now() + START_MS;
    for (;;) {
      const missing = (await askAll(members)).filter(({ stats }) => stats === null);
      if (missing.length === 0) return members;
      const [{ member, problem }] = missing;
      if (this.isClosed || Date.now() > endMs)
        throw new HoldfastError('NO_DRONE', `drone ${member.name} does not answer (${problem})`);
      await after(POLL_MS);
      const known = await this.place.list();
      members = members.map((one) => known.find(({ name }) => name === one.name) ?? one);
    }
  }

  /**
   * Starts more if each can hold fewer streams than planned, for example without its own descriptor tables.
   * @param {Member[]} members
   */
  async addMissing(members) {
    const { kind } = this;
    const { streams, drones } = this.wanted;
    const most = Math.min(...(await askAll(members)).map(({ stats }) => stats?.drone.most ?? 0));
    const needed = Math.ceil(streams / Math.max(1, most));
    if (needed <= members.length) return;
    if (kind !== 'local' || drones > 0) {
      const line = `${dronesText(members.length)} can hold ${formatNoun(most, 'stream')} each, too few for ${formatCount(streams)}: use ${formatNoun(needed, 'drone')}`;
      throw new HoldfastError('FEW_DRONES', line);
    }
    this.say(`${dronesText(needed - members.length)} more: each can hold ${formatNoun(most, 'stream')} here`);
    members.push(...(await this.place.start(needed - members.length, {})));
  }

  /** @param {number} count of drones @returns {import('./texts.js').Texts} for each of them, if all get the same */
  evenParams(count) {
    const { streams, ramp, churn, params } = this.wanted;
    const share = (/** @type {number} */ n) => String(Math.ceil(n / count));
    const rates = {
      ...(ramp === '' ? {} : { ramp: share(ramp) }),
      ...(churn ? { churn: share(churn) } : {}),
    };
    return { ...params, n: share(streams), ...rates };
  }

  /** Gives each drone its share. @throws {HoldfastError} with the first refusal */
  aim() {
    const { streams, ramp, churn, params } = this.wanted;
    const count = this.slots.length;
    const shares = spread(streams, count);
    const ramps = ramp === '' ? null : spread(ramp, count);
    const churns = spread(churn, count);
    for (const [i, slot] of this.slots.entries()) {
      slot.params = {
        ...params,
        n: String(shares[i]),
        ...(ramps ? { ramp: String(Math.max(1, ramps[i])) } : {}),
        ...(churn ? { churn: String(churns[i]) } : {}),
        // Drones take turns, so that the numbers of all streams are 0, 1, 2, …
        ...(params.topic ? { first: String(i), step: String(count) } : {}),
      };
    }
    const told = each(
      this.slots.map(({ member }) => member),
      (member, i) => setParams(member, this.slots[i].params),
    );
    this.track(told);
    return told;
  }

  /** No more streams are closed on purpose. @returns {Promise<void>} */
  async settle() {
    if (this.wanted.churn === 0) return;
    for (const slot of this.slots) slot.params = { ...slot.params, churn: '0' };
    const filled = this.slots.filter(({ isEmpty }) => !isEmpty);
    // One that has died is noticed elsewhere.
    await Promise.allSettled(filled.map(({ member }) => setParams(member, { churn: '0' })));
  }

  /** @returns {Promise<Summary>} the current one; a late drone counts with its last answer */
  async poll() {
    const filled = this.slots.filter(({ isEmpty }) => !isEmpty);
    const answers = await askAll(
      filled.map(({ member }) => member),
      ANSWER_MS,
    );
    for (const [i, slot] of filled.entries()) this.note(slot, answers[i]);
    const alive = this.slots.flatMap(({ last }) => last ?? []);
    const late = this.slots.filter(({ isLate }) => isLate).length;
    const { finalStats } = this;
    return { ...merge([...alive, ...finalStats]), drones: alive.length, late, died: finalStats.length };
  }

  /** @param {Slot} slot @param {import('./ask.js').Answer} answer */
  note(slot, { member, stats, problem }) {
    if (this.isClosed) return;
    slot.isLate = stats === null;
    if (stats && slot.last && stats.drone.pid !== slot.last.drone.pid) {
      this.retire(slot, 'was restarted');
      this.replace(slot, async () => member);
    } else if (stats) slot.last = stats;
    else if (problem !== 'late' && this.place.hasEnded?.(member)) {
      this.retire(slot, 'died');
      this.replace(slot, async () => (await this.place.start(1, {}))[0]);
    }
  }

  /** Keeps the final stats of a drone whose streams were lost. @param {Slot} slot @param {string} how */
  retire(slot, how) {
    const lost = formatNoun(slot.last?.counts.open ?? 0, 'stream');
    this.say(`drone ${slot.member.name} ${how}: ${lost} lost; another drone takes over`);
    if (slot.last) this.finalStats.push(finalStatsOf(slot.last));
    slot.last = null;
  }

  /** @param {Slot} slot @param {() => Promise<Member>} find the drone that takes over */
  replace(slot, find) {
    slot.isEmpty = true;
    this.track(this.fill(slot, find));
  }

  /** Tries until it succeeds or is no longer needed. @param {Slot} slot @param {() => Promise<Member>} find */
  async fill(slot, find) {
    while (slot.isEmpty && !this.isClosed) {
      try {
        slot.member = await find();
        await setParams(slot.member, slot.params);
        slot.isEmpty = false;
      } catch (error) {
        if (this.isClosed) return;
        this.say(`no replacement drone yet: ${messageOf(error)}; trying again`);
        await after(RETRY_MS);
      }
    }
  }

  /** @param {Promise<unknown>} promise */
  track(promise) {
    this.pending = Promise.allSettled([this.pending, promise]);
  }

  /** Ends the drones that must not outlive the command. */
  async close() {
    this.isClosed = true;
    if (this.kind === 'ec2') await this.endInstances();
    await this.place.close(this.pending);
  }

  /** Instances cost money as long as they exist. `stop` ends the newest first, which are those of this run. */
  async endInstances() {
    await this.pending;
    if (this.started === 0) return;
    this.say(`ending ${formatNoun(this.started, 'instance')}`);
    const ended = await this.place.stop(this.started);
    this.say(`${formatNoun(ended, 'instance')} ended`);
  }
}

/** @param {Stats} last @returns {Stats} with its open streams counted as lost, and without gauges */
function finalStatsOf(last) {
  const { counts } = last;
  const lost = { ...counts.lost, [DRONE_DIED]: counts.open };
  const servers = last.servers?.map((one) => ({ ...one, open: 0, lost: one.lost + one.open }));
  return { ...last, servers, counts: { ...counts, ...noGauges(), lost } };
}
