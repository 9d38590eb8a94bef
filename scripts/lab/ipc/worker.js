/*
 * The worker's side of messages.js: receives what is published, and answers each request with a snapshot as large as a real one.
 */
import { Histogram } from '../../../lib/histogram.js';
import { Sampler } from '../../../lib/sampler.js';
import { dispatch } from './dispatch.js';

const sampler = new Sampler(10);
const none = new Histogram().take();
const counts = {
  streams: 7500,
  opened: 7500,
  pings: 1e6,
  bytesWritten: 1e7,
  backlogBytes: 0,
  deliveries: 0,
  cut: 0,
};
const histograms = { lateness: none, openCpu: none, pingCpu: none, deliveryCpu: none };

process.on('disconnect', () => process.exit(0));
process.on('message', (message) => dispatch(handlers, /** @type {any} */ (message)));

const handlers = {
  publish: () => {},

  /** @param {{ id: number }} message */
  sample({ id }) {
    const { user, system } = process.cpuUsage();
    const snapshot = { ...sampler.take(), ...counts, closed: {}, refused: {}, ...histograms };
    process.send?.({ type: 'snapshot', id, cpuUs: user + system, snapshot });
  },
};

process.send?.({ type: 'hello' });
