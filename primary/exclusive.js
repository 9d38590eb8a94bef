/*
 * What only one server can have at a time: the claim on its port, the admin port, and the CSV. The next server gets them in a takeover.
 */
import { setTimeout as after } from 'node:timers/promises';
import { codeOf, listenError, messageOf } from '../lib/errors.js';
import { continueCsvLog, openCsvLog } from '../monitor/csv.js';
import { claimPort, joinPort } from '../transport/index.js';

/** How long to wait at the end for a file system that hangs. */
const DISCARD_MS = 1000;

/** @typedef {import('../monitor/csv.js').CsvLog} CsvLog */
/** @typedef {import('./handover/protocol.js').Accepted} Accepted */

export class Exclusive {
  /**
   * @param {object} options
   * @param {import('../lib/config.js').Config} options.config
   * @param {string} options.transport
   * @param {{ listen: (port: number) => Promise<number>, leavePort: () => void }} options.admin
   * @param {(line: string) => void} options.note
   */
  constructor({ config, transport, admin, note }) {
    this.config = config;
    this.transport = transport;
    this.admin = admin;
    this.note = note;
    /** `adminPort`: 0 if it is off. */
    this.ports = { port: 0, adminPort: 0 };
    /** A promise, so that a CSV that is being created can be discarded. @type {Promise<CsvLog | null>} */
    this.log = Promise.resolve(null);
    /** @type {import('../transport/index.js').PortClaim | null} */
    this.claim = null;
  }

  /** @returns {Promise<void>} @throws {import('../lib/errors.js').HoldfastError} LISTEN, BAD_LOG_DIR */
  async open() {
    const { config } = this;
    this.ports.adminPort = await this.openAdmin(config.adminPort === 'auto' ? 0 : config.adminPort);
    if (!config.noLog) this.log = openCsvLog(config.logDir, new Date());
    await this.log;
  }

  /** Admin port and CSV of the server before. The streams are here already: nothing that fails now may end them. @param {Accepted} before */
  async inherit(before) {
    const { config } = this;
    const port = config.adminPort === 'auto' ? before.adminPort : config.adminPort;
    const failed = (/** @type {unknown} */ error) => this.note(`taken over, but ${messageOf(error)}`);
    this.ports.adminPort = (await this.openAdmin(port).catch(failed)) ?? 0;
    if (config.noLog) return;
    const log = before.csvPath ? await continueCsvLog(before.csvPath) : null;
    this.log = log
      ? Promise.resolve(log)
      : openCsvLog(config.logDir, new Date()).catch((error) => failed(error) ?? null);
  }

  /** @param {number} port @returns {Promise<number>} its port; 0 if it is off */
  async openAdmin(port) {
    return this.config.adminPort === 0 ? 0 : this.admin.listen(port);
  }

  /**
   * Keeps other servers off the port, even while no worker listens.
   * @param {Accepted | null} before whose port it becomes
   * @returns {Promise<number>} the port
   * @throws {import('../lib/errors.js').HoldfastError} LISTEN
   */
  async claimPort(before) {
    const { transport } = this;
    const { host } = this.config;
    const port = before?.port ?? this.config.port;
    this.claim = await (before ? joinPort : claimPort)(transport, port, host).catch((error) => {
      throw codeOf(error) ? listenError(error, 'port', port, host) : error;
    });
    return this.claim.port;
  }

  /** The next server may start while this one closes its streams. */
  releasePort() {
    this.claim?.release();
  }

  /** Admin port and CSV are free for the next server. */
  async suspend() {
    this.admin.leavePort();
    await (await this.log)?.suspend();
  }

  /** The next server is gone. */
  async resume() {
    await (await this.log)?.resume();
    const { adminPort } = this.ports;
    if (adminPort) await this.openAdmin(adminPort).catch((error) => this.note(messageOf(error)));
  }

  /** Removes the CSV if the server did not start. */
  async discard() {
    const discarded = this.log.then((log) => log?.discard());
    await Promise.race([discarded, after(DISCARD_MS)]);
  }
}
