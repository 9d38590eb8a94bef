/*
 * A drone: opens streams to a server on this machine and keeps them open. The seed of the fleet.
 */
import { connect, isIP } from 'node:net';
import { exitWith, HoldfastError } from '../lib/errors.js';
import { formatCount } from '../lib/format.js';
import { FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';

/** Openings that are on their way at once: no more than a listening socket queues. */
const MOST_IN_FLIGHT = 256;
const STEP_MS = 20;
const REQUEST = 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n';
/** What the first bytes of a stream must hold. */
const GREETING = /^HTTP\/1\.1 200 [\s\S]*Welcome!/;

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('host', 'host', text('ADDRESS', 'a loopback address'), '127.0.0.1', 'address of the server; loopback only'),
  option('port', 'port', integer(1, 65_535), 8888, 'port of the server'),
  option('streams', 'target', integer(1, 100_000), 5000, 'streams to open and keep'),
  option('ramp', 'ramp', integer(1, 100_000), 600, 'streams to open a second'),
  option('quiet', 'quiet', FLAG, false, 'say nothing until the end'),
];

const kDrone = Symbol('drone');
const kGreeted = Symbol('greeted');

/** @typedef {import('node:net').Socket & { [kDrone]: Drone, [kGreeted]: boolean }} Stream */

export class Drone {
  /** @param {{ host: string, port: number, target: number, ramp: number }} options */
  constructor({ host, port, target, ramp }) {
    this.host = host;
    this.port = port;
    this.target = target;
    this.ramp = ramp;
    this.stats = { dialled: 0, inFlight: 0, open: 0, failed: 0, lost: 0, pings: 0 };
    this.problem = '';
    /** @type {Set<Stream>} */
    this.streams = new Set();
    this.startedMs = Date.now();
    this.timer = setInterval(() => this.climb(), STEP_MS);
  }

  /** Dials what the ramp has come to by now. */
  climb() {
    const due = Math.min(this.target, ((Date.now() - this.startedMs) / 1000) * this.ramp);
    while (this.stats.dialled < due && this.stats.inFlight < MOST_IN_FLIGHT) this.dial();
    if (this.stats.dialled >= this.target) clearInterval(this.timer);
  }

  dial() {
    const socket = connect({ host: this.host, port: this.port, noDelay: true });
    const stream = Object.assign(socket, { [kDrone]: this, [kGreeted]: false });
    this.streams.add(stream);
    this.stats.dialled++;
    this.stats.inFlight++;
    stream.on('data', onData);
    stream.on('error', onError);
    stream.on('close', onClose);
    stream.write(REQUEST);
  }

  /** @returns {boolean} whether all were dialled and none is left */
  isOver() {
    const { dialled, inFlight, open } = this.stats;
    return dialled >= this.target && inFlight + open === 0;
  }

  /** Closes all streams; none counts as lost. */
  stop() {
    clearInterval(this.timer);
    for (const stream of this.streams) stream.off('close', onClose).destroy();
    this.streams.clear();
  }
}

/** @this {Stream} @param {Buffer} data */
function onData(data) {
  const drone = this[kDrone];
  if (this[kGreeted]) {
    drone.stats.pings++;
    return;
  }
  if (!GREETING.test(data.toString('latin1'))) {
    drone.problem = JSON.stringify(data.toString('latin1', 0, 80));
    this.destroy();
    return;
  }
  this[kGreeted] = true;
  drone.stats.inFlight--;
  drone.stats.open++;
}

/** @this {Stream} @param {Error} error */
function onError(error) {
  this[kDrone].problem = error.message;
}

/** @this {Stream} */
function onClose() {
  const { stats, streams } = this[kDrone];
  streams.delete(this);
  if (this[kGreeted]) {
    stats.open--;
    stats.lost++;
  } else {
    stats.inFlight--;
    stats.failed++;
  }
}

/** @param {Drone} drone @returns {string} */
function lineOf({ stats, target, problem }) {
  const { open, failed, lost, pings } = stats;
  const counts = `streams ${formatCount(open)} of ${formatCount(target)}, failed ${failed}, lost ${lost}`;
  return `drone: ${counts}, pings read ${formatCount(pings)}${problem ? ` (last problem: ${problem})` : ''}\n`;
}

function main() {
  const { values, help } = readOptions(OPTIONS, process.argv.slice(2), {});
  if (help) {
    return process.stdout.write(`Usage: node fleet/drone.js [options]

Opens streams to a Holdfast server on this machine and keeps them open until Ctrl-C, or until the last is lost. It dials
each once. The exit status is 1 where one failed or was lost.

${optionLines(OPTIONS)}
`);
  }
  const options =
    /** @type {{ host: string, port: number, target: number, ramp: number, quiet: boolean }} */ (
      /** @type {unknown} */ (values)
    );
  if (!isLoopback(options.host)) {
    throw new HoldfastError(
      'NOT_LOOPBACK',
      `--host got '${options.host}': a drone dials loopback only, 127.0.0.1 or ::1`,
    );
  }
  const drone = new Drone(options);
  const report = setInterval(() => {
    if (!options.quiet) process.stdout.write(lineOf(drone));
    if (drone.isOver()) end();
  }, 1000);
  const end = () => {
    clearInterval(report);
    drone.stop();
    process.stdout.write(lineOf(drone));
    process.exitCode = drone.stats.failed + drone.stats.lost > 0 ? 1 : 0;
  };
  process.once('SIGINT', end);
  process.once('SIGTERM', end);
}

/** @param {string} host */
function isLoopback(host) {
  return host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}

try {
  main();
} catch (error) {
  exitWith('drone', error);
}
