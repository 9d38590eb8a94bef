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
import { BrokerServer } from './broker/server.js';
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
import { openCsvLog } from './monitor/csv.js';
import { Monitor } from './monitor/index.js';
import { chooseDashboard, loadView } from './monitor/views.js';
import { brokerSummary } from './monitor/web/message.js';
import { watchNeighbours } from './primary/neighbours.js';
import { openNotify } from './primary/notify.js';
import { Topics } from './primary/topics.js';
import { checkMemory, limitsLine, openLine, planLine } from './primary/verdict.js';
import { Workers } from './primary/workers.js';
import { chooseTransport, claimPort, createTransport } from './transport/index.js';

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
    this.workers.on('note', (line) => this.note(line));
    onSignals(SIGNALS, (signal) => (signal === 'SIGHUP' ? this.hangUp() : this.end(SIGNAL_STATUS[signal])));
    for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {}); // nobody reads it any more
  }

  async run() {
    const { config, transport, workers, admin } = this;
    for (const line of this.warnings) this.note(line);
    const problem = () => this.problem();
    this.notify = await openNotify({ env: process.env, workers, problem, onNote: (line) => this.note(line) });
    const adminPort = await this.openAdmin();
    if (!config.noLog) this.log = openCsvLog(config.logDir, new Date());
    const log = await this.log;
    if (this.state !== 'starting') return;
    const port = await this.start();
    const makeView = await loadView(this.dashboard, config.refreshMs);
    if (this.state !== 'starting') return;
    this.state = 'running';
    if (globalThis.gc) setInterval(() => globalThis.gc?.(), config.gcIntervalMs).unref();
    const views = [makeView(this.commands()), admin, ...(log ? [log] : [])];
    this.monitor = new Monitor({ workers, log, config, views });
    const csvPath = log?.path ?? '';
    this.describe(port, adminPort, csvPath);
    await this.monitor.start();
    if (!this.isRunning()) return;
    if (transport.name === 'hold') void watchNeighbours(port, config.host, (line) => this.note(line));
    const pids = workers.slots.map(({ pid }) => pid);
    this.notify?.ready();
    const dashboard = adminPort ? urlOf(config.adminHost, adminPort) : '';
    const ports = { host: config.host, port, adminPort, dashboard };
    tellParent({ type: 'listening', ...ports, csvPath, workers: pids });
  }

  /** @returns {boolean} whether nobody has ended it meanwhile */
  isRunning() {
    return this.state === 'running';
  }

  /** @returns {Promise<number>} its port; 0 if it is off */
  async openAdmin() {
    const { adminPort } = this.config;
    if (adminPort === 0) return 0;
    return this.admin.listen(adminPort === 'auto' ? 0 : adminPort);
  }

  /** @returns {Promise<number>} the port, once all workers listen */
  async start() {
    const { workers } = this.plan;
    const slow = setTimeout(() => this.note(`starting ${formatNoun(workers, 'worker')}`), SLOW_START_MS);
    try {
      this.broker = await this.openBroker();
      this.claim = await this.claimPort();
      const presence = this.presence && new PresenceServer(this.presence);
      return await this.workers.start(this.claim.port, this.broker, presence);
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
    const broker = await openBroker(
      {
        ...config,
        syncs: config.storeSync === 'on',
        isCached: cachedIn(config),
        hasCached: config.cacheTopics.length > 0,
        nats: natsIn(config),
        onNote: (line) => this.note(line),
      },
      this.ending.signal,
    );
    broker.follow((publications) => this.topics.published(publications));
    const onError = (/** @type {unknown} */ error) => this.note(`presence: ${messageOf(error)}`);
    if (config.subscriptions)
      this.presence = new Presence({ broker, path: PATH, mostBytes: config.maxPresenceBytes, onError });
    if (broker.bus) this.startNodes(broker.bus);
    const onStored = (/** @type {Parameters<Posts['onStored']>[0]} */ counts) => this.workers.count(counts);
    this.posts = new Posts({ broker, rules: rulesIn(config), onStored });
    return new BrokerServer(broker);
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
    const { port, host } = this.config;
    return claimPort(this.transport.name, port, host).catch((error) => {
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
    const { workers, transport } = this;
    if (this.state !== 'running') throw new HoldfastError('CLOSED', `the server is ${this.state}`);
    if (transport.name !== 'hold')
      throw new HoldfastError(
        'NOT_NATIVE',
        `the ${transport.name} transport can't move streams: restart the server instead`,
      );
    if (workers.replacements.isReloading)
      throw new HoldfastError('BUSY', 'the workers are being reloaded already');
    void workers.replacements.reload();
    return `reloading ${formatNoun(workers.slots.length, 'worker')}`;
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
   * @param {number} port @param {number} adminPort @param {string} csvPath
   */
  describe(port, adminPort, csvPath) {
    const { config, plan, transport, admin } = this;
    if (csvPath) this.note(`CSV in ${csvPath}`);
    if (adminPort) this.note(`admin on ${urlOf(config.adminHost, adminPort)}: ${admin.paths}`);
    if (transport.note) this.note(transport.note);
    this.note(openLine(config));
    this.note(limitsLine(config, plan, transport, port));
    this.note(planLine(plan, transport));
    const dashboard = adminPort ? `; dashboard on ${urlOf(config.adminHost, adminPort)}` : '';
    this.note(`listening on ${urlOf(config.host, port)}${dashboard}`);
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
    if (this.state === 'draining') {
      this.workers.kill();
      process.exit(status);
    }
    const hasStreams = this.state === 'running';
    this.state = 'draining';
    this.ending.abort();
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
    await Promise.race([this.presence?.flush(), after(FLUSH_MS)]);
    this.presence?.close();
    await Promise.race([this.broker?.close(), after(CLOSE_MS)]);
    if (monitor) await monitor.stop();
    else await Promise.race([this.discardLog(), after(DISCARD_MS)]);
    process.stderr.write(`holdfast: ${this.summary()}\n`);
    process.exit(0);
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

/** @param {string} host '' for all @param {number} port @returns {string} where a browser of this machine finds it */
function urlOf(host, port) {
  const isAll = host === '' || host === '0.0.0.0' || host === '::';
  return `http://${isAll ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`;
}

main().catch((error) => exitWith('holdfast', error));
