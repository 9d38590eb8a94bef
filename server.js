/*
 * The primary: plans the workers, forks them, runs the monitor, and drains.
 *
 *     starting --all listen--> running --signal, q--> draining --all gone--> exit 0
 *         |                                               |
 *         \--error: one line, exit 1                      \--a second signal: exit at once
 */
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { helpText, readConfig } from './lib/config.js';
import { lostOf } from './lib/counts.js';
import { descriptorLimit } from './lib/descriptors.js';
import { exitWith, HoldfastError } from './lib/errors.js';
import { formatCount, formatElapsed } from './lib/format.js';
import { freePort } from './lib/port.js';
import { onSignals, SIGNAL_STATUS } from './lib/signals.js';
import { findLimits, mostStreams, streamsHere, verdictLine } from './limits/index.js';
import { readMachine } from './limits/kernel.js';
import { planWorkers } from './limits/plan.js';
import { Admin } from './monitor/admin.js';
import { openCsvLog } from './monitor/csv.js';
import { Monitor } from './monitor/index.js';
import { Lines, Notes } from './monitor/lines.js';
import { Workers } from './primary/workers.js';
import { chooseTransport } from './transport/index.js';

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']);
/** How long a folder that hangs can hold up the end. */
const DISCARD_MS = 1000;
/** Streams that are opened a second, as the limits are judged. */
const USUAL_OPEN_RATE = 1000;
/** A start that takes longer says so. */
const SLOW_START_MS = 1000;

/** @typedef {'starting' | 'running' | 'draining'} State */

async function main() {
  const { config, help, version } = readConfig(process.argv.slice(2), process.env);
  if (help) return void process.stdout.write(helpText());
  if (version) return void process.stdout.write(`${versionOf()}\n`);
  if (!cluster.isPrimary) {
    throw new HoldfastError(
      'NOT_PRIMARY',
      'NODE_UNIQUE_ID is set, as in a worker of a cluster: start server.js as a process of its own',
    );
  }
  await new Server(config, await chooseTransport(config.transport)).run();
}

/** @returns {string} */
function versionOf() {
  return JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')).version;
}

class Server {
  /**
   * @param {import('./lib/config.js').Config} config
   * @param {import('./transport/index.js').Choice} transport
   */
  constructor(config, transport) {
    this.config = config;
    this.transport = transport;
    this.dashboard = chooseDashboard(config.dashboard);
    this.plan = planWorkers({
      ...config,
      cores: availableParallelism(),
      descriptorLimit: descriptorLimit(),
      mostShards: transport.mostShards,
    });
    /** @type {State} */
    this.state = 'starting';
    this.workers = new Workers({
      exec: fileURLToPath(new URL('worker.js', import.meta.url)),
      plan: this.plan,
      transport: transport.name,
      config,
    });
    this.admin = new Admin({
      isReady: () => this.isReady(),
      publish: (channel, message) => this.workers.publish(channel, message),
    });
    /** @type {Promise<import('./monitor/csv.js').CsvLog | null>} */
    this.log = Promise.resolve(null);
    /** @type {Monitor | null} */
    this.monitor = null;
    this.workers.on('note', (line) => this.note(line));
    onSignals(SIGNALS, (signal) => this.end(SIGNAL_STATUS[signal]));
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // whoever read it left
  }

  async run() {
    const { config, plan, workers, admin } = this;
    const adminPort =
      config.adminPort === 0 ? 0 : await admin.listen(config.adminPort === 'auto' ? 0 : config.adminPort);
    const slow = setTimeout(() => this.note(`starting ${plan.workers} workers`), SLOW_START_MS);
    if (!config.noLog) this.log = openCsvLog(config.logDir, new Date());
    const log = await this.log;
    if (this.state !== 'starting') return;
    const port = await this.start().catch(async (error) => {
      await this.discardLog();
      throw error;
    });
    clearTimeout(slow);
    const view = await this.openView();
    if (!view) return;
    this.state = 'running';
    if (globalThis.gc) setInterval(() => globalThis.gc?.(), config.gcIntervalMs).unref();
    this.monitor = new Monitor({ workers, log, config, views: [view, admin, ...(log ? [log] : [])] });
    // The last two are in sight in the smallest dashboard.
    if (log) this.note(`CSV in ${log.path}`);
    if (adminPort)
      this.note(`admin on http://127.0.0.1:${adminPort}: /healthz /readyz /frame /ticks /metrics /publish`);
    if (this.transport.note) this.note(this.transport.note);
    this.note(this.verdict(port));
    const tables = plan.workers * plan.shards;
    const parts = plan.shards > 1 ? ` of ${plan.shards} shards` : '';
    const room = formatCount(tables * plan.capacity);
    this.note(`${plan.workers} workers${parts}, ${this.transport.name} transport, room for ${room} streams`);
    const host = config.host.includes(':') ? `[${config.host}]` : config.host || 'localhost';
    this.note(`listening on http://${host}:${port}`);
    await this.monitor.start();
  }

