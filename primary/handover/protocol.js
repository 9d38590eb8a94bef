/*
 * What the primaries of two servers say to each other on the control socket, in lines of JSON.
 *
 *     new server                          old server
 *       | ---- takeOver -------------------> |   the protocol, who it is, the shards of its workers
 *       | <--- refused {problem} ----------- |   or:
 *       | <--- accepted -------------------- |   what it has to be like, and its place in the order of publications
 *       | <--- feed, answer, reset, publish, revoke |  from here on it is fed as a worker is, and
 *       | ---- append, read, find, latest, fed, published, revoked -> |  says what a worker says
 *       | ---- ready ----------------------> |   its workers have started
 *       | <--- handover {id, step} --------- |   connect, sync, learn, go or drop, as often as there are rounds
 *       | ---- handedOver {id, …} ---------> |
 *       | <--- moved ----------------------- |   all streams that can move have moved; admin port and CSV are free
 *       | ---- serving --------------------> |   the new one has them; the old one drains the rest
 *       | <--- drained {counts} ------------ |   nobody publishes there any more
 *       | ---- close ----------------------> |   before the new one opens its own broker
 *       | <--- closed {node} --------------- |   what it was on NATS
 *       | ---- done -----------------------> |   the old one exits
 *
 * The old one takes its streams back if anything fails before `moved`, and the new one ends.
 */
import { HoldfastError } from '../../lib/errors.js';

/** Both sides must have the same. */
export const PROTOCOL = 1;
/** How long either side may be silent when it is its turn. */
export const SILENT_MS = 20_000;
/** How often a side that is busy says that it is there. */
const ALIVE_MS = 5000;

/**
 * @typedef {object} TakeOver
 * @property {'takeOver'} type
 * @property {number} protocol
 * @property {string} version of Holdfast, for people
 * @property {number} pid
 * @property {string} transport
 * @property {number} port 0 if it takes any
 * @property {string} host
 * @property {number[]} shards of each worker
 * @property {string} publications where it keeps them, for people; both have to keep them in the same place
 * @property {number | null} [room] for streams; null if it takes what it has room for
 * @property {boolean} subscriptions whether it lists them
 * @property {boolean} [tls] whether it speaks TLS; those before 0.3 don't say, and can't
 *
 * @typedef {object} Accepted
 * @property {'accepted'} type
 * @property {string} version @property {number} pid
 * @property {number} port
 * @property {string} csvPath '' if there is none
 * @property {number} adminPort 0 if there is none
 * @property {{ ticketKeys: string } | null} [tls] with what clients resume sessions, in base64; null without TLS
 * @property {import('../../hub/presence/index.js').Identity | null} identity under which subscriptions are listed; null if they are not
 * @property {import('../../broker/messages.js').Place} place
 *
 * @typedef {object} Moved
 * @property {'moved'} type
 * @property {number} streams @property {number} left
 * @property {number} watchdogMs 0 without one
 * @property {import('../../lib/counts.js').Counts} counts
 * @property {any} reading what the monitor has added up (`Monitor.legacy`)
 *
 * A step for the new server, and what it needs.
 * @typedef {object} Question
 * @property {'handover'} type
 * @property {number} id
 * @property {'connect' | 'sync' | 'learn' | 'go' | 'drop'} step
 * @property {import('./links.js').Link[][]} [links] by worker, for `connect`
 * @property {unknown[]} [notes] of the old hubs, for `learn`
 * @property {import('./move.js').PresenceOf[]} [presence] for `go`
 *
 * @typedef {{ type: 'alive' }} Alive
 * @typedef {{ type: 'refused', problem: string }} Refused
 * @typedef {{ type: 'drained', counts: import('../../lib/counts.js').Counts }} Drained
 * @typedef {{ type: 'closed', node: import('../../hub/nodes/index.js').State | null }} Closed
 * @typedef {Refused | Accepted | Alive | ToRemote | Publish | Revoke | Question | Moved | Drained | Closed} ToNew
 * @typedef {Alive | ToServer | Published | Revoked | HandedOver | { type: 'ready' } | { type: 'serving' } | { type: 'close' } | { type: 'done' }} ToOld after `takeOver`
 */

/** @typedef {import('../../broker/messages.js').ToRemote} ToRemote */
/** @typedef {import('../../broker/messages.js').ToServer} ToServer */
/** @typedef {import('../messages.js').Publish} Publish */
/** @typedef {import('../messages.js').Published} Published */
/** @typedef {import('../messages.js').Revoke} Revoke */
/** @typedef {import('../messages.js').Revoked} Revoked */
/** @typedef {import('../messages.js').HandedOver} HandedOver */
/** @typedef {import('./lines.js').Lines} Lines */
/** @typedef {import('./lines.js').Message} Message */

/** Waits for messages of the other side, in the order in which they have to come. */
export class Turns {
  /** @param {Lines} lines */
  constructor(lines) {
    this.lines = lines;
    /** Messages that came before they were waited for. @type {Map<string, Message>} by type */
    this.early = new Map();
    /** @type {{ type: string, resolve: (message: any) => void, reject: (error: Error) => void } | null} */
    this.waiting = null;
    this.problem = '';
    // So that the other side knows that this one is busy, and not hung.
    this.timer = setInterval(() => lines.send({ type: 'alive' }), ALIVE_MS).unref();
  }

  /** @param {Message} message */
  came(message) {
    if (this.waiting?.type !== message.type) return void this.early.set(message.type, message);
    const { resolve } = this.waiting;
    this.waiting = null;
    resolve(message);
  }

  /**
   * @param {string} type @param {number} [silentMs]
   * @returns {Promise<any>} the message
   * @throws {HoldfastError} HANDOVER if the other side is gone, or silent for too long
   */
  async until(type, silentMs = SILENT_MS) {
    const early = this.early.get(type);
    this.early.delete(type);
    if (early) return early;
    if (this.problem) throw new HoldfastError('HANDOVER', this.problem);
    const beganMs = performance.now();
    const timer = setInterval(() => {
      if (performance.now() - Math.max(this.lines.heardMs, beganMs) > silentMs)
        this.fail(`the other server was silent for ${silentMs} ms`);
    }, silentMs / 20);
    try {
      return await new Promise((resolve, reject) => {
        this.waiting = { type, resolve, reject };
      });
    } finally {
      clearInterval(timer);
    }
  }

  /** @param {string} problem */
  fail(problem) {
    this.problem ||= problem;
    this.waiting?.reject(new HoldfastError('HANDOVER', problem));
    this.waiting = null;
  }

  stop() {
    clearInterval(this.timer);
  }
}
