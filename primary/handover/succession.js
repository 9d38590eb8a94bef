/*
 * What a server has to do with the one before it (`--takeover`), and with the one after it (the control socket).
 */
import { setTimeout as after } from 'node:timers/promises';
import { checkFolder } from '../../broker/disk/environment.js';
import { controlPathOf } from '../../lib/config.js';
import { messageOf } from '../../lib/errors.js';
import { Arrival } from './arrival.js';
import { openControl } from './control.js';
import { Departure, refusalOf } from './departure.js';

/** How long somebody on the control socket may take to say what they want. */
const REQUEST_MS = 5000;
/** The most characters of that. */
const REQUEST_SIZE = 65_536;
/** How long the last changes of the list of subscriptions may take to be stored. */
const FLUSH_MS = 1000;

/** @typedef {import('./lines.js').Lines} Lines */
/** @typedef {import('./protocol.js').Accepted} Accepted */
/** @typedef {import('./protocol.js').Moved} Moved */

/**
 * The parts of the server that change hands.
 * @typedef {object} Server
 * @property {string} state
 * @property {{ port: number, adminPort: number }} ports
 * @property {{ pause: () => Promise<void>, resume: () => void, legacy: object | null } | null} monitor
 * @property {Promise<{ path: string, suspend: () => Promise<void>, resume: () => Promise<void> } | null>} log
 * @property {{ leavePort: () => void }} admin
 * @property {(port: number) => Promise<number>} openAdmin
 * @property {import('../notify.js').Notify | null} notify
 * @property {import('../../broker/server.js').BrokerServer | null} broker
 * @property {{ flush: () => Promise<unknown> } | null} presence
 * @property {{ handOver: () => Promise<import('../../hub/nodes/index.js').State> } | null} nodes
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
   * @param {Server} options.server
   * @param {(line: string) => void} options.note
   */
  constructor({ config, transport, version, workers, server, note }) {
    this.config = config;
    this.path = controlPathOf(config);
    this.transport = transport;
    this.version = version;
    this.workers = workers;
    this.server = server;
    this.note = note;
    /** @type {import('./control.js').Control | null} */
    this.control = null;
    /** With --takeover, until it is over. @type {Arrival | null} */
    this.arrival = null;
    /** While another server takes over from this one. @type {Departure | null} */
    this.departure = null;
    this.isBrokerClosed = false;
  }

  /**
   * Asks the server that runs for everything it has.
   * @returns {Promise<{ accepted: Accepted, broker: import('../../broker/index.js').Broker }>} `broker`: that of the other one
   * @throws {HoldfastError} CONTROL, HANDOVER, STORE
   */
  async connect() {
    const { config, transport, version, workers, server, path } = this;
    if (config.store) await checkFolder(config.store); // it is opened when the streams are here: too late to find out
    const { plan } = workers;
    const shards = Array.from({ length: plan.workers }, () => plan.shards);
    const { port, host, subscriptions } = config;
    const room = config.force ? null : plan.workers * plan.shards * plan.capacity;
    const request = { version, transport, port, host, shards, room, subscriptions };
    const { arrival, accepted, broker } = await Arrival.open(path, request, config.maxQueueBytes);
    this.arrival = arrival;
    arrival.onLost = (error) => server.fail(error);
    workers.on('lost', (error) => server.fail(error));
    this.note(`taking over from server ${accepted.version} (pid ${accepted.pid})`);
    return { accepted, broker };
  }

  /** The workers have started. @returns {Promise<Moved>} when they have the streams */
  async receive() {
    const { workers } = this;
    const arrival = /** @type {Arrival} */ (this.arrival);
    const moved = await arrival.receive(workers, workers.replacements.sideOf(workers.slots));
    workers.totals.inherited = moved.counts;
    return moved;
  }

  /**
   * The last part of a takeover: this server is complete without the other one.
   * @param {() => Promise<{ switch: (closeOther: () => Promise<void>) => Promise<void> }>} prepare of the broker
   * @returns {Promise<import('../../hub/nodes/index.js').State | null>} what the other one was on NATS
   */
  async finish(prepare) {
    const arrival = /** @type {Arrival} */ (this.arrival);
    const [counts, inheritance] = await Promise.all([arrival.serve(), prepare()]);
    this.workers.totals.inherited = counts;
    /** @type {import('../../hub/nodes/index.js').State | null} */
    let node = null;
    await inheritance.switch(async () => {
      node = await arrival.closeOther();
    });
    arrival.finish();
    this.arrival = null;
    return node;
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
    const { config, transport, server, departure, workers } = this;
    const isBusy = departure !== null || workers.replacements.isReloading;
    return refusalOf(request, {
      transport,
      port: server.ports.port,
      host: config.host,
      state: server.state,
      streams: workers.slots.reduce((sum, { snapshot }) => sum + (snapshot?.streams ?? 0), 0),
      isBusy,
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
    const { workers, server, version, note } = this;
    return {
      workers,
      note,
      state: () => server.state,
      facts: async () => ({ version, ...server.ports, csvPath: (await server.log)?.path ?? '' }),
      pause: async () => server.monitor?.pause(),
      suspend: () => this.suspend(),
      resume: () => this.resume(),
      closeBroker: async () => {
        this.isBrokerClosed = true;
        await Promise.race([server.presence?.flush(), after(FLUSH_MS)]);
        const node = (await server.nodes?.handOver()) ?? null; // others don't notice
        await server.broker?.closeForHandover();
        return node;
      },
      isBrokerClosed: () => this.isBrokerClosed,
      leave: (line) => server.leave(line),
      fail: (error) => server.fail(error),
    };
  }

  /** Everything that only one server can have is free for the other one. */
  async suspend() {
    const { server, workers } = this;
    await workers.sample(this.config.refreshMs);
    server.notify?.rest();
    server.admin.leavePort();
    await (await server.log)?.suspend();
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
      await (await server.log)?.resume();
      const { adminPort } = server.ports;
      if (adminPort) await server.openAdmin(adminPort).catch((error) => this.note(messageOf(error)));
      await this.open().catch((error) => this.note(messageOf(error)));
    }
    server.monitor?.resume();
  }
}
