/*
 * Subscribers, dialled by the fleet's own dialer, which checks that each publication arrives once and in order. All of them can
 * leave at once and come back with their cursors.
 */
import { setTimeout as after } from 'node:timers/promises';
import { ownSources } from '../../../fleet/drone/addresses.js';
import { createDialer } from '../../../fleet/drone/dial.js';
import { requestOf as requestOfFormat } from '../../../fleet/drone/formats/request.js';
import { emptyHistograms, MEASURES, percentilesOf } from '../../../fleet/drone/histograms.js';
import { changedParams, defaultParams } from '../../../fleet/drone/params.js';
import { requestOf } from '../../../fleet/drone/request.js';
import { securityOf } from '../../../fleet/drone/tls/security.js';
import { subscriptionOf } from '../../../fleet/drone/topics/subscription.js';
import { TokenSupply } from '../../../fleet/drone/topics/supply.js';
import { freePort } from '../../../lib/port.js';
import { causesText } from '../text.js';
import { follow } from './orders.js';

const HOST = '127.0.0.1';
const TIMEOUT_MS = 20_000;
const POLL_MS = 5;
/** Ports of connections that were closed are not free at once. */
const SPARE_SOURCES = 4;

const dialer = await createDialer();
const supply = new TokenSupply(dialer);
let params = defaultParams();
/** Streams being opened at a time. */
let most = Number.POSITIVE_INFINITY;
let subscription = subscriptionOf(params);
let histograms = emptyHistograms();
/** @type {import('../../../fleet/drone/dial.js').Counters} */
let counters = dialer.take();

/** @param {number} port */
function aim(port) {
  const servers = [{ name: '', host: HOST, addresses: [HOST], ports: [port] }];
  dialer.aim({
    servers,
    sources: ownSources({ ...params, n: params.n * SPARE_SOURCES }, servers),
    format: params.format,
    request: requestOfFormat(params) ?? requestOf(params),
    subscription,
    idlePings: false,
    pingIntervalMs: params.interval === 'auto' ? 0 : params.interval,
    timeoutMs: patienceMs(),
    isStrict: params.expect === 'holdfast',
    allowsMessages: true,
    security: securityOf(params),
  });
}

function patienceMs() {
  return Math.max(TIMEOUT_MS, params.timeout);
}

function take() {
  counters = dialer.take();
  for (const name of MEASURES) histograms[name].merge(counters[name]);
  return counters;
}

/** @param {() => boolean} isReached @param {string} what */
async function until(isReached, what) {
  const endMs = Date.now() + patienceMs();
  for (take(); !isReached(); take()) {
    if (Date.now() > endMs) throw new Error(`${what}: ${describe()}`);
    await after(POLL_MS);
  }
}

function describe() {
  const { open, delivered, failed, lost, samples } = counters;
  return [
    `${open} are open, ${delivered} were delivered`,
    causesText({ failed, lost }),
    ...samples.map(({ text }) => text),
  ]
    .filter(Boolean)
    .join('; ');
}

follow({
  /**
   * What to dial.
   * @param {[string, string][]} pairs parameters of a drone; `n`: how many streams there will be; without `concurrency` they are all
   *   opened at once
   */
  aim(pairs) {
    params = changedParams(defaultParams(), pairs);
    most = pairs.some(([name]) => name === 'concurrency') ? params.concurrency : Number.POSITIVE_INFINITY;
    subscription = subscriptionOf(params);
    supply.use(params, subscription);
    while (supply.ready < params.n) supply.step(performance.now(), params.n);
    aim(params.port[0]);
  },

  /** Opens streams until there are this many. @param {number} streams @returns {Promise<number>} ms it took */
  async open(streams) {
    const begunMs = performance.now();
    let left = streams - take().open;
    const isOpen = () => {
      const more = Math.min(left, most - counters.inFlight);
      if (more > 0) dialer.open(more);
      left -= Math.max(0, more);
      return counters.open === streams;
    };
    await until(isOpen, `not all of ${streams} streams were opened`);
    return performance.now() - begunMs;
  },

  /** Closes all streams. */
  async close() {
    dialer.close(take().open);
    await until(() => counters.open === 0, 'not all streams were closed');
  },

  /** All streams leave, and keep their cursors: nobody listens where they dial instead. */
  async leave() {
    aim(await freePort(0, HOST));
    dialer.churn(take().open);
    await until(() => counters.open + counters.inFlight === 0, 'not all streams have left');
    aim(params.port[0]);
  },

  /** @param {number} delivered publications in total @returns {Promise<number>} ms until then */
  async untilDelivered(delivered) {
    const begunMs = performance.now();
    await until(() => counters.delivered >= delivered, `not all of ${delivered} publications were delivered`);
    return performance.now() - begunMs;
  },

  /** @returns counts since the start, and latencies since the last call */
  take() {
    const { failed, lost, samples, ...rest } = take();
    const counts = Object.fromEntries(Object.entries(rest).filter(([, value]) => typeof value === 'number'));
    const latencies = Object.fromEntries(MEASURES.map((name) => [name, percentilesOf(histograms[name])]));
    histograms = emptyHistograms();
    return { counts, latencies, problems: causesText({ lost }) };
  },
});
