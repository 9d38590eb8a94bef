/*
 * The nodes of a hub: several servers, or applications with a Hub, on one stream of NATS. They tell each other who is subscribed to what,
 * and what is revoked. All are equal.
 *
 *     presence --changes.js--> bus --> peer.js --> presence of every other node
 *     lease.js: who is alive            revocations.js: for those that were away
 *
 * Every node has the streams of all nodes, so it makes lists itself, and announces the end of a node that dies. All survivors do, with
 * the same keys, so the broker stores each end once.
 *
 * A node can go on in another process (primary/handover): `handOver`, before the broker is closed, makes it silent, and the next process
 * has Nodes with its state within a lease. It says that it is back, so others tell it what it has missed, and they ask for its whole table.
 */
import { setTimeout as after } from 'node:timers/promises';
import { printable } from '../../lib/format.js';
import { newNodeId } from '../presence/node.js';
import { Changes } from './changes.js';
import { Departed } from './departed.js';
import { Lease } from './lease.js';
import { checkedMessage } from './messages.js';
import { Peer } from './peer.js';
import { Revocations } from './revocations.js';

/** Nodes that are known at a time, besides those that are gone. */
const MOST_NODES = 1000;
/** How long a node may take for a part of its table, and to take one; in leases, and at most. */
const ANSWER_LEASES = 1.25;
const ANSWER_MS = 5000;
/** How long after it is back a node is told that others took it for dead, at the latest, in leases. */
const SETTLE_LEASES = 2;
/** How long the same problem is not noted again. */
const QUIET_MS = 60_000;
/** How soon a table that had no room is asked for again. */
const CUT_MS = 60_000;
/** Part of the memory that has to be free for that. */
const CUT_ROOM = 0.2;
/** How long saying goodbye may take. */
const BYE_MS = 500;

/** @typedef {import('../../broker/nats/bus.js').Bus} Bus */
/** @typedef {import('../presence/index.js').Presence} Presence */
/** @typedef {import('../revocations.js').Revocation} Revocation */
/** @typedef {import('./messages.js').Message} Message */
/** @typedef {import('./messages.js').Sender} Sender */
/** @typedef {import('./revocations.js').Outcome} Outcome */
/** @typedef {import('./revocations.js').NodesOutcome} NodesOutcome */
/** @typedef {(object: object) => void} Reply */

/**
 * What a node is that goes on in another process: others don't notice.
 * @typedef {object} State
 * @property {string} id
 * @property {number} life
 * @property {number} number of its last change
 * @property {import('./revocations.js').OldGroup[]} revocations of the last minutes
 */

export class Nodes {
  /**
   * @param {object} options
   * @param {Bus} options.bus
   * @param {Presence | null} options.presence null if it is off
   * @param {(list: Revocation[]) => Promise<Outcome>} options.end ends streams of this node; rejects if it can't read the list
   * @param {(line: string) => void} options.onNote
   * @param {State | null} [options.before] of the process before, from `handOver`; its presence has to have the same identity
   * @param {{ beatMs?: number, leaseMs?: number, now?: () => number }} [options.lease]
   */
  constructor({ bus, presence, end, onNote, before = null, lease }) {
    this.bus = bus;
    this.presence = presence;
    this.onNote = onNote;
    this.id = presence?.node.id ?? before?.id ?? newNodeId();
    /** Counts how often the streams of this node were announced. */
    this.life = before?.life ?? presence?.node.life ?? 1;
    /** @type {Map<string, Peer>} by id */
    this.peers = new Map();
    this.departed = new Departed();
    /** When each problem may be noted again. @type {Map<string, number>} */
    this.quietUntilMs = new Map();
    this.lease = new Lease(
      {
        beat: () => this.beat(),
        look: () => this.look(),
        away: () => this.presence?.away(),
        back: () => this.back(),
        gone: (id) => this.gone(id, 'was not heard any more'),
      },
      lease,
    );
    this.backMs = Number.NEGATIVE_INFINITY;
    this.answerMs = Math.min(ANSWER_MS, ANSWER_LEASES * this.lease.leaseMs);
    const sender = () => this.sender;
    const { now } = this.lease;
    const onProblem = (/** @type {string} */ line) => this.problem(line);
    this.revocations = new Revocations({ bus, sender, end, now, onProblem });
    const isHeard = () => this.peers.size > 0;
    /** @type {Changes | null} */
    this.changes = presence && new Changes({ bus, presence, sender, isHeard, answerMs: this.answerMs });
    this.isStopped = false;
    if (before) this.goOn(before);
  }

