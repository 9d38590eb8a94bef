/*
 * The drone: keeps as many streams open as its parameters say, and adds up what its dialer measures.
 */
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { hostsOf, ownSources } from './addresses.js';
import { sumOf } from './causes.js';
import { askConsent } from './consent.js';
import { COUNTS } from './counters.js';
import { emptyHistograms, MEASURES, percentilesOf } from './histograms.js';
import { formats, tls, topics } from './optional.js';
import { changedParams, defaultParams } from './params.js';
import { Permit } from './permit.js';
import { Rate } from './rate.js';
import { Reconciler } from './reconcile.js';
import { requestOf } from './request.js';

const STEP_MS = 100;
const MOST_SAMPLES = 8;
/** Changes that wait for their turn, because each may have to ask the target first. */
const MOST_WAITING = 4;
/** @typedef {import('./params.js').Params} Params */
/** @typedef {import('./dial.js').Counters} Counters */
/** @typedef {'idle' | 'ramping' | 'holding' | 'closing' | 'backing-off' | 'no-consent'} State */

export class Drone {
  /**
   * @param {import('./dial.js').Dialer} dialer
   * @param {(line: string) => void} [note] is told why a target is no longer dialled
   */
  constructor(dialer, note = () => {}) {
    this.dialer = dialer;
    this.note = note;
    this.params = { ...defaultParams() };
    this.permit = new Permit();
    this.tokens = topics ? new topics.TokenSupply(dialer) : null;
    this.churned = new Rate();
    /** The last of the changes that wait. @type {Promise<unknown>} */
    this.turn = Promise.resolve();
    this.waiting = 0;
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
   * @throws {HoldfastError} BAD_PARAM, BUSY, and those of `askConsent`; then nothing has changed
   */
  set(changes) {
    return this.inTurn(async () => {
      const wanted = changedParams(this.params, changes);
      if (wanted.n > 0) await this.aim(wanted);
      this.params = wanted;
      return shown(wanted);
    });
  }

  /** Sets the parameters it begins with. @param {Params} params @throws {HoldfastError} those of `askConsent` */
  start(params) {
    this.params = params;
    return this.inTurn(async () => {
      if (params.n > 0) await this.aim(params);
    });
  }

  /**
   * One change after the other, so that each begins with what the one before has left.
   * @template T @param {() => Promise<T>} change
   * @returns {Promise<T>}
   * @throws {HoldfastError} BUSY
   */
  async inTurn(change) {
    if (this.waiting === MOST_WAITING)
      throw new HoldfastError('BUSY', `${MOST_WAITING} changes are waiting already: try again later`);
    this.waiting++;
    const before = this.turn;
    const changed = before.then(change).finally(() => this.waiting--);
    this.turn = changed.catch(() => {});
    return changed;
  }

  /** Asks the target for its consent, and dials it from now on. @param {Params} params @param {boolean} [isAgain] */
  async aim(params, isAgain = false) {
    const { failures } = this;
    const security = tls?.securityOf(params) ?? null;
    const { servers, isLocal, pingIntervalMs, idlePings, isPartial } = await this.ask(
      params,
      security,
      isAgain,
    );
    const { sources, interval, timeout, expect, channel, path, format } = params;
    const subscription = topics?.subscriptionOf(params) ?? null;
    this.pingIntervalMs = interval === 'auto' ? (pingIntervalMs ?? 0) : interval;
    this.dialer.aim({
      servers,
      sources: sources === 'auto' ? ownSources(params, servers) : sources,
      format,
      request: formats?.requestOf(params) ?? requestOf(params),
      subscription,
      pingIntervalMs: this.pingIntervalMs,
      idlePings,
      timeoutMs: timeout,
      isStrict: expect === 'holdfast',
      allowsMessages: channel !== '' || path.includes('channel='),
      security,
    });
    this.tokens?.use(params, subscription);
    this.permit.grant(performance.now(), isLocal, failures, isPartial);
  }

  /**
   * If it is the target it dials now that refuses, its streams are closed.
   * @param {Params} params @param {import('./dial.js').Security | null} security @param {boolean} isAgain
   */
  async ask(params, security, isAgain) {
    const { host, port } = params;
    try {
      if (topics) return await topics.askServers(params, security, isAgain);
      const { addresses, ...said } = await askConsent(hostsOf(host), port);
      return { ...said, servers: [{ name: '', host, addresses, ports: port }], isPartial: false };
    } catch (error) {
      const isCurrent = targetIn(params) === targetIn(this.params);
      if (isCurrent && codeOf(error) === 'NO_CONSENT') this.permit.revoke();
      throw error;
    }
  }

  /** The target was lost, so its consent is in doubt. */
  askAgain() {
    this.permit.nextMs = Number.POSITIVE_INFINITY; // one question at a time
    this.inTurn(() => this.aim(this.params, true)).catch((error) => {
      this.permit.defer(performance.now());
      if (!this.permit.isGranted) this.note(messageOf(error));
    });
  }

  step() {
    this.take();
    const { failures } = this;
    const nowMs = performance.now();
    if (this.params.n > 0 && this.permit.isDue(nowMs, failures)) this.askAgain();
    this.tokens?.step(nowMs, this.params.n);
    const { open, inFlight, opened } = this.counters;
    const { ramp, concurrency, churn } = this.params;
    const change = this.reconciler.step(
      nowMs,
      { target: this.target(), ramp, concurrency },
      { open, inFlight, opened, failed: failures },
    );
    if (change > 0) this.dialer.open(change);
    if (change < 0) this.dialer.close(-change, this.params.away > 0);
    // What was lost is asked for its consent before anything else is opened.
    const churning = this.churned.take(nowMs, this.permit.isValid(failures) ? churn : 0);
    if (churning > 0) this.dialer.churn(churning);
  }

  /** @returns {number} streams to keep open; no more than there are while the consent is in doubt */
  target() {
    if (!this.permit.isGranted) return 0;
    const target = Math.min(this.wanted, this.dialer.most, this.tokens?.ready ?? Infinity);
    const { open, inFlight } = this.counters;
    return this.permit.isValid(this.failures) ? target : Math.min(target, open + inFlight);
  }

  /** Streams that are to be open. */
  get wanted() {
    const { n, away } = this.params;
    return away > 0 ? Math.max(0, n - away) : n;
  }

  /** Streams that failed or were lost, ever. */
  get failures() {
    return failuresOf(this.counters);
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
    const n = this.wanted;
    if (open + inFlight > n) return 'closing';
    if (n === 0) return 'idle';
    if (this.permit.wasRefused) return 'no-consent';
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
      target: this.wanted,
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
      params: shown(this.params),
      counts: this.counts(),
      servers: topics?.countsSince(this.counters.servers, this.before.servers) ?? [],
      samples: this.samples,
      percentiles: Object.fromEntries(MEASURES.map((name) => [`${name}Ms`, percentilesOf(histograms[name])])),
      histograms: Object.fromEntries(MEASURES.map((name) => [name, histograms[name].encode()])),
    };
  }

  /** Closes all streams, opens them again, and counts from 0. @throws {HoldfastError} BUSY, and those of `askConsent` */
  restart() {
    return this.inTurn(async () => {
      // The target is asked first: the rest is synchronous, so no stream is opened in between.
      if (this.params.n > 0) await this.aim(this.params);
      this.reopen();
    });
  }

  reopen() {
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

/** @param {Params} params @returns {string} the same for the same servers */
function targetIn({ host, port, others }) {
  return String([host, port, others]);
}

/** @param {Params} params @returns {Params} as others may see them */
function shown(params) {
  return topics ? topics.withoutSecrets(params) : params;
}

/** @param {Counters} counters @returns {number} streams that failed or were lost */
function failuresOf({ failed, lost }) {
  return sumOf(failed) + sumOf(lost);
}

/** @param {Record<string, number>} now @param {Record<string, number>} before */
function differenceOf(now, before) {
  return Object.fromEntries(Object.keys(now).map((name) => [name, now[name] - before[name]]));
}
