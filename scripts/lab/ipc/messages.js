/*
 * What messages between a primary and a worker cost, sent as ours are (primary/messages.js). Says it as one line of JSON.
 *
 *     messages.js publish SECONDS    one way, as many as go
 *     messages.js sample SECONDS     there and back, one at a time: a question, and the snapshot of a worker
 */
import cluster from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { Histogram } from '../../../lib/histogram.js';
import { dispatch } from '../../../primary/messages.js';

const BATCH = 500;
const BATCHES_ON_THEIR_WAY = 4;
const MESSAGE = 'x'.repeat(64);
const WARM_SHARE = 0.25;

class Messages {
  constructor() {
    cluster.setupPrimary({ exec: fileURLToPath(new URL('worker.js', import.meta.url)), args: [] });
    this.worker = cluster.fork();
    this.sent = 0;
    this.answered = -1;
    this.workerCpuUs = 0;
    this.roundTrips = new Histogram();
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

  /** @param {number} id that is waited for, or a later one */
  async until(id) {
    while (this.answered < id) {
      await new Promise((resolve) => {
        this.wake = () => resolve(undefined);
      });
    }
  }

  /** The question at the end of each batch tells that it has arrived. */
  async publish() {
    for (let i = 0; i < BATCH; i++) this.worker.send({ type: 'publish', channel: 'all', message: MESSAGE });
    this.sent += BATCH;
    this.worker.send({ type: 'sample', id: this.sent });
    await this.until(this.sent - BATCH * BATCHES_ON_THEIR_WAY);
  }

  async sample() {
    const begunMs = performance.now();
    this.worker.send({ type: 'sample', id: ++this.sent });
    await this.until(this.sent);
    this.roundTrips.record(performance.now() - begunMs);
  }

  /** @returns {number} of both processes, as far as the last answer said */
  cpuUs() {
    const { user, system } = process.cpuUsage();
    return user + system + this.workerCpuUs;
  }
}

const [way, seconds] = [process.argv[2], Number(process.argv[3])];
const messages = new Messages();
const act = () => (way === 'publish' ? messages.publish() : messages.sample());
/** @param {number} ms */
async function keepOn(ms) {
  const endMs = performance.now() + ms;
  while (performance.now() < endMs) await act();
  await messages.until(messages.sent);
}

await messages.until(0);
await keepOn(seconds * 1000 * WARM_SHARE);
messages.roundTrips.reset();
const [sent, cpuUs, begunMs] = [messages.sent, messages.cpuUs(), performance.now()];
await keepOn(seconds * 1000);
const count = messages.sent - sent;
const found = {
  perSecond: (count * 1000) / (performance.now() - begunMs),
  cpuUs: (messages.cpuUs() - cpuUs) / count,
  roundTripUs: messages.roundTrips.count > 0 ? messages.roundTrips.percentileMs(0.5) * 1000 : null,
};
process.stdout.write(`${JSON.stringify(found)}\n`);
process.exit(0);
