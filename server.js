#!/usr/bin/env node
/*
 * The primary: plans the workers, forks them, runs the monitor, and drains.
 *
 *     starting --all listen--> running --signal, q--> draining --all gone--> exit 0
 *         |                                               |
 *         \--error: one line, exit 1                      \--second signal: exit now
 */
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openBroker } from './broker/index.js';
import { prepareInheritance } from './broker/inherit.js';
import { BrokerServer } from './broker/server.js';
import { SwitchBroker } from './broker/switch.js';
import { Nodes } from './hub/nodes/index.js';
import { Presence } from './hub/presence/index.js';
import { PresenceServer } from './hub/presence/server.js';
import { Posts } from './hub/protocol/posts.js';
import { checkedRevocations, revocationsIn } from './hub/revocations.js';
import { cachedIn, natsIn, rulesIn } from './hub/serveroptions.js';
import { PATH } from './hub/settings.js';
import { tokenText } from './hub/tokencommand.js';
import { adminCautions, tokenCautions } from './lib/cautions.js';
import { helpText, OPTIONS, readConfig, uselessOptions } from './lib/config.js';
import { lostOf } from './lib/counts.js';
import { descriptorLimit } from './lib/descriptors.js';
import { codeOf, exitWith, HoldfastError, listenError, messageOf } from './lib/errors.js';
import { formatCount, formatElapsed, formatNoun, formatSeconds } from './lib/format.js';
import { tellParent } from './lib/listening.js';
import { onSignals, SIGNAL_STATUS } from './lib/signals.js';
import { variableWarnings } from './lib/variables.js';
import { planWorkers } from './limits/plan.js';
import { Admin } from './monitor/admin.js';
import { continueCsvLog, openCsvLog } from './monitor/csv.js';
import { Monitor } from './monitor/index.js';
import { chooseDashboard, loadView } from './monitor/views.js';
import { brokerSummary } from './monitor/web/message.js';
import { runInBackground } from './primary/handover/background.js';
import { Succession } from './primary/handover/succession.js';
import { watchNeighbours } from './primary/neighbours.js';
import { openNotify } from './primary/notify.js';
import { Topics } from './primary/topics.js';
import { checkMemory, startLines, urlOf } from './primary/verdict.js';
import { Workers } from './primary/workers.js';
import { chooseTransport, claimPort, createTransport, joinPort } from './transport/index.js';

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGQUIT', 'SIGTERM']);
/** How long to wait at the end for a file system that hangs. */
const DISCARD_MS = 1000;
/** How long the ends of the last subscriptions may take to be stored. */
const FLUSH_MS = 1000;
/** How long to wait at the end for a store on such a file system. What was answered is safe. */
const CLOSE_MS = 5000;
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
  const { config, help, version } = readConfig(process.argv.slice(2), process.env);
  if (help) return void process.stdout.write(helpText());
  if (version) return void process.stdout.write(`${versionOf()}\n`);
  if (!cluster.isPrimary) {
    throw new HoldfastError(
      'NOT_PRIMARY',
      'server.js was started as a worker of a cluster (NODE_UNIQUE_ID is set): start it as a separate process',
    );
  }
  if (config.background) return runInBackground(config);
  delete process.env.HOLDFAST_ADMIN_TOKEN; // workers and programs inherit the environment, and don't need it
  const transport = await chooseTransport(config.transport);
  checkMemory(config, transport);
  await new Server(config, transport).run();
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
    this.warnings = [
      ...variableWarnings(OPTIONS, process.env),
      ...uselessOptions(config, globalThis.gc !== undefined),
      ...tokenCautions(config),
      ...adminCautions(config),
    ];
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
      publish: (channel, message) => this.publish(channel, message),
      hubPath: PATH,
      post: (request) => this.post(request),
      revoke: async (request) =>
        (this.nodes ?? this.workers.revocations).revoke(await revocationsIn(request)),
      collectGarbage: () => this.collectGarbage(),
      reload: () => this.reload(),
      drain: () => this.drain(),
      live: this.sourceOfDashboards(),
    });
    /** @type {BrokerServer | null} */
    this.broker = null;
    this.ending = new AbortController();
    /** With --subscriptions. @type {Presence | null} */
    this.presence = null;
    /** With --nats. @type {Nodes | null} */
    this.nodes = null;
    /** What is posted to the admin port. @type {Posts | null} */
    this.posts = null;
    /** @type {Promise<import('./monitor/csv.js').CsvLog | null>} */
    this.log = Promise.resolve(null);
    /** @type {Monitor | null} */
    this.monitor = null;
    /** @type {import('./transport/index.js').PortClaim | null} */
    this.claim = null;
    /** With NOTIFY_SOCKET. @type {import('./primary/notify.js').Notify | null} */
    this.notify = null;
    this.ports = { port: 0, adminPort: 0 };
    /** Somebody wants it to end although another server still needs it. */
    this.wasAsked = false;
    this.succession = new Succession({
      config,
      transport: transport.name,
      version: versionOf(),
      workers: this.workers,
      server: this,
      note: (line) => this.note(line),
    });
    /** The server that this one takes over from. @type {import('./primary/handover/protocol.js').Accepted | null} */
    this.before = null;
    /** What it has handed over. @type {import('./primary/handover/protocol.js').Moved | null} */
    this.moved = null;
    this.workers.on('note', (line) => this.note(line));
    onSignals(SIGNALS, (signal) => (signal === 'SIGHUP' ? this.hangUp() : this.end(SIGNAL_STATUS[signal])));
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more
  }

  async run() {
    const { config, workers } = this;
    for (const line of this.warnings) this.note(line);
    const problem = () => this.problem();
    this.notify = await openNotify({ env: process.env, workers, problem, onNote: (line) => this.note(line) });
    // What only one server can have comes last if it is another one's now.
    if (!config.takeover) await this.openPorts();
    if (this.state !== 'starting') return;
    this.ports.port = await this.start();
    if (config.takeover) await this.inheritPorts();
    const makeView = await loadView(this.dashboard, config.refreshMs);
    if (this.state !== 'starting') return;
    this.state = 'running';
    if (globalThis.gc) setInterval(() => globalThis.gc?.(), config.gcIntervalMs).unref();
    const log = await this.log;
    const views = [makeView(this.commands()), this.admin, ...(log ? [log] : [])];
    this.monitor = new Monitor({ workers, log, config, views, legacy: this.moved?.reading ?? null });
    this.describe(log?.path ?? '');
    await this.monitor.start();
    if (!this.isRunning()) return;
    if (config.takeover) await this.finishTakeover();
    else this.notify?.ready();
    await this.succession.open();
    this.tell(log?.path ?? '');
  }

  async openPorts() {
    const { config } = this;
    this.ports.adminPort = await this.openAdmin(config.adminPort === 'auto' ? 0 : config.adminPort);
    if (!config.noLog) this.log = openCsvLog(config.logDir, new Date());
    await this.log;
  }

  /** The streams are here already: nothing that fails now may end them. */
  async inheritPorts() {
    const { config, before } = this;
    const port = config.adminPort === 'auto' ? (before?.adminPort ?? 0) : config.adminPort;
    const failed = (/** @type {unknown} */ error) => this.note(`taken over without it: ${messageOf(error)}`);
    this.ports.adminPort = (await this.openAdmin(port).catch(failed)) ?? 0;
    if (config.noLog) return;
    const log = before?.csvPath ? await continueCsvLog(before.csvPath) : null;
    this.log = log
      ? Promise.resolve(log)
      : openCsvLog(config.logDir, new Date()).catch((error) => failed(error) ?? null);
  }

  async finishTakeover() {
    this.notify?.tookOver(this.moved?.watchdogMs ?? 0);
    await this.succession.finish(() => this.prepareInheritance());
    if (this.broker?.broker.bus) this.startNodes(this.broker.broker.bus);
    this.note(`took over ${formatNoun(this.moved?.streams ?? 0, 'stream')} from pid ${this.before?.pid}`);
  }

  /** The publications of the other server become this one's. */
  prepareInheritance() {
    const broker = /** @type {SwitchBroker} */ (this.broker?.broker);
    return prepareInheritance(broker, this.brokerOptions, this.ending.signal);
  }

  /** The other process that waits for it, if there is one. @param {string} csvPath */
  tell(csvPath) {
    const { config, transport, workers, ports } = this;
    if (transport.name === 'hold') void watchNeighbours(ports.port, config.host, (line) => this.note(line));
    const dashboard = ports.adminPort ? urlOf(config.adminHost, ports.adminPort) : '';
    const pids = workers.slots.map(({ pid }) => pid);
    tellParent({ type: 'listening', host: config.host, ...ports, dashboard, csvPath, workers: pids });
  }

  /** @returns {boolean} whether nobody has ended it meanwhile */
  isRunning() {
    return this.state === 'running';
  }

  /** @param {number} port 0 takes a free one @returns {Promise<number>} its port; 0 if it is off */
  async openAdmin(port) {
    return this.config.adminPort === 0 ? 0 : this.admin.listen(port);
  }

  /** @returns {Promise<number>} the port, once all workers listen */
  async start() {
    const { workers } = this.plan;
    const slow = setTimeout(() => this.note(`starting ${formatNoun(workers, 'worker')}`), SLOW_START_MS);
    try {
      this.broker = await this.openBroker();
      this.claim = await this.claimPort();
      const presence = this.presence && new PresenceServer(this.presence);
      const port = await this.workers.start(this.claim.port, this.broker, presence, this.before !== null);
      if (this.before) this.moved = await this.succession.receive();
      return port;
    } catch (error) {
      await this.discardLog();
      throw error;
    } finally {
      clearTimeout(slow);
    }
  }

  /** @returns {Promise<BrokerServer>} */
  async openBroker() {
    const { config } = this;
    const broker = config.takeover
      ? await this.brokerOfOther()
      : await openBroker(this.brokerOptions, this.ending.signal);
    broker.follow((publications) => this.topics.published(publications));
    const onError = (/** @type {unknown} */ error) => this.note(`presence: ${messageOf(error)}`);
    if (config.subscriptions)
      this.presence = new Presence({
        broker,
        path: PATH,
        mostBytes: config.maxPresenceBytes,
        onError,
        identity: this.before?.identity,
      });
    if (broker.bus) this.startNodes(broker.bus);
    const onStored = (/** @type {Parameters<Posts['onStored']>[0]} */ counts) => this.workers.count(counts);
    this.posts = new Posts({ broker, rules: rulesIn(config), onStored });
    return new BrokerServer(broker);
  }

  get brokerOptions() {
    const { config } = this;
    return {
      ...config,
      syncs: config.storeSync === 'on',
      isCached: cachedIn(config),
      hasCached: config.cacheTopics.length > 0,
      nats: natsIn(config),
      onNote: (/** @type {string} */ line) => this.note(line),
    };
  }

  /** The broker of the server that this one takes over from, until this one has its own. */
  async brokerOfOther() {
    const { accepted, broker } = await this.succession.connect();
    this.before = accepted;
    return new SwitchBroker(broker, this.config);
  }

  /** Other servers on the same stream know this one from now on. @param {import('./broker/nats/bus.js').Bus} bus */
  startNodes(bus) {
    const { revocations } = this.workers;
    const end = async (/** @type {unknown[]} */ list) => revocations.revoke(checkedRevocations(list));
    const onNote = (/** @type {string} */ line) => this.note(line);
    this.nodes = new Nodes({ bus, presence: this.presence, end, onNote });
    this.nodes.start();
  }

  /** @returns {import('./monitor/web/live.js').Source} */
  sourceOfDashboards() {
    const { config, transport, topics, plan } = this;
    return {
      openHold: (options) => createTransport(transport.name, { ...options, policy: NO_POLICY }),
      topics,
      status: () => ({ state: this.state, problem: this.problem() }),
      broker: () => this.broker && brokerSummary(this.broker.broker, config),
      about: { version: versionOf(), transport: transport.name, workers: plan.workers, shards: plan.shards },
      refreshMs: config.refreshMs,
    };
  }

  /** @param {string} channel @param {string} message */
  publish(channel, message) {
    this.topics.publishedTo(channel);
    return this.workers.publish(channel, message);
  }

  /** Publishes what was posted to the admin port. @param {import('node:http').IncomingMessage} request */
  async post(request) {
    if (!this.posts) throw new HoldfastError('CLOSED', this.problem());
    return this.posts.take(request);
  }

  /** Keeps other servers off the port, even while no worker listens. It lasts until the drain. */
  claimPort() {
    const { before, transport } = this;
    const { host } = this.config;
    const port = before?.port ?? this.config.port;
    return (before ? joinPort : claimPort)(transport.name, port, host).catch((error) => {
      throw codeOf(error) ? listenError(error, 'port', port, host) : error;
    });
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

  /** SIGHUP. */
  hangUp() {
    if (this.config.sighup === 'drain' || this.state !== 'running')
      return void this.end(SIGNAL_STATUS.SIGHUP);
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
    const { config, plan, transport, admin, ports } = this;
    for (const line of startLines({ config, plan, transport, csvPath, paths: admin.paths, ...ports }))
      this.note(line);
    if (this.dashboard === 'tui') for (const line of this.warnings) this.note(line); // the dashboard hid the first ones
  }

  /** @returns {string} why it is not ready; '' if it is */
  problem() {
    return this.state === 'running' ? this.workers.problem || this.lag() : `the server is ${this.state}`;
  }

  /** @returns {string} whether this server is too far behind others; '' if not */
  lag() {
    const { lagMs = 0, problem = '' } = this.broker?.broker.state ?? {};
    if (lagMs <= this.config.natsMaxLagMs) return '';
    return `this server is ${formatSeconds(lagMs)} behind NATS${problem && ` (${problem})`}`;
  }

  /**
   * Drains and exits with 0. A second call exits now.
   * @param {number} status exit status of a second call
   */
  async end(status) {
    if (this.succession.departure?.hasMoved && !this.wasAsked) {
      this.wasAsked = true; // the other server still needs this one
      return this.note(
        'another server has the streams: this one ends by itself; press Ctrl-C again to quit now',
      );
    }
    if (this.state === 'draining') {
      this.workers.kill();
      process.exit(status);
    }
    const hasStreams = this.state === 'running';
    this.state = 'draining';
    this.ending.abort();
    this.succession.close();
    this.admin.live.tellState();
    const { monitor, workers, config } = this;
    this.note(
      hasStreams
        ? `draining over ${config.drainMs} ms; press Ctrl-C again to quit now`
        : 'stopping before the server was listening',
    );
    this.notify?.stopping((hasStreams ? config.drainMs : 0) + BEYOND_DRAIN_MS);
    this.claim?.release(); // the next server may start while this one closes its streams
    await workers.drain(hasStreams ? config.drainMs : 0);
    await this.closeBroker();
    if (monitor) await monitor.stop();
    else await Promise.race([this.discardLog(), after(DISCARD_MS)]);
    process.stderr.write(`holdfast: ${this.summary()}\n`);
    process.exit(0);
  }

  async closeBroker() {
    await Promise.race([this.presence?.flush(), after(FLUSH_MS)]);
    this.presence?.close();
    await Promise.race([this.broker?.close(), after(CLOSE_MS)]);
  }

  /** Another server has everything. @param {string} line */
  leave(line) {
    this.succession.close();
    this.note(line);
    const closed = Promise.all((this.monitor?.views ?? []).map((view) => view.close()));
    void Promise.race([closed, after(DISCARD_MS)]).then(() => {
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

  /** Removes the CSV if the server did not start. */
  async discardLog() {
    await (await this.log)?.discard();
  }

  /** @param {string} line for the log */
  note(line) {
    if (this.monitor) this.monitor.note(line);
    else process.stderr.write(`holdfast: ${line}\n`);
  }
}

main().catch((error) => exitWith('holdfast', error));
