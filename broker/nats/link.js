/*
 * The connection to NATS. It is never given up: whatever happens, it is made again, soon and not by all nodes at once.
 */
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as after } from 'node:timers/promises';
import { createSecureContext } from 'node:tls';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { HoldfastError, messageOf } from '../../lib/errors.js';

const PORT = 4222;
/** How long a connection may take to be made. */
const CONNECT_MS = 2000;
/** A server that does not answer two pings is left. */
const PING_MS = 2000;
const RECONNECT_MS = 250;
/** Between attempts to connect for the first time. */
const FIRST_MS = 1000;
const CERTIFICATE = '-----BEGIN CERTIFICATE-----';
/** What no later attempt will change. */
const HOPELESS = ['AuthorizationError', 'UserAuthenticationExpiredError', 'InvalidArgumentError'];

/** @typedef {import('@nats-io/transport-node').NatsConnection} NatsConnection */
/** @typedef {import('@nats-io/transport-node').NodeConnectionOptions} ConnectionOptions */

/**
 * Where NATS is, and how this server proves who it is.
 * @typedef {object} Address
 * @property {readonly string[]} servers URLs: nats:// or tls://, perhaps with a user and a password, or with a token
 * @property {string} [credentials] a file
 * @property {string} [ca] a file with the certificates of authorities, instead of those of Node
 * @property {string} [cert] a file with the certificate of this server
 * @property {string} [certKey] a file with its key
 */

export class Link {
  /**
   * @param {Address} address
   * @param {{ onNote: (line: string) => void, signal: AbortSignal }} how
   * @returns {Promise<Link>} once it is connected, however long that takes
   * @throws {HoldfastError} NATS: it refuses this server; BAD_OPTION: a file can't be used
   */
  static async open(address, { onNote, signal }) {
    const options = optionsOf(address);
    for (let problem = ''; ; ) {
      try {
        return new Link(await connect(options), onNote);
      } catch (error) {
        const why = reasonOf(error);
        const line = `${namesOf(address)} can't be used: ${why}`;
        if (error instanceof Error && HOPELESS.includes(error.name)) throw new HoldfastError('NATS', line);
        if (why !== problem) onNote(`${line}; trying again`);
        problem = why;
      }
      await after(FIRST_MS, undefined, { signal });
    }
  }

  /** @param {NatsConnection} nc @param {(line: string) => void} onNote */
  constructor(nc, onNote) {
    this.nc = nc;
    this.onNote = onNote;
    guard(nc);
    this.isConnected = true;
    /** Since when, or when it was last. */
    this.sinceMs = performance.now();
    this.isClosed = false;
    /** Why it is not connected. */
    this.problem = '';
    /** @type {Set<() => void>} */
    this.waiting = new Set();
    /** Called whenever it is connected again. @type {(() => void)[]} */
    this.listeners = [];
    void this.watch();
  }

  async watch() {
    for await (const status of this.nc.status()) {
      if (status.type === 'disconnect') this.changed(false, 'the connection is lost');
      else if (status.type === 'reconnect') {
        guard(this.nc);
        this.changed(true, '');
      } else if (status.type === 'error') this.problem = messageOf(status.error);
    }
    this.isClosed = true;
    this.changed(false, 'the connection is closed');
  }

  /** @param {boolean} isConnected @param {string} problem */
  changed(isConnected, problem) {
    this.problem = problem;
    if (isConnected === this.isConnected) return;
    this.isConnected = isConnected;
    if (!this.isClosed)
      this.onNote(isConnected ? `connected to NATS again (${this.nc.getServer()})` : `NATS: ${problem}`);
    if (!isConnected) return;
    this.sinceMs = performance.now();
    for (const done of this.waiting) done();
    for (const listener of this.listeners) listener();
  }

  /** @param {number} mostMs @returns {Promise<boolean>} whether it is connected by then */
  async ready(mostMs) {
    if (this.isConnected || this.isClosed) return this.isConnected;
    await new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.waiting.delete(done);
        resolve(undefined);
      };
      const timer = setTimeout(done, mostMs);
      this.waiting.add(done);
    });
    return this.isConnected;
  }

  async close() {
    this.isClosed = true;
    await this.nc.close();
  }
}