  /**
   * What the limits of the machine say of so many streams; scripts/tune.js has it in full.
   * @param {number} port
   * @returns {string} one line
   */
  verdict(port) {
    const { config, transport, plan } = this;
    const machine = readMachine();
    /** @type {import('./limits/index.js').Wish} */
    const wish = {
      ...config,
      transport: transport.name,
      mostShards: transport.mostShards,
      openRate: USUAL_OPEN_RATE,
      isFleetHere: false,
      ports: [port],
    };
    const room = plan.workers * plan.shards * plan.capacity;
    const streams = config.streams || Math.min(room, streamsHere(machine, wish), mostStreams(machine, wish));
    return verdictLine(findLimits(machine, { ...wish, streams }), streams);
  }

  /** @returns {Promise<number>} the port, when all workers listen */
  async start() {
    const { port, host } = this.config;
    return this.workers.start(this.transport.name === 'hold' ? await freePort(port, host) : port);
  }

  /** @returns {Promise<import('./monitor/index.js').View | null>} null where the server is ending already */
  async openView() {
    const { Terminal } = this.dashboard === 'tui' ? await import('./monitor/terminal.js') : {};
    if (this.state !== 'starting') return null;
    if (this.dashboard === 'lines') return new Lines(process.stdout, process.stderr);
    if (!Terminal) return new Notes(process.stdout, process.stderr);
    return new Terminal({
      quit: () => this.end(SIGNAL_STATUS.SIGINT),
      collectGarbage: () => {
        this.workers.gc();
        this.note('gc asked of every worker');
      },
    });
  }

  isReady() {
    return this.state === 'running' && this.workers.slots.every(({ state }) => state === 'ready');
  }

  /**
   * Drains and exits with 0; asked a second time, exits at once.
   * @param {number} status of an exit at once
   */
  async end(status) {
    if (this.state === 'draining') {
      this.workers.kill();
      process.exit(status);
    }
    const hasStreams = this.state === 'running';
    this.state = 'draining';
    const { monitor, workers, config } = this;
    this.note(
      hasStreams ? `draining over ${config.drainMs} ms; once more ends at once` : 'ending before it listened',
    );
    await workers.drain(hasStreams ? config.drainMs : 0);
    if (monitor) await monitor.stop();
    else await Promise.race([this.discardLog(), after(DISCARD_MS)]);
    const { elapsedMs = 0, counts } = monitor?.reading ?? {};
    process.stderr.write(
      `holdfast: ended after ${formatElapsed(elapsedMs)}; ${formatCount(counts?.opened ?? 0)} streams were opened, ${formatCount(counts ? lostOf(counts) : 0)} lost\n`,
    );
    process.exit(0);
  }

  /** Removes the CSV of a run that did not begin. */
  async discardLog() {
    await (await this.log)?.discard();
  }

  /** @param {string} line something happened */
  note(line) {
    if (this.monitor) this.monitor.note(line);
    else process.stderr.write(`holdfast: ${line}\n`);
  }
}

/**
 * @param {import('./lib/config.js').Config['dashboard']} wish
 * @returns {'tui' | 'lines' | 'off'}
 * @throws {HoldfastError} NO_TERMINAL
 */
function chooseDashboard(wish) {
  const inTerminal =
    process.stdout.isTTY && process.stdin.isTTY && process.stdout.columns > 0 && process.env.TERM !== 'dumb';
  if (wish === 'auto') return inTerminal ? 'tui' : 'lines';
  if (wish === 'tui' && !inTerminal) {
    throw new HoldfastError(
      'NO_TERMINAL',
      '--dashboard tui needs a terminal on stdin and stdout: give lines or off',
    );
  }
  return wish;
}

main().catch((error) => exitWith('holdfast', error));
