#!/usr/bin/env node
/*
 * The primary: plans the workers, forks them, runs the monitor, and drains.
 *
 *     starting --all listen--> running --signal, q--> draining --all gone--> exit 0
 *         |                                               |
 *         \--error: one line, exit 1                      \--second signal: exit now
 */
import cluster from 'node:cluster';
import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { PATH } from './hub/settings.js';
import { tokenText } from './hub/tokencommand.js';
import { helpText, readConfig } from './lib/config.js';
import { lostOf } from './lib/counts.js';
import { descriptorLimit } from './lib/descriptors.js';
import { exitWith, HoldfastError, messageOf } from './lib/errors.js';
import { formatCount, formatElapsed, formatNoun } from './lib/format.js';
import { tellParent } from './lib/listening.js';
import { nearest } from './lib/nearest.js';
import { onSignals, SIGNAL_STATUS } from './lib/signals.js';
import { hasTerminal } from './lib/terminal.js';
import { readVersion } from './lib/version.js';
import { planWorkers } from './limits/plan.js';
import { Admin } from './monitor/admin.js';
import { Monitor } from './monitor/index.js';
import { chooseDashboard, loadView } from './monitor/views.js';
import { brokerSummary } from './monitor/web/message.js';
import { Certificates } from './primary/certificates.js';
import { Exclusive } from './primary/exclusive.js';
import { runInBackground } from './primary/handover/background.js';
import { Succession } from './primary/handover/succession.js';
import { PrimaryHub } from './primary/hub.js';
import { watchNeighbours } from './primary/neighbours.js';
import { openNotify } from './primary/notify.js';
import { Topics } from './primary/topics.js';
import { checkMemory, checkTls, startLines, urlOf, warningsOf } from './primary/verdict.js';
import { Workers } from './primary/workers.js';
import { chooseTransport, createTransport } from './transport/index.js';

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']);
/** How long to wait at the end for a file system that hangs. */
const CLOSE_MS = 1000;
/** How long the drain may take beyond --drain: workers that don't exit, and the waits above. */
const BEYOND_DRAIN_MS = 15_000;
/** A start that takes longer than this is announced. */
const SLOW_START_MS = 1000;

/** For a Hold that only gets responses of ours. */
const NO_POLICY = { decide: () => /** @type {const} */ ({ pass: true }) };

/** @typedef {'starting' | 'running' | 'draining'} State */

