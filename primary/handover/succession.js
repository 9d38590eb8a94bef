/*
 * What a server has to do with the one before it (`--takeover`), and with the one after it (the control socket).
 */
import { resolve } from 'node:path';
import { checkFolder } from '../../broker/disk/environment.js';
import { controlPathOf } from '../../lib/config.js';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatNoun } from '../../lib/format.js';
import { Arrival } from './arrival.js';
import { openControl } from './control.js';
import { Departure } from './departure.js';
import { refusalOf, tlsProblem } from './refusals.js';

/** How long somebody on the control socket may take to say what they want. */
const REQUEST_MS = 5000;
/** The most characters of that. */
const REQUEST_SIZE = 65_536;

/** @typedef {import('./lines.js').Lines} Lines */
/** @typedef {import('./protocol.js').Accepted} Accepted */
/** @typedef {import('./protocol.js').Moved} Moved */

/**
 * What else it needs of the server.
 * @typedef {object} Server
 * @property {string} state
 * @property {{ pause: () => Promise<void>, resume: () => void, legacy: object | null } | null} monitor
 * @property {import('../notify.js').Notify | null} notify
 * @property {(line: string) => void} leave ends the process with 0
 * @property {(error: unknown) => void} fail ends it with 1
 */

export class Succession {
  /**
   * @param {object} options
   * @param {import('../../lib/config.js').Config} options.config
   * @param {string} options.transport
   * @param {string} options.version
   * @param {import('../workers.js').Workers} options.workers
   * @param {import('../hub.js').PrimaryHub} options.hub
   * @param {import('../exclusive.js').Exclusive} options.exclusive
   * @param {import('../certificates.js').Certificates} options.certificates
   * @param {Server} options.server
   * @param {(line: string) => void} options.note
   */
  constructor({ config, transport, version, workers, hub, exclusive, certificates, server, note }) {
    this.config = config;
    this.path = controlPathOf(config);
    this.transport = transport;
    this.version = version;
    this.workers = workers;
    this.hub = hub;
    this.exclusive = exclusive;
    this.certificates = certificates;
    this.server = server;
    this.note = note;
    /** @type {import('./control.js').Control | null} */
    this.control = null;
    /** With --takeover, until it is over. @type {Arrival | null} */
    this.arrival = null;
    /** While another server takes over from this one. @type {Departure | null} */
    this.departure = null;
    /** The server that this one takes over from. @type {Accepted | null} */
    this.before = null;
    /** What that one has handed over. @type {Moved | null} */
    this.moved = null;
    /** Somebody wants this server to end although the next one still needs it. */
    this.wasAskedToEnd = false;
  }

  /**
   * Asks the running server for everything it has.
   * @returns {Promise<Parameters<import('../hub.js').PrimaryHub['open']>[0] & object>} what its own hub begins with
   * @throws {HoldfastError} CONTROL, HANDOVER, STORE
   */
  async connect() {
    const { config, transport, version, workers, server, certificates, path } = this;
    if (config.store) await checkFolder(config.store); // it is opened when the streams are here: too late to find out
    const { plan } = workers;
    const shards = Array.from({ length: plan.workers }, () => plan.shards);
    const { port, host, subscriptions } = config;
    const publications = storeIn(config);
    const room = config.force ? null : plan.workers * plan.shards * plan.capacity;
    const tls = certificates.areUsed;
    const request = { version, transport, port, host, shards, room, publications, subscriptions, tls };
    const { arrival, accepted, broker } = await Arrival.open(path, request, config.maxQueueBytes);
    this.arrival = arrival;
    this.before = accepted;
    if (tls && !accepted.tls)
      throw new HoldfastError(
        'HANDOVER',
        `not taken over: ${tlsProblem({ port: accepted.port, host, tls: false })}`,
      );
    if (accepted.tls) certificates.ticketKeys = accepted.tls.ticketKeys;
    arrival.onLost = (error) => server.fail(error);
    workers.on('lost', (error) => server.fail(error));
    this.note(`taking over from server ${accepted.version} (pid ${accepted.pid})`);
    return { broker, identity: accepted.identity };
  }

  /** The workers have started. @returns {Promise<void>} when they have the streams */
  async receive() {
    const { workers } = this;
    const arrival = /** @type {Arrival} */ (this.arrival);
    this.moved = await arrival.receive(workers, workers.replacements.sideOf(workers.slots));
    workers.totals.inherited = this.moved.counts;
  }

