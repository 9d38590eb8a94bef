/*
 * The hub's part in the primary: the broker, the server that feeds the workers from it, and what follows it: the list of subscriptions,
 * the other nodes on NATS, and what is posted to the admin port.
 */
import { setTimeout as after } from 'node:timers/promises';
import { openBroker } from '../broker/index.js';
import { prepareInheritance } from '../broker/inherit.js';
import { BrokerServer } from '../broker/server.js';
import { SwitchBroker } from '../broker/switch.js';
import { Nodes } from '../hub/nodes/index.js';
import { Presence } from '../hub/presence/index.js';
import { PresenceServer } from '../hub/presence/server.js';
import { Posts } from '../hub/protocol/posts.js';
import { checkedRevocations, revocationsIn } from '../hub/revocations.js';
import { cachedIn, natsIn, rulesIn } from '../hub/serveroptions.js';
import { PATH } from '../hub/settings.js';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { formatSeconds } from '../lib/format.js';

/** How long the last changes of the list of subscriptions may take to be stored. */
const FLUSH_MS = 1000;
/** How long to wait at the end for a store on a file system that hangs. What was answered is safe. */
const CLOSE_MS = 5000;

/** @typedef {import('../broker/index.js').Broker} Broker */
/** @typedef {import('../hub/nodes/index.js').State} NodeState */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */

export class PrimaryHub {
  /**
   * @param {object} options
   * @param {import('../lib/config.js').Config} options.config
   * @param {import('./workers.js').Workers} options.workers
   * @param {import('./topics.js').Topics} options.topics
   * @param {(line: string) => void} options.note
   */
  constructor({ config, workers, topics, note }) {
    this.config = config;
    this.workers = workers;
    this.topics = topics;
    this.note = note;
    /** Aborted when the server ends: a broker that is not open yet is not needed any more. */
    this.ending = new AbortController();
    /** @type {Broker | null} */
    this.broker = null;
    /** Feeds the workers, and the next server. @type {BrokerServer | null} */
    this.server = null;
    /** With --subscriptions. @type {Presence | null} */
    this.presence = null;
    /** With --subscriptions: what workers tell it. @type {PresenceServer | null} */
    this.presenceServer = null;
    /** With --nats. @type {Nodes | null} */
    this.nodes = null;
    /** What is posted to the admin port. @type {Posts | null} */
    this.posts = null;
    /** Whether the next server has the publications. */
    this.isHandedOver = false;
  }

  /**
   * @param {{ broker: Broker, identity: import('../hub/presence/index.js').Identity | null } | null} before of the server that this one
   *   takes over from; its broker decides until `prepareInheritance` and `switch`
   * @returns {Promise<BrokerServer>}
   * @throws {HoldfastError} NATS, STORE
   */
  async open(before) {
    const { config, workers } = this;
    const broker = before
      ? new SwitchBroker(before.broker, config)
      : await openBroker(this.brokerOptions, this.ending.signal);
    broker.follow((publications) => this.topics.published(publications));
    if (config.subscriptions) this.openPresence(broker, before?.identity);
    this.broker = broker;
    this.startNodes();
    this.posts = new Posts({ broker, rules: rulesIn(config), onStored: (counts) => workers.count(counts) });
    this.server = new BrokerServer(broker);
    return this.server;
  }

  get brokerOptions() {
    const { config, note } = this;
    return {
      ...config,
      syncs: config.storeSync === 'on',
      isCached: cachedIn(config),
      hasCached: config.cacheTopics.length > 0,
      nats: natsIn(config),
      onNote: note,
    };
  }

  /** @param {Broker} broker @param {import('../hub/presence/index.js').Identity | null} [identity] a new one if it is missing */
  openPresence(broker, identity) {
    const onError = (/** @type {unknown} */ error) => this.note(`presence: ${messageOf(error)}`);
    const mostBytes = this.config.maxPresenceBytes;
    this.presence = new Presence({ broker, path: PATH, mostBytes, onError, identity });
    this.presenceServer = new PresenceServer(this.presence);
  }

  /** With --nats, other servers on the same stream know this one from now on. @param {NodeState | null} [before] what the server before was */
  startNodes(before = null) {
    const { presence, note } = this;
    const { bus } = this.broker ?? {};
    if (!bus) return;
    const { revocations } = this.workers;
    const end = async (/** @type {unknown[]} */ list) => revocations.revoke(checkedRevocations(list));
    this.nodes = new Nodes({ bus, presence, end, onNote: note, before });
    this.nodes.start();
  }

  /** The publications of the server before this one become this one's. */
  prepareInheritance() {
    const broker = /** @type {SwitchBroker} */ (this.broker);
    return prepareInheritance(broker, this.brokerOptions, this.ending.signal);
  }

  /** To all streams on a channel, without the broker. @param {string} channel @param {string} message */
  publish(channel, message) {
    this.topics.publishedTo(channel);
    return this.workers.publish(channel, message);
  }

  /** Publishes what was posted to the admin port. @param {IncomingMessage} request @throws {HoldfastError} CLOSED before it is open */
  async post(request) {
    if (!this.posts) throw new HoldfastError('CLOSED', 'the server has not started yet');
    return this.posts.take(request);
  }

  /** Ends streams, on all nodes. @param {IncomingMessage} request to the admin port */
  async revoke(request) {
    return (this.nodes ?? this.workers.revocations).revoke(await revocationsIn(request));
  }

  /** @returns {string} whether this server is too far behind others; '' if not */
  lag() {
    const { lagMs = 0, problem = '' } = this.broker?.state ?? {};
    if (lagMs <= this.config.natsMaxLagMs) return '';
    return `this server is ${formatSeconds(lagMs)} behind NATS${problem && ` (${problem})`}`;
  }

  /** The next server opens the store. @returns {Promise<NodeState | null>} with --nats, what this node was: others don't notice the change */
  async handOver() {
    this.isHandedOver = true;
    await this.flush();
    const node = (await this.nodes?.handOver()) ?? null;
    await this.server?.closeForHandover();
    return node;
  }

  /** @returns {Promise<void>} after a few seconds at the most */
  async close() {
    await this.flush();
    this.presence?.close();
    await Promise.race([this.server?.close(), after(CLOSE_MS)]);
  }

  async flush() {
    await Promise.race([this.presence?.flush(), after(FLUSH_MS)]);
  }
}
