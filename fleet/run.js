/*
 * One run: start the drones, ramp, hold, and tell what came of it.
 *
 *     starting --all answer--> ramping --all open--> holding --hold is over--> ended
 *         |                       |--`within` is over------------------------>|
 *         \------------ signal ---\---------------------\-------------------->/
 */
import { setTimeout as after } from 'node:timers/promises';
import { merge } from './merge.js';
import { reportOf } from './show/report.js';

/** To ask the drones costs them CPU that the streams could have. */
const RAMP_POLL_MS = 500;
const HOLD_POLL_MS = 1000;
/** A rate is told over at least this. */
const RATE_MS = 1000;
/** What was published last is on its way for so long at most. */
const ARRIVAL_MS = 3000;

/**
 * @typedef {object} Plan
 * @property {number} streams
 * @property {number} holdMs
 * @property {number} withinMs that the ramp may take
 * @property {'local' | 'hosts' | 'ec2'} place
 * @property {string} target for the report
 * @property {string} machine for the report
 */

/** @typedef {import('./crew.js').Roll} Roll */

export class Run {
  /**
   * @param {object} parts
   * @param {Plan} parts.plan
   * @param {import('./crew.js').Crew} parts.crew
   * @param {import('./publisher.js').Publisher | null} parts.publisher
   * @param {Pick<import('./show/progress.js').ProgressView, 'show'>} parts.view
   * @param {AbortSignal} parts.signal ends it early
   */
  constructor({ plan, crew, publisher, view, signal }) {
    this.plan = plan;
    this.crew = crew;
    this.publisher = publisher;
    this.view = view;
    this.signal = signal;
    this.startedAt = new Date();
    /** @type {Roll} */
    this.roll = { ...merge([]), late: 0, died: 0 };
    this.ramp = { elapsedMs: 0, opened: 0, isWhole: false };
    this.heldMs = 0;
    this.rate = { atMs: 0, opened: 0, perSecond: 0 };
    /** @type {Promise<never>} */
    this.aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    this.aborted.catch(() => {});
  }

  /**
   * @returns {Promise<import('./show/report.js').Report>} of what was, where it was ended early
   * @throws {import('../lib/errors.js').HoldfastError} where it could not begin
   */
  async run() {
    try {
      await this.unlessAborted(this.crew.start());
      if (await this.climb()) await this.hold();
    } catch (error) {
      if (!this.signal.aborted) throw error;
    }
    this.publisher?.stop();
    if (this.crew.posts.length > 0) this.roll = await this.crew.poll();
    return this.report();
  }

  /** @template T @param {Promise<T>} promise @returns {Promise<T>} */
  unlessAborted(promise) {
    promise.catch(() => {}); // what comes of it after a signal is nobody's
    return Promise.race([promise, this.aborted]);
  }

  /** @returns {Promise<boolean>} whether all were open in time */
  async climb() {
    const begunMs = performance.now();
    const elapsedMs = () => performance.now() - begunMs;
    this.rate.atMs = begunMs;
    await this.unlessAborted(this.crew.aim());
    for (;;) {
      const { counts } = await this.look('ramping', elapsedMs());
      const isWhole = counts.open >= this.plan.streams;
      this.ramp = { elapsedMs: elapsedMs(), opened: counts.opened, isWhole };
      if (isWhole) return true;
      if (elapsedMs() >= this.plan.withinMs) return false;
      await this.pause(RAMP_POLL_MS);
    }
  }

  async hold() {
    const begunMs = performance.now();
    this.publisher?.start();
    for (;;) {
      this.heldMs = performance.now() - begunMs;
      await this.look('holding', this.heldMs);
      const leftMs = this.plan.holdMs - (performance.now() - begunMs);
      if (leftMs <= 0) break;
      await this.pause(Math.min(HOLD_POLL_MS, leftMs));
    }
    this.heldMs = performance.now() - begunMs;
    if (this.publisher) await this.untilDelivered();
  }

  /** What was published last may still be on its way. */
  async untilDelivered() {
    this.publisher?.stop();
    const endMs = performance.now() + ARRIVAL_MS;
    const isDone = () =>
      this.publisher?.pending === 0 && this.roll.counts.messages >= this.publisher.sent * this.plan.streams;
    while (!isDone() && performance.now() < endMs) {
      await this.pause(RAMP_POLL_MS);
      await this.look('holding', this.heldMs);
    }
  }

  /** @param {number} ms */
  async pause(ms) {
    await after(ms, undefined, { signal: this.signal });
  }

  /** @param {'ramping' | 'holding'} phase @param {number} elapsedMs @returns {Promise<Roll>} */
  async look(phase, elapsedMs) {
    this.roll = await this.unlessAborted(this.crew.poll());
    const { streams: asked, holdMs } = this.plan;
    const openedPerSecond = this.openedPerSecond();
    this.view.show({ phase, asked, elapsedMs, holdMs, openedPerSecond, roll: this.roll });
    return this.roll;
  }

  openedPerSecond() {
    const { opened } = this.roll.counts;
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.rate.atMs;
    if (elapsedMs < RATE_MS && this.rate.perSecond > 0) return this.rate.perSecond;
    const perSecond = elapsedMs > 0 ? ((opened - this.rate.opened) * 1000) / elapsedMs : 0;
    if (elapsedMs >= RATE_MS) this.rate = { atMs: nowMs, opened, perSecond };
    return perSecond;
  }

  /** @returns {import('./show/report.js').Report} */
  report() {
    const { plan, startedAt, roll, ramp, heldMs, publisher, signal, crew } = this;
    const { streams: asked, withinMs, target, place, machine } = plan;
    const dialer = crew.posts.find(({ last }) => last)?.last?.drone.dialer ?? '';
    return reportOf({
      startedAt,
      asked,
      target,
      place,
      dialer,
      roll,
      ramp,
      withinMs,
      heldMs,
      publications: publisher?.counts() ?? null,
      isInterrupted: signal.aborted,
      machine,
    });
  }
}
