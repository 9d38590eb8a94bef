/*
 * The drones of one load: each has a post, which is its share of the streams. Who dies is mourned (what it had counted
 * stays, its streams are lost) and another takes its post.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { descriptorLimit } from '../lib/descriptors.js';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { formatCount } from '../lib/format.js';
import { native } from '../native/index.js';
import { askAll, each, setParams } from './ask.js';
import { DRONE_DIED, merge } from './merge.js';
import { dronesText } from './show/table.js';
import { planDrones, spread } from './spread.js';

const ANSWER_MS = 1000;
const POLL_MS = 1000;
const RETRY_MS = 2000;
/** An instance in the cloud takes minutes to boot. */
const ARRIVAL_MS = 600_000;

/** @typedef {import('./ask.js').Member} Member */
/** @typedef {import('./ask.js').Stats} Stats */

/**
 * @typedef {object} Post
 * @property {Member} member
 * @property {Record<string, string>} params its share with them
 * @property {Stats | null} last what it said last
 * @property {boolean} isLate
 * @property {boolean} isEmpty its drone has died, and another is on its way
 */

/** @typedef {import('./merge.js').Total & { late: number, died: number }} Roll */

/**
 * @typedef {object} Wish
 * @property {number} streams of all drones together; 0 leaves them idle
 * @property {number | ''} ramp of all drones together
 * @property {number} drones 0 for as many as it takes
 * @property {Record<string, string>} params for each
 */

export class Crew {
  /**
   * @param {import('./places.js').Place} place
   * @param {import('./places.js').Kind} kind of it
   * @param {Wish} wish
   * @param {(line: string) => void} say
   */
  constructor(place, kind, wish, say) {
    this.place = place;
    this.kind = kind;
    this.wish = wish;
    this.say = say;
    /** @type {Post[]} */
    this.posts = [];
    /** @type {Stats[]} */
    this.dead = [];
    /** What is on its way to the drones. @type {Promise<unknown>} */
    this.pending = Promise.resolve();
    this.isClosed = false;
    this.started = 0;
  }

  /** Starts them, idle. @returns {Promise<void>} @throws {HoldfastError} */
  start() {
    const started = this.man();
    this.track(started);
    return started;
  }

  async man() {
    const { count, why } = await this.plan();
    if (count === 0) throw new HoldfastError('NO_DRONES', 'there is no drone to give streams to');
    if (why) this.say(`${dronesText(count)}: ${why}`);
    const started = await this.place.start(count, {});
    this.started = started.length;
    const members = await this.arrived(started);
    await this.fit(members);
    this.posts = members.map((member) => ({ member, params: {}, last: null, isLate: false, isEmpty: false }));
  }