  /** @returns {Sender} */
  get sender() {
    return { from: this.id, life: this.life };
  }

  /** How many there are that this node knows, with this one. */
  get count() {
    return this.peers.size + 1;
  }

  /** From now on others know this node. */
  start() {
    const { bus, lease } = this;
    bus.onProblem = (line) => this.problem(line);
    bus.subscribe('nodes', (object, reply) => this.take(object, reply));
    bus.subscribe(`to.${this.id}`, (object, reply) => this.take(object, reply));
    bus.onConnect(() => {
      if (this.isStopped) return;
      lease.turnDeaf(); // messages were lost
      lease.beat();
    });
    bus.onClose(() => this.stop());
    lease.start();
  }

  /** @param {State} before */
  goOn({ life, number, revocations }) {
    this.revocations.kept.addOld(revocations);
    if (this.presence) this.presence.node.life = life;
    if (this.changes) this.changes.number = number + 1; // so others notice that they lack something, and ask for the whole table
  }

  /**
   * Stops without telling the others: another process continues as this node before its lease ends.
   * @returns {Promise<State>} for its Nodes
   */
  async handOver() {
    this.isStopped = true;
    this.lease.stop();
    this.changes?.close();
    await Promise.race([this.bus.flush(), after(BYE_MS, undefined, { ref: false })]);
    const { id, life, changes, revocations } = this;
    return { id, life, number: changes?.number ?? 0, revocations: revocations.kept.old() };
  }

  /** Says goodbye. @returns {Promise<void>} */
  async stop() {
    if (this.isStopped) return;
    this.isStopped = true;
    this.lease.stop();
    this.changes?.flush();
    this.toAll({ type: 'bye' });
    await Promise.race([this.bus.flush(), after(BYE_MS, undefined, { ref: false })]);
  }

  beat() {
    this.toAll({ type: 'beat', number: this.changes?.number ?? 0, listed: this.changes !== null });
  }

  look() {
    const nowMs = this.lease.now();
    for (const peer of this.peers.values()) {
      peer.look(nowMs, this.answerMs);
      if (peer.isCut && peer.state === 'whole' && nowMs - peer.askedMs > CUT_MS && this.hasRoom)
        peer.ask(nowMs);
    }
    if (
      this.presence?.isAway &&
      nowMs - this.backMs > SETTLE_LEASES * this.lease.leaseMs &&
      !this.lease.isDeaf
    )
      this.presence.back();
  }

  get hasRoom() {
    return this.presence !== null && this.presence.bytes < (1 - CUT_ROOM) * this.presence.mostBytes;
  }

  /** This node has started, or may have missed something. */
  back() {
    this.backMs = this.lease.now();
    this.toAll({ type: 'back', revocations: this.revocations.kept.ids() });
  }

  /**
   * Ends streams on all nodes.
   * @param {Revocation[]} list
   * @returns {Promise<NodesOutcome>} once they are being ended, or at the deadline
   */
  revoke(list) {
    return this.revocations.revoke(list, this.peers.size);
  }

  /** @param {unknown} object @param {Reply} reply @throws {Error} what is wrong with it */
  take(object, reply) {
    if (this.isStopped) return;
    const message = checkedMessage(object);
    const { type, from } = message;
    if (from === this.id) {
      if (type === 'beat') this.lease.heardSelf();
      return;
    }
    if (type === 'bye') return this.gone(from, 'has stopped');
    const peer = this.peerOf(message);
    if (!peer) return;
    const handlers = this.handlersOf(peer, reply);
    /** @type {(message: Message) => void} */ (handlers[type])(message);
  }

  /** @param {Peer} peer the sender @param {Reply} reply */
  handlersOf(peer, reply) {
    const nowMs = this.lease.now();
    return {
      /** @param {import('./messages.js').Beat} message */
      beat: ({ number, listed }) => void (listed && peer.beat(number, nowMs)),
      /** @param {import('./messages.js').Change} message */
      change: (message) => peer.change(message, nowMs),
      /** @param {import('./messages.js').Revoke} message */
      revoke: (message) => void this.revocations.obey(message, reply),
      /** @param {import('./messages.js').Back} message */
      back: ({ revocations }) => this.welcome(peer, revocations),
      /** @param {import('./messages.js').Ask} message */
      ask: (message) => void this.changes?.answer(message).catch(() => {}), // it will ask again
      /** @param {import('./messages.js').Part} message */
      part: (message) => reply({ isWanted: peer.part(message, nowMs) }),
      /** @param {import('./messages.js').Late} message */
      late: ({ of }) => void (of === this.life && this.renew()),
      /** @param {import('./messages.js').Departed} message */
      departed: ({ nodes }) => this.learn(nodes),
      /** @param {import('./messages.js').Want} message */
      want: ({ ids }) => {
        for (const { id, list } of this.revocations.kept.those(ids))
          this.to(peer.id, { type: 'revoke', id, list });
      },
    };
  }