async function main() {
  const [, , command, ...args] = process.argv;
  if (command === 'token') return void process.stdout.write(await tokenText(args, process.env));
  if (nearest(command ?? '', ['token']))
    throw new HoldfastError('BAD_COMMAND', `unknown command '${command}': did you mean token?`);
  const { config, help, version } = readConfig(process.argv.slice(2), process.env);
  if (help) return void process.stdout.write(helpText());
  if (version) return void process.stdout.write(`${readVersion()}\n`);
  if (!cluster.isPrimary) {
    throw new HoldfastError(
      'NOT_PRIMARY',
      'server.js was started as a worker of a cluster (NODE_UNIQUE_ID is set): start it as a separate process',
    );
  }
  if (config.background) return runInBackground(config);
  delete process.env.HOLDFAST_ADMIN_TOKEN; // workers and programs inherit the environment, and don't need it
  const transport = await chooseTransport(config.transport);
  checkTls(config, transport);
  checkMemory(config, transport);
  await new Server(config, transport).run();
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
    this.warnings = warningsOf(config, process.env);
    /** @type {State} */
    this.state = 'starting';
    this.workers = new Workers({
      exec: fileURLToPath(new URL('worker.js', import.meta.url)),
      plan: this.plan,
      transport: transport.name,
      config: { ...config, adminToken: '' }, // workers don't need it
    });
    this.topics = new Topics(this.workers.census);
    this.admin = new Admin({
      host: config.adminHost,
      token: config.adminToken,
      problem: () => this.problem(),
      publish: (channel, message) => this.hub.publish(channel, message),
      hubPath: PATH,
      post: (request) => this.hub.post(request),
      revoke: (request) => this.hub.revoke(request),
      collectGarbage: () => this.collectGarbage(),
      reload: () => this.reload(),
      drain: () => this.drain(),
      live: this.sourceOfDashboards(),
    });
    /** @type {Monitor | null} */
    this.monitor = null;
    /** With NOTIFY_SOCKET. @type {import('./primary/notify.js').Notify | null} */
    this.notify = null;
    const { workers, topics, admin } = this;
    const note = (/** @type {string} */ line) => this.note(line);
    const onChange = workers.useCertificates.bind(workers);
    this.certificates = new Certificates({ config, note, onChange });
    const { certificates } = this;
    const shared = {
      config,
      transport: transport.name,
      version: readVersion(),
      workers,
      topics,
      admin,
      certificates,
      note,
    };
    this.hub = new PrimaryHub(shared);
    this.exclusive = new Exclusive(shared);
    const { hub, exclusive } = this;
    this.succession = new Succession({ ...shared, hub, exclusive, server: this });
    workers.on('note', note);
    /** Whether it was started in a terminal. */
    this.hadTerminal = hasTerminal();
    onSignals(SIGNALS, (signal) => (signal === 'SIGHUP' ? this.hangUp() : this.end(SIGNAL_STATUS[signal])));
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more
  }

  async run() {
    const { config, workers, exclusive, succession, certificates } = this;
    await certificates.open();
    for (const line of this.warnings) this.note(line);
    const problem = () => this.problem();
    this.notify = await openNotify({ env: process.env, workers, problem, onNote: (line) => this.note(line) });
    // What only one server can have comes last if it is another one's now.
    if (!config.takeover) await exclusive.open();
    if (this.state !== 'starting') return;
    await this.start();
    if (succession.before) await exclusive.inherit(succession.before);
    const makeView = await loadView(this.dashboard, config.refreshMs);
    if (this.state !== 'starting') return;
    this.state = 'running';
    if (globalThis.gc) setInterval(() => globalThis.gc?.(), config.gcIntervalMs).unref();
    const log = await exclusive.log;
    const views = [makeView(this.commands()), this.admin, ...(log ? [log] : [])];
    this.monitor = new Monitor({ workers, log, config, views, legacy: succession.moved?.reading ?? null });
    this.describe(log?.path ?? '');
    await this.monitor.start();
    if (!this.isRunning()) return;
    certificates.watch();
    if (config.takeover) await succession.finish();
    else this.notify?.ready();
    await succession.open();
    this.tell(log?.path ?? '');
  }

  /** The other process that waits for it, if there is one. @param {string} csvPath */
  tell(csvPath) {
    const { config, transport, workers } = this;
    const { ports } = this.exclusive;
    if (transport.name === 'hold') void watchNeighbours(ports.port, config.host, (line) => this.note(line));
    const dashboard = ports.adminPort ? urlOf(config.adminHost, ports.adminPort) : '';
    const pids = workers.slots.map(({ pid }) => pid);
    tellParent({ type: 'listening', host: config.host, ...ports, dashboard, csvPath, workers: pids });
  }

  /** @returns {boolean} whether nobody has ended it meanwhile */
  isRunning() {
    return this.state === 'running';
  }

  /** @returns {Promise<void>} once all workers listen, and have the streams of the server before */
  async start() {
    const { config, plan, hub, exclusive, succession, certificates, workers } = this;
    const slow = setTimeout(() => this.note(`starting ${formatNoun(plan.workers, 'worker')}`), SLOW_START_MS);
    try {
      const before = config.takeover ? await succession.connect() : null;
      const feed = await hub.open(before);
      const port = await exclusive.claimPort(succession.before);
      workers.secure = certificates.secure; // after the server before has given its ticket keys
      exclusive.ports.port = await workers.start(port, feed, hub.presenceServer, before !== null);
      if (before) await succession.receive();
    } catch (error) {
      await exclusive.discard();
      throw error;
    } finally {
      clearTimeout(slow);
    }
  }

  /** @returns {import('./monitor/web/live.js').Source} */
  sourceOfDashboards() {
    const { config, transport, topics, plan } = this;
    return {
      openHold: (options) => createTransport(transport.name, { ...options, policy: NO_POLICY }),
      topics,
      status: () => ({ state: this.state, problem: this.problem() }),
      broker: () => this.hub.broker && brokerSummary(this.hub.broker, config),
      about: {
        version: readVersion(),
        transport: transport.name,
        workers: plan.workers,
        shards: plan.shards,
      },
      refreshMs: config.refreshMs,
    };
  }

  /** What the keys of the dashboard do. */
  commands() {
    return {
      quit: () => this.end(SIGNAL_STATUS.SIGINT),
      collectGarbage: () => this.collectGarbage(),
    };
  }

  collectGarbage() {
    this.workers.gc();
    this.note('requested GC in every worker');
  }

  /** Other workers take over, with the code that is on disk now. @returns {string} what happens now @throws {HoldfastError} why it can't */
  reload() {
    if (this.state !== 'running') throw new HoldfastError('CLOSED', `the server is ${this.state}`);
    return this.workers.replacements.begin();
  }

  /** SIGHUP: somebody has sent it, or the terminal was closed. */
  hangUp() {
    const { config, certificates } = this;
    const isAlone = this.hadTerminal && !hasTerminal();
    if (config.sighup === 'auto' && certificates.areUsed && !isAlone) return void certificates.reload();
    if (config.sighup !== 'reload' || this.state !== 'running') return void this.end(SIGNAL_STATUS.SIGHUP);
    void certificates.reload();
    try {
      this.reload();
    } catch (error) {
      this.note(`not reloaded: ${messageOf(error)}`);
    }
  }

  /** As Ctrl-C, but a second call does nothing. @returns {string} what happens now; '' if it was draining already */
  drain() {
    if (this.state === 'draining') return '';
    void this.end(SIGNAL_STATUS.SIGINT);
    return `draining over ${this.config.drainMs} ms`;
  }

  /**
   * Says what was started. The last two lines are visible even in the smallest dashboard.
   * @param {string} csvPath
   */
  describe(csvPath) {
    const { config, plan, transport, admin } = this;
    const { ports } = this.exclusive;
    for (const line of startLines({ config, plan, transport, csvPath, paths: admin.paths, ...ports }))
      this.note(line);
    if (this.dashboard === 'tui') for (const line of this.warnings) this.note(line); // the dashboard hid the first ones
  }

  /** @returns {string} why it is not ready; '' if it is */
  problem() {
    return this.state === 'running' ? this.workers.problem || this.hub.lag() : `the server is ${this.state}`;
  }

  /**
   * Drains and exits with 0. A second call exits now.
   * @param {number} status exit status of a second call
   */
  async end(status) {
    if (this.succession.mustStay())
      return this.note(
        'another server has the streams: this one ends by itself; press Ctrl-C again to quit now',
      );
    if (this.state === 'draining') {
      this.workers.kill();
      process.exit(status);
    }
    const hasStreams = this.state === 'running';
    this.state = 'draining';
    this.hub.ending.abort();
    this.succession.close();
    this.certificates.close();
    this.admin.live.tellState();
    const { monitor, workers, config, hub, exclusive } = this;
    this.note(
      hasStreams
        ? `draining over ${config.drainMs} ms; press Ctrl-C again to quit now`
        : 'stopping before the server was listening',
    );
    this.notify?.stopping((hasStreams ? config.drainMs : 0) + BEYOND_DRAIN_MS);
    exclusive.releasePort();
    await workers.drain(hasStreams ? config.drainMs : 0);
    await hub.close();
    if (monitor) await monitor.stop();
    else await exclusive.discard();
    process.stderr.write(`holdfast: ${this.summary()}\n`);
    process.exit(0);
  }

  /** Another server has everything. @param {string} line */
  leave(line) {
    this.succession.close();
    this.note(line);
    const closed = Promise.all((this.monitor?.views ?? []).map((view) => view.close()));
    void Promise.race([closed, after(CLOSE_MS)]).then(() => {
      process.stderr.write(`holdfast: ${line}; ${this.summary()}\n`);
      process.exit(0);
    });
  }

  /** What can't be gone on after. @param {unknown} error */
  fail(error) {
    this.workers.kill();
    exitWith('holdfast', error);
  }

  /** @returns {string} one line at the end */
  summary() {
    const { elapsedMs = 0, counts } = this.monitor?.reading ?? {};
    const lost = counts ? lostOf(counts) : 0;
    return `ran for ${formatElapsed(elapsedMs)}; ${formatNoun(counts?.opened ?? 0, 'stream')} opened, ${formatCount(lost)} lost`;
  }

  /** @param {string} line for the log */
  note(line) {
    if (this.monitor) this.monitor.note(line);
    else process.stderr.write(`holdfast: ${line}\n`);
  }
}

main().catch((error) => exitWith('holdfast', error));
