/*
 * Streams of the hub, each in a room and on a topic of its own, and a publisher to both: publications go to a room and to a single
 * stream in turn, in batches, over the admin port, which needs no token. They are numbered, and each client checks its own.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { figure } from '../figures.js';
import { Helper } from '../helper.js';
import { HUB_PATH, SECRET } from '../hub/subjects.js';
import { cpuUs } from '../processes.js';

export const ROOM = 100;

export const DELIVERY_FIGURES = [
  figure('deliveryRate', 'deliveries per second', '1/s'),
  figure('publicationRate', 'publications per second', '1/s'),
  figure('deliveryP50Ms', 'from publishing to the client, p50', 'ms'),
  figure('deliveryP99Ms', 'from publishing to the client, p99', 'ms'),
  figure('deliveryMaxMs', 'from publishing to the client, max', 'ms'),
];

export const FAULT_FIGURES = [
  figure('undelivered', 'deliveries that are missing at the end', 'count'),
  figure('missed', 'of them, noticed by clients, since a later one arrived', 'count'),
  figure('duplicated', 'publications that arrived twice', 'count'),
  figure('outOfOrder', 'publications out of order, or at a wrong stream', 'count'),
  figure('gaps', 'gaps that the server reported', 'count'),
];

/** What publications to a room and to a single stream make together. */
const PER_PAIR = ROOM + 1;
const CONNECTIONS = 8;
/** Publications per request: as many to rooms as to single streams. */
const BATCH = 10;
const POLL_MS = 50;
const POLL_OF_MANY_MS = 1000;
const MANY = 100_000;
/** If nothing has arrived for so long, nothing will. */
const FOREVER_MS = 3_600_000;
const SILENCE_MS = 20_000;
/** Within this time after the end, all requests have an answer. */
const LATE_MS = 60_000;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('../load.js').Load} Load */
/** @typedef {import('../experiment.js').Values} Values */

/** The server's arguments for such streams. */
export const HUB_ARGS = ['--anonymous', '--jwt-secret', SECRET];

/** @param {number} streams @returns {number} rooms with 100 streams each, or one less */
export function roomsFor(streams) {
  return Math.ceil(streams / ROOM);
}

/** @param {number} streams @returns {string[]} templates: the streams of a room are not neighbours in any table */
export function topicsFor(streams) {
  return [`rooms/{n%${roomsFor(streams)}}`, 'users/{n}'];
}

export class Publications {
  /** @param {Lab} lab @param {number} streams */
  constructor(lab, streams) {
    this.lab = lab;
    this.streams = streams;
    this.publisher = new Helper(lab, 'publisher');
    /** In total. */
    this.sent = 0;
    /** What the streams must get of it. */
    this.expected = 0;
    /** Requests that were sent again, because the server was too busy. */
    this.refused = 0;
  }

  /** @param {number} port of the server that it is published to */
  async aim(port) {
    const { streams } = this;
    const series = [
      { topic: 'rooms/{n}', topics: roomsFor(streams), streams },
      { topic: 'users/{n}', topics: streams, streams },
    ];
    const how = { batch: BATCH, connections: CONNECTIONS, isNumbered: true, isPatient: true };
    await this.publisher.ask('aim', { port, path: HUB_PATH, secret: SECRET, series, ...how });
  }

  /**
   * @param {number} ms @param {number} deliveriesPerSecond
   * @returns {Promise<{ sent: number, expected: number, wanted: number }>} publications and their deliveries; `wanted`: publications that
   *   were due
   * @throws {HoldfastError} PUBLISH
   */
  run(ms, deliveriesPerSecond) {
    return this.publish({ ms, perSecond: requestsFor(deliveriesPerSecond) });
  }

  /** @param {{ ms: number, perSecond: number }} run requests per second */
  async publish({ ms, perSecond }) {
    const late = this.lab.sleep(ms + LATE_MS).then(() => {
      throw new HoldfastError('PUBLISH', `requests to publish had no answer for ${LATE_MS / 1000} s`);
    });
    const found = await Promise.race([this.publisher.ask('run', { ms, perSecond }), late]);
    late.catch(() => {}); // nobody waits for it any more
    const { sent, expected, refused, failed, problem } = found;
    this.sent += sent;
    this.expected += expected;
    this.refused += refused;
    if (failed > 0) throw new HoldfastError('PUBLISH', `${failed} requests to publish failed: ${problem}`);
    return { sent, expected, wanted: (perSecond * BATCH * ms) / 1000 };
  }

  /**
   * Publishes until `finish`.
   * @param {number} perSecond publications @returns {() => Promise<unknown>} ends it; throws what went wrong
   */
  begin(perSecond) {
    const over = this.publish({ ms: FOREVER_MS, perSecond: perSecond / BATCH });
    over.catch(() => {}); // whoever ends it is told
    return async () => {
      await this.publisher.ask('finish');
      await over;
    };
  }

  /**
   * @param {Load[]} loads
   * @returns {Promise<boolean>} whether all that was published has arrived; false after a while in which nothing has
   */
  async untilDelivered(loads) {
    let [before, silentMs] = [-1, performance.now()];
    for (;;) {
      const delivered = await deliveredTo(loads);
      if (delivered >= this.expected) return true;
      if (delivered > before) silentMs = performance.now();
      else if (performance.now() - silentMs > SILENCE_MS) return false;
      before = delivered;
      await this.lab.sleep(this.streams > MANY ? POLL_OF_MANY_MS : POLL_MS);
    }
  }

  /** @returns {number} µs */
  cpuUs() {
    return cpuUs(this.publisher.pids());
  }

  stop() {
    return this.publisher.stop();
  }
}

/** @param {Load[]} loads @returns {Promise<number>} */
async function deliveredTo(loads) {
  const all = await Promise.all(loads.map((load) => load.pollCounts()));
  return all.reduce((sum, { delivered }) => sum + delivered, 0);
}

/** @param {number} deliveriesPerSecond @returns {number} */
export function requestsFor(deliveriesPerSecond) {
  return (2 * deliveriesPerSecond) / PER_PAIR / BATCH;
}

/** Pure. @param {Pick<import('../phases.js').Span, 'deliveryMs'>} phase @returns {Values} */
export function deliveryValues({ deliveryMs }) {
  const { count, p50, p99, max } = deliveryMs;
  if (count === 0) return { deliveryP50Ms: null, deliveryP99Ms: null, deliveryMaxMs: null };
  return { deliveryP50Ms: p50, deliveryP99Ms: p99, deliveryMaxMs: max };
}

/**
 * What must not have happened to publications. Pure.
 * @param {number} expected deliveries @param {import('../../../fleet/ask.js').Counts[]} counts of all loads, when everything has arrived
 * @returns {Values} undelivered: those that are missing, whatever the clients noticed
 */
export function faultValues(expected, counts) {
  const sum = (/** @type {import('../../../fleet/drone/counters.js').CountName} */ name) =>
    counts.reduce((total, one) => total + one[name], 0);
  return {
    undelivered: Math.max(0, expected - sum('delivered')),
    missed: sum('missed') + sum('discarded'),
    duplicated: sum('duplicated'),
    outOfOrder: sum('outOfOrder') + sum('strayed'),
    gaps: sum('gaps'),
  };
}