  /**
   * The last part of a takeover: this server is complete without the other one.
   * @throws {HoldfastError} HANDOVER, NATS, STORE
   */
  async finish() {
    const { hub, moved, before, server } = this;
    const arrival = /** @type {Arrival} */ (this.arrival);
    server.notify?.tookOver(moved?.watchdogMs ?? 0);
    const [counts, inheritance] = await Promise.all([arrival.serve(), hub.prepareInheritance()]);
    this.workers.totals.inherited = counts;
    /** @type {import('../hub.js').NodeState | null} */
    let node = null;
    await inheritance.switch(async () => {
      node = await arrival.closeOther();
    });
    arrival.finish();
    this.arrival = null;
    hub.startNodes(node);
    this.note(
      `pid ${process.pid} took over ${formatNoun(moved?.streams ?? 0, 'stream')} from pid ${before?.pid}`,
    );
  }

  /** @returns {boolean} whether the next server still needs this one: somebody wants it to end, for the first time */
  mustStay() {
    if (!this.departure?.hasMoved || this.wasAskedToEnd) return false;
    this.wasAskedToEnd = true;
    return true;
  }

  /** From now on another server can take over. */
  async open() {
    if (this.path === '') return;
    try {
      this.control = await openControl(this.path, (lines) => this.listen(lines));
    } catch (error) {
      // By default, two servers may share a log folder.
      if (this.config.control !== 'auto') throw error;
      this.note(`no server can take over from this one: ${messageOf(error)}`);
    }
  }

  close() {
    this.control?.close();
    this.control = null;
  }

  /** @param {Lines} lines a connection to the control socket */
  listen(lines) {
    const timer = setTimeout(() => lines.destroy(), REQUEST_MS);
    lines.mostSize = REQUEST_SIZE;
    lines.onMessage = (message) => {
      clearTimeout(timer);
      lines.mostSize = Number.POSITIVE_INFINITY;
      if (message.type !== 'takeOver') return lines.destroy();
      const request = /** @type {import('./protocol.js').TakeOver} */ (message);
      const problem = this.refusalOf(request);
      if (!problem) return void this.depart(lines, request);
      lines.send({ type: 'refused', problem });
      lines.end();
    };
    lines.onClose = () => clearTimeout(timer);
  }

  /** @param {import('./protocol.js').TakeOver} request */
  refusalOf(request) {
    const { config, transport, server, departure, workers, exclusive, certificates } = this;
    const isBusy = departure !== null || workers.replacements.isReloading;
    return refusalOf(request, {
      transport,
      port: exclusive.ports.port,
      host: config.host,
      publications: storeIn(config),
      state: server.state,
      streams: workers.slots.reduce((sum, { snapshot }) => sum + (snapshot?.streams ?? 0), 0),
      isBusy,
      tls: certificates.areUsed,
    });
  }

  /** @param {Lines} lines @param {import('./protocol.js').TakeOver} request */
  async depart(lines, request) {
    this.departure = new Departure({ lines, request, old: this.old() });
    await this.departure.run();
    this.departure = null;
  }

  /** @returns {import('./departure.js').Old} */
  old() {
    const { workers, hub, exclusive, certificates, server, version, note } = this;
    return {
      workers,
      note,
      state: () => server.state,
      facts: async () => ({
        version,
        ...exclusive.ports,
        csvPath: (await exclusive.log)?.path ?? '',
        tls: certificates.areUsed ? { ticketKeys: certificates.ticketKeys } : null,
      }),
      pause: async () => server.monitor?.pause(),
      suspend: () => this.suspend(),
      resume: () => this.resume(),
      closeBroker: () => hub.handOver(),
      isBrokerClosed: () => hub.isHandedOver,
      leave: (line) => server.leave(line),
      fail: (error) => server.fail(error),
    };
  }

  /** Everything that only one server can have is free for the other one. */
  async suspend() {
    const { server, workers, exclusive } = this;
    await workers.sample(this.config.refreshMs);
    server.notify?.rest();
    await exclusive.suspend();
    this.close();
    const { counts } = workers;
    return {
      watchdogMs: server.notify?.watchdogMs ?? 0,
      counts,
      reading: server.monitor?.legacy ?? null,
    };
  }

  /** The other server is gone. */
  async resume() {
    const { server } = this;
    if (this.departure?.hasMoved) {
      server.notify?.resume();
      await this.exclusive.resume();
      await this.open().catch((error) => this.note(messageOf(error)));
    }
    server.monitor?.resume();
  }
}

/** @param {import('../../lib/config.js').Config} config @returns {string} where publications are kept */
function storeIn({ nats, natsStream, store }) {
  if (nats.length > 0) return `the stream ${natsStream} of NATS`;
  return store === '' ? 'memory' : resolve(store);
}
