/*
 * One run: start the drones, ramp, hold, and report.
 *
 *     starting --all answer--> ramping --all open--> holding --hold is over--> ended
 *         |                       |--`within` is over------------------------>|
 *         \------------ signal ---\---------------------\-------------------->/
 */
import { setTimeout as after } from 'node:timers/promises';
import { HoldfastError } from '../lib/errors.js';
import { sumOf } from './drone/causes.js';
import { merge } from './merge.js';
import { reportOf } from './show/report.js';

/** At first more often, to notice quickly that every connection is refused. */
const FIRST_POLL_MS = 100;
const FIRST_MS = 1000;
/** Asking the drones costs CPU that their streams could use. */
const RAMP_POLL_MS = 500;
const HOLD_POLL_MS = 1000;
/** A rate is measured over at least this long. */
const RATE_MS = 1000;
/** How long the last messages may take to arrive. */
const DELIVERY_MS = 5000;

/**
 * @typedef {object} Plan
 * @property {number} streams
 * @property {number} holdMs
 * @property {number} withinMs how long the ramp may take
 * @property {'local' | 'hosts' | 'ec2'} place
 * @property {string} target for the report
 * @property {boolean} hasTopics whether streams subscribe to topics of a hub
 * @property {boolean} [hasTls]
 * @property {string} machine for the report
 */

/** @typedef {import('./crew.js').Summary} Summary */

export class Run {
  /**
   * @param {object} parts
   * @param {Plan} parts.plan
   * @param {import('./crew.js').Crew} parts.crew
   * @param {import('./publish/channel.js').ChannelPublisher | import('./publish/hub.js').HubPublisher | null} parts.publisher
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
    /** @type {Summary} */
    this.summary = { ...merge([]), late: 0, died: 0 };
    this.ramp = { elapsedMs: 0, opened: 0, isComplete: false };
    this.heldMs = 0;
    this.rate = { atMs: 0, opened: 0, perSecond: 0 };
    /** @type {Promise<never>} */
    this.aborted = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    this.aborted.catch(() => {});
  }

  /**
   * @returns {Promise<import('./show/report.js').Report>} up to its end, even an early one
   * @throws {HoldfastError} if it couldn't begin; NO_SERVER if nothing listens
   */
  async run() {
    try {
      await this.unlessAborted(this.crew.start());
      if (await this.rampUp()) await this.hold();
    } catch (error) {
      if (!this.signal.aborted) throw error;
    }
    this.publisher?.stop();
    if (this.crew.slots.length > 0) this.summary = await this.crew.poll();
    return this.report();
  }

  /** @template T @param {Promise<T>} promise @returns {Promise<T>} */
  unlessAborted(promise) {
    promise.catch(() => {}); // nobody waits for it after a signal
    return Promise.race([promise, this.aborted]);
  }

  /** @returns {Promise<boolean>} whether all were open in time */
  async rampUp() {
    const begunMs = performance.now();
    const elapsedMs = () => performance.now() - begunMs;
    this.rate.atMs = begunMs;
    await this.unlessAborted(this.crew.aim());
    for (;;) {
      const { counts } = await this.look('ramping', elapsedMs());
      if (isNobodyThere(counts)) throw this.noServer();
      const isComplete = counts.open >= this.plan.streams;
      this.ramp = { elapsedMs: elapsedMs(), opened: counts.opened, isComplete };
      if (isComplete) return true;
      if (elapsedMs() >= this.plan.withinMs) return false;
      await this.pause(elapsedMs() < FIRST_MS ? FIRST_POLL_MS : RAMP_POLL_MS);
    }
  }

  noServer() {
    const { target } = this.plan;
    return new HoldfastError(
      'NO_SERVER',
      `nothing is listening on ${target}: start the server there, or use another --target`,
    );
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

  /** The last messages may still be on their way, and streams that were closed must come back to get them. */
  async untilDelivered() {
    this.publisher?.stop();
    await this.crew.settle();
    let endMs = performance.now() + DELIVERY_MS;
    while (!this.publisher?.isDelivered(this.summary.counts) && performance.now() < endMs) {
      // A request that is being tried again gives up by itself (--publish-retry).
      if (this.publisher?.pending) endMs = performance.now() + DELIVERY_MS;
      await this.pause(RAMP_POLL_MS);
      await this.look('holding', this.heldMs);
    }
  }

  /** @param {number} ms */
  async pause(ms) {
    await after(ms, undefined, { signal: this.signal });
  }

  /** @param {'ramping' | 'holding'} phase @param {number} elapsedMs @returns {Promise<Summary>} */
  async look(phase, elapsedMs) {
    this.summary = await this.unlessAborted(this.crew.poll());
    const { streams: asked, holdMs } = this.plan;
    const openedPerSecond = this.openedPerSecond();
    this.view.show({ phase, asked, elapsedMs, holdMs, openedPerSecond, summary: this.summary });
    return this.summary;
  }

  openedPerSecond() {
    const { opened } = this.summary.counts;
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.rate.atMs;
    if (elapsedMs < RATE_MS && this.rate.perSecond > 0) return this.rate.perSecond;
    const perSecond = elapsedMs > 0 ? ((opened - this.rate.opened) * 1000) / elapsedMs : 0;
    if (elapsedMs >= RATE_MS) this.rate = { atMs: nowMs, opened, perSecond };
    return perSecond;
  }

  /** @returns {import('./show/report.js').Report} */
  report() {
    const { plan, startedAt, summary, ramp, heldMs, publisher, signal, crew } = this;
    const { streams: asked, withinMs, target, place, machine, hasTopics, hasTls } = plan;
    const dialer = crew.slots.find(({ last }) => last)?.last?.drone.dialer ?? '';
    return reportOf({
      startedAt,
      asked,
      target,
      place,
      dialer,
      summary,
      ramp,
      withinMs,
      heldMs,
      publications: publisher?.counts() ?? null,
      hasTopics,
      hasTls,
      isInterrupted: signal.aborted,
      machine,
    });
  }
}

/**
 * @param {import('./ask.js').Counts} counts
 * @returns {boolean} whether every connection so far was refused; a server that was there before may only be restarting
 */
function isNobodyThere({ opened, inFlight, failed }) {
  return opened === 0 && inFlight === 0 && failed.refused > 0 && failed.refused === sumOf(failed);
}
