/*
 * The drone: keeps as many streams open as its parameters say, and adds up what its dialer measures.
 */
import { sumOf } from './causes.js';
import { askConsent, isLoopback } from './consent.js';
import { COUNTS } from './counters.js';
import { emptyHistograms, MEASURES, percentilesOf } from './histograms.js';
import { changedParams, defaultParams, hostsOf, loopbackSources, requestOf } from './params.js';
import { Reconciler } from './reconcile.js';

const STEP_MS = 100;
const MOST_SAMPLES = 8;
/**
 * Each drone dials from its own block of the loopback range, chosen by its pid. Two drones that share an address
 * search for its free ports one after the other, which costs more CPU than everything else.
 */
const LOOPBACK_BLOCKS = 65_000;
const BLOCK_ADDRESSES = 256;

/** @typedef {import('./params.js').Params} Params */
/** @typedef {import('./dial.js').Counters} Counters */
/** @typedef {'idle' | 'ramping' | 'holding' | 'closing' | 'backing-off'} State */

export class Drone {
  /** @param {import('./dial.js').Dialer} dialer */
  constructor(dialer) {
    this.dialer = dialer;
    this.params = { ...defaultParams() };
    this.isAimed = false;
    /** 0 if unknown. */
    this.pingIntervalMs = 0;
    this.startedAt = new Date();
    this.reconciler = new Reconciler();
    this.histograms = emptyHistograms();
    /** @type {Counters['samples']} */
    this.samples = [];
    this.counters = dialer.take();
    /** The counters when counting began. */
    this.before = this.counters;
    this.timer = setInterval(() => this.step(), STEP_MS);
  }

  /**
   * @param {[string, string][]} changes
   * @returns {Promise<Params>}
   * @throws {import('../../lib/errors.js').HoldfastError} BAD_PARAM, NO_HOST, NO_CONSENT; then nothing has changed
   */
  async set(changes) {
    const wanted = changedParams(this.params, changes);
    if (wanted.n > 0) await this.aim(wanted);
    // Another `set` may have arrived while the target was asked.
    this.params = changedParams(this.params, changes);
    return this.params;
  }

  /** Sets the parameters it begins with. @param {Params} params @throws {import('../../lib/errors.js').HoldfastError} NO_HOST, NO_CONSENT */
  async start(params) {
    this.params = params;
    if (params.n > 0) await this.aim(params);
  }

  /** @param {Params} params */
  async aim(params) {
    const { host, port, sources, interval, timeout, expect, channel, path } = params;
    const hosts = hostsOf(host);
    const consents = await Promise.all(hosts.flatMap((one) => port.map((of) => askConsent(one, of))));
    const addresses = [...new Set(consents.map(({ address }) => address))];
    const [{ pingIntervalMs }] = consents;
    this.pingIntervalMs = interval === 'auto' ? (pingIntervalMs ?? 0) : interval;
    this.dialer.aim({
      addresses,
      ports: port,
      sources: sources === 'auto' ? ownSources(params, addresses) : sources,
      request: requestOf(params),
      pingIntervalMs: this.pingIntervalMs,
      timeoutMs: timeout,
      isStrict: expect === 'holdfast',
      allowsMessages: channel !== '' || path.includes('channel='),
    });
    this.isAimed = true;
  }

  step() {
    this.take();
    const { open, inFlight, opened } = this.counters;
    const { n, ramp, concurrency } = this.params;
    const target = this.isAimed ? Math.min(n, this.dialer.most) : 0;
    const change = this.reconciler.step(
      performance.now(),
      { target, ramp, concurrency },
      { open, inFlight, opened, failed: failuresOf(this.counters) },
    );
    if (change > 0) this.dialer.open(change);
    if (change < 0) this.dialer.close(-change);
  }

  take() {
    this.counters = this.dialer.take();
    for (const name of MEASURES) this.histograms[name].merge(this.counters[name]);
    this.samples.push(...this.counters.samples);
    this.samples.splice(0, this.samples.length - MOST_SAMPLES);
  }

  /** @returns {State} */
  state() {
    const { open, inFlight } = this.counters;
    const { n } = this.params;
    if (open + inFlight > n) return 'closing';
    if (n === 0) return 'idle';
    if (open === n) return 'holding';
    return this.reconciler.waitingCount() > 0 ? 'backing-off' : 'ramping';
  }

  /** @returns {Record<string, any>} the answer of `GET /counts`; counters are since counting began */
  counts() {
    const { counters, before } = this;
    const rows = COUNTS.map(({ name, kind }) => [
      name,
      kind === 'gauge' ? counters[name] : counters[name] - before[name],
    ]);
    return {
      target: this.params.n,
      waiting: this.reconciler.waitingCount(),
      ...Object.fromEntries(rows),
      failed: differenceOf(counters.failed, before.failed),
      lost: differenceOf(counters.lost, before.lost),
    };
  }

  /** @returns {Record<string, any>} the answer of `GET /` */
  stats() {
    const { histograms, dialer, startedAt } = this;
    return {
      drone: {
        pid: process.pid,
        dialer: dialer.name,
        most: dialer.most,
        state: this.state(),
        pingIntervalMs: this.pingIntervalMs,
        startedAt: startedAt.toISOString(),
        elapsedMs: Date.now() - startedAt.getTime(),
      },
      params: this.params,
      counts: this.counts(),
      samples: this.samples,
      percentiles: Object.fromEntries(MEASURES.map((name) => [`${name}Ms`, percentilesOf(histograms[name])])),
      histograms: Object.fromEntries(MEASURES.map((name) => [name, histograms[name].encode()])),
    };
  }

  /** Closes all streams, opens them again, and counts from 0. */
  async restart() {
    // The target is asked first: the rest is synchronous, so no stream is opened in between.
    if (this.params.n > 0) await this.aim(this.params);
    this.counters = this.dialer.take();
    const closing = this.counters.open;
    this.dialer.close(closing);
    this.startedAt = new Date();
    this.histograms = emptyHistograms();
    this.samples = [];
    // The streams that are closing now will still be counted as closed.
    this.before = { ...this.counters, closed: this.counters.closed + closing };
    this.reconciler = new Reconciler(this.counters.opened, failuresOf(this.counters));
  }

  async stop() {
    clearInterval(this.timer);
    await this.dialer.stop();
  }
}

/** @param {Params} params @param {string[]} addresses of the target @returns {string[]} none if the kernel should choose */
function ownSources({ n, port }, addresses) {
  const isLocal4 = addresses.every((address) => isLoopback(address) && !address.includes(':'));
  if (!isLocal4) return [];
  // Half of the destinations: while a ramp rises step by step, the first sources take part in every step.
  const destinations = Math.ceil((addresses.length * port.length) / 2);
  const from = (process.pid % LOOPBACK_BLOCKS) * BLOCK_ADDRESSES;
  return loopbackSources(n, from, destinations);
}

/** @param {Counters} counters @returns {number} streams that failed or were lost */
function failuresOf({ failed, lost }) {
  return sumOf(failed) + sumOf(lost);
}

/** @param {Record<string, number>} now @param {Record<string, number>} before */
function differenceOf(now, before) {
  return Object.fromEntries(Object.keys(now).map((name) => [name, now[name] - before[name]]));
}