/**
 * Before nats.js destroys a socket, it takes off all listeners. If a write fails in that moment, nobody would handle the error, and it would
 * end the process.
 * @param {NatsConnection} nc that is connected
 */
function guard(nc) {
  /** @type {import('node:net').Socket | undefined} */
  const socket = /** @type {any} */ (nc).protocol?.transport?.socket;
  if (!socket) return;
  const removeAll = socket.removeAllListeners.bind(socket);
  socket.removeAllListeners = (event) => {
    removeAll(event);
    return socket.on('error', () => {});
  };
}

/** @param {Address} address @returns {ConnectionOptions} @throws {HoldfastError} BAD_OPTION */
function optionsOf({ servers, credentials, ca, cert, certKey }) {
  const urls = servers.map((server) => new URL(server));
  const hasTls = urls.some(({ protocol }) => protocol === 'tls:') || ca || cert || certKey;
  return {
    servers: urls.map(({ hostname, port }) => `${hostname}:${port || PORT}`),
    ...userIn(urls),
    ...(credentials ? { authenticator: authenticatorIn(credentials) } : {}),
    ...(hasTls ? { tls: tlsOf({ ca, cert, key: certKey }) } : {}),
    name: `holdfast ${hostname()} ${process.pid}`,
    timeout: CONNECT_MS,
    pingInterval: PING_MS,
    maxReconnectAttempts: -1,
    reconnectTimeWait: RECONNECT_MS,
    reconnectJitter: RECONNECT_MS,
    reconnectJitterTLS: RECONNECT_MS,
    ignoreAuthErrorAbort: true, // it may be that of a server that is being set up
  };
}

/** @param {URL[]} urls @returns {Pick<ConnectionOptions, 'user' | 'pass' | 'token'>} @throws {HoldfastError} BAD_OPTION */
function userIn(urls) {
  const named = urls.filter(({ username }) => username !== '');
  if (named.length === 0) return {};
  const [{ username, password }] = named;
  if (named.some((url) => url.username !== username || url.password !== password))
    throw new HoldfastError(
      'BAD_OPTION',
      'the URLs of NATS have different users: all must have the same one',
    );
  const user = decodeURIComponent(username);
  return password === '' ? { token: user } : { user, pass: decodeURIComponent(password) };
}

/** @param {string} file @returns {import('@nats-io/transport-node').Authenticator} @throws {HoldfastError} BAD_OPTION */
function authenticatorIn(file) {
  const authenticator = credsAuthenticator(contentOf(file));
  try {
    authenticator('');
  } catch {
    throw new HoldfastError('BAD_OPTION', `the file ${file} is no credentials file of NATS`);
  }
  return authenticator;
}

/**
 * @param {Record<'ca' | 'cert' | 'key', string | undefined>} files
 * @returns {{ ca?: string, cert?: string, key?: string }}
 * @throws {HoldfastError} BAD_OPTION
 */
function tlsOf(files) {
  const given = Object.entries(files).filter(([, file]) => file);
  const options = Object.fromEntries(given.map(([name, file]) => [name, contentOf(file ?? '').toString()]));
  if (options.ca !== undefined && !options.ca.includes(CERTIFICATE))
    throw new HoldfastError('BAD_OPTION', `the file ${files.ca} has no certificates as PEM`);
  try {
    createSecureContext(options);
  } catch (error) {
    const names = given.map(([, file]) => file).join(' and ');
    throw new HoldfastError('BAD_OPTION', `the certificates in ${names} can't be used: ${messageOf(error)}`);
  }
  return options;
}

/** @param {string} file @returns {Buffer} */
function contentOf(file) {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new HoldfastError('BAD_OPTION', `the file ${file} can't be read: ${messageOf(error)}`);
  }
}

/** @param {Address} address @returns {string} without anything secret */
function namesOf({ servers }) {
  return `NATS at ${servers.map((server) => new URL(server).host).join(', ')}`;
}

/** @param {unknown} error @returns {string} */
function reasonOf(error) {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return messageOf(cause);
}
