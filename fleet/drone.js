/*
 * A drone: opens streams to a server, keeps as many open as it is told, and measures what a client sees of them.
 */
import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { makeFolder } from '../lib/folder.js';
import { formatCount } from '../lib/format.js';
import { FLAG, integer, option, optionLines, readOptions, text } from '../lib/options.js';
import { sumOf } from './drone/causes.js';
import { askConsent, isLoopback } from './drone/consent.js';
import { Control } from './drone/control.js';
import { createDialer } from './drone/dial.js';
import { addRecorded, emptyHistograms, encode, MEASURES, percentilesOf } from './drone/histograms.js';
import { changedParams, defaultParams, hostsOf, loopbackSources, PARAMS, requestOf } from './drone/params.js';
import { Reconciler } from './drone/reconcile.js';

const STEP_MS = 100;
const REPORT_MS = 1000;
const MOST_SAMPLES = 8;
/**
 * The loopback range in blocks, one a drone by its pid. Two that dial from one address look in vain for its free ports,
 * one after the other, and that takes more CPU than all else.
 */
const LOOPBACK_BLOCKS = 65_000;
const BLOCK_ADDRESSES = 256;

// biome-ignore format: a table reads best with a row a line
const OPTIONS = [
  option('listen', 'listen', text('ADDRESS', 'an address of this machine'), '127.0.0.1', 'address of its control; any but loopback needs a token'),
  option('listen-port', 'listenPort', integer(0, 65_535), 8889, 'port of its control; 0 takes a free one'),
  option('token', 'token', text('TEXT', 'a text'), '', 'what those who steer it must know; better in HOLDFAST_TOKEN, which no list of processes shows'),
  option('register', 'register', text('DIR', 'a folder'), '', 'folder where a file says how to reach it, while it runs'),
  option('quiet', 'quiet', FLAG, false, 'say nothing each second'),
];

/** @typedef {import('./drone/params.js').Params} Params */
/** @typedef {import('./drone/dial.js').Counters} Counters */

export class Drone {
  /** @param {import('./drone/dial.js').Dialer} dialer */
  constructor(dialer) {
    this.dialer = dialer;
    this.params = { ...defaultParams() };
    this.isAimed = false;
    /** 0 where it is not known. */
    this.pingIntervalMs = 0;
    this.startedAt = new Date();
    this.reconciler = new Reconciler();
    this.histograms = emptyHistograms();
    /** @type {Counters['samples']} */
    this.samples = [];
    this.counters = dialer.take();
    /** As they were when it began to count. */
    this.before = this.counters;
    this.timer = setInterval(() => this.step(), STEP_MS);
  }

  /**
   * @param {[string, string][]} changes
   * @returns {Promise<Params>}
   * @throws {import('../lib/errors.js').HoldfastError} BAD_PARAM, NO_HOST, NO_CONSENT; then nothing has changed
   */
  async set(changes) {
    const wanted = changedParams(this.params, changes);
    if (wanted.n > 0) await this.aim(wanted);
    // Another `set` may have come in while the target was asked.
    this.params = changedParams(this.params, changes);
    return this.params;
  }

  /**
   * The parameters that it begins with; a target that refuses leaves it waiting to be told another.
   * @param {Params} params
   */
  async start(params) {
    this.params = params;
    if (params.n > 0) await this.aim(params);
  }

  /** @param {Params} params */
  async aim(params) {
    const { host, port, sources, interval, timeout, expect, channel, path, n } = params;
    const hosts = hostsOf(host);
    const consents = await Promise.all(hosts.flatMap((one) => port.map((of) => askConsent(one, of))));
    const addresses = [...new Set(consents.map(({ address }) => address))];
    const [{ pingIntervalMs }] = consents;
    // Half of what they could reach: where the target rises step by step the first sources get a part of each step.
    const destinations = Math.ceil((addresses.length * port.length) / 2);
    const isLocal4 = addresses.every((address) => isLoopback(address) && !address.includes(':'));
    const own = isLocal4 ? loopbackSources(n, firstSource(), destinations) : [];
    this.pingIntervalMs = interval === 'auto' ? (pingIntervalMs ?? 0) : interval;
    this.dialer.aim({
      addresses,
      ports: port,
      sources: sources === 'auto' ? own : sources,
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
    for (const name of MEASURES) addRecorded(this.histograms[name], this.counters[name]);
    this.samples.push(...this.counters.samples);
    this.samples.splice(0, this.samples.length - MOST_SAMPLES);
  }

  /** @returns {'idle' | 'climbing' | 'holding' | 'closing' | 'backing-off' } */
  state() {
    const { open, inFlight } = this.counters;
    const { n } = this.params;
    if (open + inFlight > n) return 'closing';
    if (n === 0) return 'idle';
    if (open === n) return 'holding';
    return this.reconciler.waitingCount() > 0 ? 'backing-off' : 'climbing';
  }

  /** @returns {Record<string, any>} as `GET /counts` says them */
  counts() {
    const { counters, before } = this;
    const since = (/** @type {'opened' | 'closed' | 'pings' | 'messages' | 'bytes'} */ name) =>
      counters[name] - before[name];
    return {
      target: this.params.n,
      open: counters.open,
      inFlight: counters.inFlight,
      waiting: this.reconciler.waitingCount(),
      overdue: counters.overdue,
      opened: since('opened'),
      closed: since('closed'),
      pings: since('pings'),
      messages: since('messages'),
      bytes: since('bytes'),
      failed: differenceOf(counters.failed, before.failed),
      lost: differenceOf(counters.lost, before.lost),
    };
  }

  /** @returns {Record<string, any>} as `GET /` says it */
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
      histograms: Object.fromEntries(MEASURES.map((name) => [name, encode(histograms[name])])),
    };
  }