  /** @returns {Promise<{ count: number, why: string }>} */
  async plan() {
    const { kind } = this;
    const { streams, ramp, drones, params } = this.wish;
    if (kind === 'hosts') {
      const there = (await this.place.list()).length;
      return { count: drones || there, why: drones ? `of ${there} in the file` : 'all of the file' };
    }
    if (kind === 'ec2') {
      (await import('./on/ec2/options.js')).checkParams({ ...params, n: '1' });
      return { count: drones || 1, why: drones ? '' : 'no number was given' };
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

  /** @param {Member[]} members @returns {Promise<Member[]>} the same, once all of them answer */
  async arrived(members) {
    const endMs = Date.now() + ARRIVAL_MS;
    for (;;) {
      const missing = (await askAll(members)).filter(({ stats }) => stats === null);
      if (missing.length === 0) return members;
      const [{ member, problem }] = missing;
      if (this.isClosed || Date.now() > endMs)
        throw new HoldfastError('NO_DRONE', `drone ${member.name} does not answer: it is ${problem}`);
      await after(POLL_MS);
      const known = await this.place.list();
      members = members.map((one) => known.find(({ name }) => name === one.name) ?? one);
    }
  }

  /**
   * More of them where they hold less than was thought: without tables of descriptors of their own, say.
   * @param {Member[]} members
   */
  async fit(members) {
    const { kind } = this;
    const { streams, drones } = this.wish;
    const most = Math.min(...(await askAll(members)).map(({ stats }) => stats?.drone.most ?? 0));
    const needed = Math.ceil(streams / Math.max(1, most));
    if (needed <= members.length) return;
    if (kind !== 'local' || drones > 0) {
      const line = `${dronesText(members.length)} hold ${formatCount(most)} streams each, ${formatCount(streams)} are wanted: it takes ${needed} drones`;
      throw new HoldfastError('FEW_DRONES', line);
    }
    this.say(`${dronesText(needed - members.length)} more: each holds ${formatCount(most)} streams here`);
    members.push(...(await this.place.start(needed - members.length, {})));
  }

  /** @param {number} count of drones @returns {Record<string, string>} for each of them, where all are told the same */
  evenParams(count) {
    const { streams, ramp, params } = this.wish;
    const share = (/** @type {number} */ n) => String(Math.ceil(n / count));
    return { ...params, n: share(streams), ...(ramp === '' ? {} : { ramp: share(ramp) }) };
  }

  /** Gives each its share. @throws {HoldfastError} what the first says that refuses */
  aim() {
    const { streams, ramp, params } = this.wish;
    const shares = spread(streams, this.posts.length);
    const ramps = ramp === '' ? null : spread(ramp, this.posts.length);
    for (const [i, post] of this.posts.entries()) {
      post.params = {
        ...params,
        n: String(shares[i]),
        ...(ramps ? { ramp: String(Math.max(1, ramps[i])) } : {}),
      };
    }
    const told = each(
      this.posts.map(({ member }) => member),
      (member, i) => setParams(member, this.posts[i].params),
    );
    this.track(told);
    return told;
  }

  /** @returns {Promise<Roll>} all that is known now: of who is late, what it said last */
  async poll() {
    const manned = this.posts.filter(({ isEmpty }) => !isEmpty);
    const answers = await askAll(
      manned.map(({ member }) => member),
      ANSWER_MS,
    );
    for (const [i, post] of manned.entries()) this.note(post, answers[i]);
    const alive = this.posts.flatMap(({ last }) => last ?? []);
    const late = this.posts.filter(({ isLate }) => isLate).length;
    return { ...merge([...alive, ...this.dead]), drones: alive.length, late, died: this.dead.length };
  }

  /** @param {Post} post @param {import('./ask.js').Answer} answer */
  note(post, { member, stats, problem }) {
    if (this.isClosed) return;
    post.isLate = stats === null;
    if (stats && post.last && stats.drone.pid !== post.last.drone.pid) {
      this.mourn(post, 'was started anew');
      this.replace(post, async () => member);
    } else if (stats) post.last = stats;
    else if (problem !== 'late' && this.place.hasEnded?.(member)) {
      this.mourn(post, 'has died');
      this.replace(post, async () => (await this.place.start(1, {}))[0]);
    }
  }

  /** What it had counted stays; its streams went with it. @param {Post} post @param {string} how */
  mourn(post, how) {
    const open = post.last?.counts.open ?? 0;
    this.say(
      `drone ${post.member.name} ${how}: ${formatCount(open)} streams are lost with it, another takes them on`,
    );
    if (post.last) this.dead.push(epitaphOf(post.last));
    post.last = null;
  }

  /** @param {Post} post @param {() => Promise<Member>} find the drone that takes it */
  replace(post, find) {
    post.isEmpty = true;
    this.track(this.fill(post, find));
  }

  /** Until it has been done, or there is no need any more. @param {Post} post @param {() => Promise<Member>} find */
  async fill(post, find) {
    while (post.isEmpty && !this.isClosed) {
      try {
        post.member = await find();
        await setParams(post.member, post.params);
        post.isEmpty = false;
      } catch (error) {
        if (this.isClosed) return;
        this.say(`no other drone for it yet: ${messageOf(error)}`);
        await after(RETRY_MS);
      }
    }
  }

  /** @param {Promise<unknown>} promise */
  track(promise) {
    this.pending = Promise.allSettled([this.pending, promise]);
  }

  /** Ends those that live only as long as the command. */
  async close() {
    this.isClosed = true;
    if (this.kind === 'ec2') await this.endInstances();
    await this.place.close(this.pending);
  }

  /** They cost money for as long as they are there. The youngest go first: those of this run. */
  async endInstances() {
    await this.pending;
    if (this.started === 0) return;
    this.say(`ending ${this.started} instances`);
    const ended = await this.place.stop(this.started);
    this.say(`${ended} instances ended`);
  }
}

/** @param {Stats} last @returns {Stats} the same without what it had at that moment */
function epitaphOf(last) {
  const { counts } = last;
  const gauges = { target: 0, open: 0, inFlight: 0, waiting: 0, overdue: 0 };
  const lost = { ...counts.lost, [DRONE_DIED]: counts.open };
  return { ...last, counts: { ...counts, ...gauges, lost } };
}
