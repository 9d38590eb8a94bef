/*
 * Measures messages between a primary and a worker, sent like those of the server. Prints one line of JSON.
 *
 *     messages.js publish SECONDS    one way, as many as possible
 *     messages.js sample SECONDS     round trips, one at a time: a request, and the snapshot of a worker
 */
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { Histogram } from '../../../lib/histogram.js';
import { dispatch } from './dispatch.js';

const BATCH = 500;
const BATCHES_IN_FLIGHT = 4;
const MESSAGE = 'x'.repeat(64);
/** Warm-up, as a share of the measured time. */
const WARM_SHARE = 0.25;

class Messages {
  constructor() {
    cluster.setupPrimary({ exec: fileURLToPath(new URL('worker.js', import.meta.url)), args: [] });
    this.worker = cluster.fork();
    this.sent = 0;
    this.answered = -1;
    this.workerCpuUs = 0;
    this.roundTrips = new Histogram('µs');
    this.wake = () => {};
    this.worker.on('message', (message) => dispatch(this.handlers, message));
  }

  handlers = {
    hello: () => this.take(0),
    /** @param {{ id: number, cpuUs: number }} message */
    snapshot: ({ id, cpuUs }) => {
      this.workerCpuUs = cpuUs;
      this.take(id);
    },
  };

  /** @param {number} id */
  take(id) {
    this.answered = id;
    this.wake();
  }

  /** Waits for the answer to a request, or to a later one. @param {number} id */
  async until(id) {
    while (this.answered < id) {
      await new Promise((resolve) => {
        this.wake = () => resolve(undefined);
      });
    }
  }

  /** The answer to the request at the end of a batch shows that the batch has arrived. */
  async publish() {
    for (let i = 0; i < BATCH; i++) this.worker.send({ type: 'publish', channel: 'all', message: MESSAGE });
    this.sent += BATCH;
    this.worker.send({ type: 'sample', id: this.sent });
    await this.until(this.sent - BATCH * BATCHES_IN_FLIGHT);
  }

  async sample() {
    const begunMs = performance.now();
    this.worker.send({ type: 'sample', id: ++this.sent });
    await this.until(this.sent);
    this.roundTrips.record((performance.now() - begunMs) * 1000);
  }

  /** @returns {number} of both processes, as of the last answer */
  cpuUs() {
    const { user, system } = process.cpuUsage();
    return user + system + this.workerCpuUs;
  }
}

const [way, seconds] = [process.argv[2], Number(process.argv[3])];
const messages = new Messages();
const act = () => (way === 'publish' ? messages.publish() : messages.sample());
/** @param {number} ms */
async function repeat(ms) {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) await act();
  await messages.until(messages.sent);
}

await messages.until(0);
await repeat(seconds * 1000 * WARM_SHARE);
messages.roundTrips.reset();
const [sent, cpuUs, begunMs] = [messages.sent, messages.cpuUs(), performance.now()];
await repeat(seconds * 1000);
const count = messages.sent - sent;
const found = {
  perSecond: (count * 1000) / (performance.now() - begunMs),
  cpuUs: (messages.cpuUs() - cpuUs) / count,
  roundTripUs: messages.roundTrips.count > 0 ? messages.roundTrips.percentile(0.5) : null,
};
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);