  /** Closes all, opens anew, and counts anew. */
  async restart() {
    // The target is asked first: what follows is one step, in which none is opened.
    if (this.params.n > 0) await this.aim(this.params);
    this.counters = this.dialer.take();
    const closing = this.counters.open;
    this.dialer.close(closing);
    this.startedAt = new Date();
    this.histograms = emptyHistograms();
    this.samples = [];
    // What is being closed is counted when it is.
    this.before = { ...this.counters, closed: this.counters.closed + closing };
    this.reconciler = new Reconciler(this.counters.opened, failuresOf(this.counters));
  }

  async stop() {
    clearInterval(this.timer);
    await this.dialer.stop();
  }
}

/** @returns {number} how many addresses of the loopback range are those of other drones */
function firstSource() {
  return (process.pid % LOOPBACK_BLOCKS) * BLOCK_ADDRESSES;
}

/** @param {Counters} counters @returns {number} streams that failed or were lost */
function failuresOf({ failed, lost }) {
  return sumOf(failed) + sumOf(lost);
}

/** @param {Record<string, number>} now @param {Record<string, number>} before */
function differenceOf(now, before) {
  return Object.fromEntries(Object.keys(now).map((name) => [name, now[name] - before[name]]));
}

/** @param {Drone} drone @returns {string} */
function lineOf(drone) {
  const counts = drone.counts();
  const { open, target, pings } = counts;
  const sample = drone.samples.at(-1);
  const streams = `streams ${formatCount(open)} of ${formatCount(target)} (${drone.state()})`;
  const failures = `failed ${formatCount(sumOf(counts.failed))}, lost ${formatCount(sumOf(counts.lost))}`;
  const problem = sample ? `last ${sample.cause}: ${JSON.stringify(sample.text)}` : '';
  return `drone: ${streams}, ${failures}, pings read ${formatCount(pings)}${problem ? ` (${problem})` : ''}\n`;
}

/**
 * Says in a file how it can be reached, readable for its user alone.
 * @param {string} folder @param {{ url: string, token: string }} how
 * @throws {HoldfastError} BAD_FOLDER
 */
function register(folder, how) {
  const file = join(folder, `${process.pid}.json`);
  try {
    makeFolder(folder, 0o700);
    writeFileSync(`${file}.part`, JSON.stringify({ pid: process.pid, ...how }), { mode: 0o600 });
    renameSync(`${file}.part`, file); // whole from the moment it is there
  } catch (error) {
    throw new HoldfastError(
      'BAD_FOLDER',
      `can't write to --register ${folder}: ${messageOf(error)}; give another`,
    );
  }
  process.on('exit', () => rmSync(file, { force: true }));
}

/** @param {string} address @param {number} port */
function urlOf(address, port) {
  return `http://${address.includes(':') ? `[${address}]` : address}:${port}`;
}

async function main() {
  const { HOLDFAST_TOKEN } = process.env; // the other variables are the server's
  const { values, help } = readOptions([...PARAMS, ...OPTIONS], process.argv.slice(2), { HOLDFAST_TOKEN });
  if (help) return void process.stdout.write(helpText());
  const { listen, listenPort, token, register: folder, quiet, ...params } = /** @type {any} */ (values);
  const drone = new Drone(await createDialer());
  const stop = () => {
    control.close();
    clearInterval(report);
    process.stdout.write(lineOf(drone));
    drone.stop().then(() => process.exit(0));
  };
  const control = new Control(
    {
      stats: () => drone.stats(),
      counts: () => drone.counts(),
      set: (changes) => drone.set(changes),
      restart: () => drone.restart(),
      stop,
    },
    token,
  );
  const url = urlOf(listen, await control.listen(listen, listenPort));
  const report = setInterval(() => quiet || process.stdout.write(lineOf(drone)), REPORT_MS);
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, stop);
  // Who started it has gone.
  process.once('disconnect', stop);
  if (process.connected === false) stop(); // it had gone before
  await drone.start(params);
  if (folder) register(folder, { url, token });
  process.stdout.write(`drone: control on ${url}/\n`);
}

function helpText() {
  return `Usage: node fleet/drone.js [options]

Opens streams to a server, keeps as many open as it is told, and measures what a client sees of them. It is steered over
HTTP: GET / says how it does, GET /counts only its counts, GET /set?n=1000&ramp=500 sets parameters, POST /restart and POST /stop do that.

Parameters, which can be set while it runs:
${optionLines(PARAMS)}

Options:
${optionLines(OPTIONS)}

Ctrl-C closes the streams and ends it.
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => exitWith('drone', error));
}
