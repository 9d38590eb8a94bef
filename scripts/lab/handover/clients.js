/*
 * Streams that follow a topic each, and publishers, during takeovers: what they notice.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { Helper } from '../helper.js';
import { HUB_PATH, SECRET } from '../hub/subjects.js';

/** Of the servers, too. */
export const PING_MS = 10_000;
/** A program has descriptors for so many. */
const MOST_PER_CROWD = 15_000;
const PER_SECOND = 1000;
const CONNECTIONS = 16;
const FOREVER_MS = 3_600_000;
/** None of these may happen, ever. */
const FAULTS = ['missed', 'discarded', 'duplicated', 'outOfOrder', 'strayed', 'gaps', 'resumed', 'restarted'];

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {{ pauseMs: number, latenessMs: number, p99Ms: number }} Noticed longest delivery, latest ping, and usual delivery */

class Part {
  /** @param {Lab} lab @param {number} port @param {number} number @param {number} streams */
  constructor(lab, port, number, streams) {
    this.port = port;
    this.streams = streams;
    this.topic = `https://example.com/${number}/{n}`;
    this.crowd = new Helper(lab, 'crowd');
    this.publisher = new Helper(lab, 'publisher');
    /** @type {Promise<any>} */
    this.publishing = Promise.resolve();
  }

  async open() {
    const { port, streams, topic } = this;
    const params = { port, n: streams, topic, accept: 'events', interval: PING_MS };
    await this.crowd.ask(
      'aim',
      Object.entries(params).map(([key, value]) => [key, String(value)]),
    );
    await this.crowd.ask('open', streams);
    const how = {
      topic,
      topics: streams,
      batch: 1,
      connections: CONNECTIONS,
      isNumbered: true,
      comesBack: true,
    };
    await this.publisher.ask('aim', { port, path: HUB_PATH, secret: SECRET, ...how });
  }

  /** @param {number} perSecond */
  publish(perSecond) {
    this.publishing = this.publisher.ask('run', { ms: FOREVER_MS, perSecond });
    this.publishing.catch(() => {}); // `finish` reports it
  }

  /** Everything that was published has arrived. @returns {Promise<{ sent: number, counts: Record<string, number>, problems: string }>} */
  async finish() {
    await this.publisher.ask('finish');
    const { sent, failed, problem } = await this.publishing;
    if (failed > 0) throw new HoldfastError('WRONG', `${failed} publications failed: ${problem}`);
    await this.crowd.ask('untilDelivered', sent);
    await this.publisher.ask('leave');
    return { sent, ...(await this.crowd.ask('take')) };
  }

  async stop() {
    await Promise.all([this.crowd.stop(), this.publisher.stop()]);
  }
}

export class Clients {
  /** @param {Lab} lab @param {number} port @param {number} streams */
  constructor(lab, port, streams) {
    const count = Math.ceil(streams / MOST_PER_CROWD);
    this.parts = Array.from({ length: count }, (_, i) => {
      const own = Math.floor((streams * (i + 1)) / count) - Math.floor((streams * i) / count);
      return new Part(lab, port, i, own);
    });
  }

  /** Opens all streams, and begins to publish. */
  async start() {
    for (const part of this.parts) await part.open();
    for (const part of this.parts) part.publish(PER_SECOND / this.parts.length);
  }

  /** @returns {Promise<Noticed>} since the last call */
  async take() {
    const all = await Promise.all(this.parts.map(({ crowd }) => crowd.ask('take')));
    const most = (/** @type {(latencies: any) => number} */ of) =>
      Math.max(...all.map(({ latencies }) => of(latencies)));
    return {
      pauseMs: most(({ delivery }) => delivery.max),
      latenessMs: most(({ lateness }) => lateness.max),
      p99Ms: most(({ delivery }) => delivery.p99),
    };
  }

  /** @throws {HoldfastError} WRONG unless each publication has arrived once and in order, and no stream was closed */
  async finish() {
    for (const part of this.parts) {
      const { sent, counts, problems } = await part.finish();
      const found = FAULTS.filter((name) => counts[name] > 0).map((name) => `${counts[name]} ${name}`);
      if (counts.delivered !== sent) found.push(`${counts.delivered} of ${sent} delivered`);
      if (counts.open !== part.streams || counts.opened !== part.streams)
        found.push(`${counts.open} of ${part.streams} open, ${counts.opened} opened`);
      if (problems) found.push(problems);
      if (found.length > 0) throw new HoldfastError('WRONG', `the takeovers went wrong: ${found.join(', ')}`);
    }
  }

  async stop() {
    for (const part of this.parts) await part.stop();
  }
}