  /** @param {Message} message @returns {Peer | null} the sender; null if its message doesn't count */
  peerOf({ from, life }) {
    if (!this.departed.mayReturn(from, life)) {
      this.to(from, { type: 'late', of: life });
      return null;
    }
    const peer = this.peers.get(from) ?? this.join(from);
    if (!peer || life < peer.life) return null;
    if (life > peer.life) {
      peer.life = life;
      peer.state = 'unknown';
    }
    this.lease.heard(from);
    return peer;
  }

  /** @param {string} id @returns {Peer | null} null if there are too many */
  join(id) {
    if (this.peers.size >= MOST_NODES) {
      this.problem('there are too many nodes on the bus');
      return null;
    }
    const peer = new Peer({
      id,
      others: this.presence?.others ?? null,
      ask: (ask) => this.to(id, { type: 'ask', ask }),
      onProblem: (line) => this.problem(line),
    });
    this.peers.set(id, peer);
    this.onNote(`node ${nameOf(id)} has joined: ${this.count} nodes`);
    return peer;
  }

  /** @param {string} id @param {string} why */
  gone(id, why) {
    const peer = this.peers.get(id);
    if (!peer) return;
    const burial = this.presence?.others.bury(id) ?? null;
    this.remove(id, { life: peer.life, burial, isAnnounced: false });
    this.onNote(
      `node ${nameOf(id)} ${why}: ${this.count === 1 ? 'no other node is' : `${this.count} nodes are`} left`,
    );
  }

  /** @param {string} id @param {import('./departed.js').Gone} gone */
  remove(id, gone) {
    this.peers.delete(id);
    this.lease.forget(id);
    this.departed.add(id, gone);
  }

  /** Others have announced the end of our streams, and have taken them off the list: they come again. */
  renew() {
    this.life++;
    if (this.presence) {
      this.presence.renew();
      this.onNote('other nodes took this one for dead: its subscriptions are announced again');
    }
    this.lease.beat();
    this.back(); // those who took us for dead did not hear it before
  }

  /** A node has started, or was away. @param {Peer} peer @param {string[]} revocations that it knows */
  welcome({ id }, revocations) {
    const gone = this.departed.list();
    if (gone.length > 0) this.to(id, { type: 'departed', nodes: gone });
    for (const group of this.revocations.kept.without(revocations))
      this.to(id, { type: 'revoke', id: group.id, list: group.list });
    const ids = revocations.filter((one) => !this.revocations.kept.groups.has(one));
    if (ids.length > 0) this.to(id, { type: 'want', ids });
  }

  /** What happened while we were away: others have announced the end of these nodes. @param {[id: string, life: number][]} nodes */
  learn(nodes) {
    for (const [id, life] of nodes) {
      const peer = this.peers.get(id);
      const wasHeard = (this.lease.heardMs.get(id) ?? 0) > this.backMs;
      if (id === this.id || this.departed.has(id) || (peer && (peer.life > life || wasHeard))) continue;
      this.presence?.others.forget(id);
      this.remove(id, { life, burial: null, isAnnounced: true });
      if (peer) this.onNote(`node ${nameOf(id)} left while this one was away: ${this.count} nodes`);
    }
  }

  /** @param {{ type: Message['type'], [name: string]: unknown }} message */
  toAll(message) {
    this.bus.publish('nodes', { ...this.sender, ...message });
  }

  /** @param {string} id @param {{ type: Message['type'], [name: string]: unknown }} message */
  to(id, message) {
    this.bus.publish(`to.${id}`, { ...this.sender, ...message });
  }

  /** @param {string} line what is wrong, and after a colon the details; noted at most once a minute */
  problem(line) {
    const [kind] = line.split(':', 1);
    const nowMs = this.lease.now();
    if (nowMs < (this.quietUntilMs.get(kind) ?? 0)) return;
    this.quietUntilMs.set(kind, nowMs + QUIET_MS);
    this.onNote(printable(`${line} (noted once a minute)`));
  }
}

/** @param {string} id @returns {string} enough to tell nodes apart */
function nameOf(id) {
  return id.slice(0, 6);
}
