/*
 * Nodes for tests: each has its own connection to a real server of NATS, and presence. They share one order in memory, which stores one
 * of several publications with the same key, as JetStream does.
 */
import { MemoryBroker } from '../../broker/memory.js';
import { Bus } from '../../broker/nats/bus.js';
import { Link } from '../../broker/nats/link.js';
import { Nodes } from '../../hub/nodes/index.js';
import { Presence } from '../../hub/presence/index.js';
import { HoldfastError } from '../../lib/errors.js';
import { PATH } from './hub.js';
import { until } from './until.js';

/** A lease that is short for tests, but longer than what a busy machine takes to run a callback. */
export const LEASE = { beatMs: 100, leaseMs: 1000 };

/**
 * What a node has from the process before.
 * @typedef {object} Heritage
 * @property {import('../../hub/presence/index.js').Identity} identity
 * @property {import('../../hub/presence/moves.js').Entry[]} entries
 * @property {import('../../hub/nodes/index.js').State} before
 */

export class Order {
  constructor() {
    this.broker = new MemoryBroker({
      historyCount: 1_000_000,
      historyAgeMs: 1e9,
      historyBytes: 1e9,
      maxQueueBytes: 1e9,
      isCached: () => false,
    });
    this.keys = new Set();
  }

  /** @param {readonly import('../../broker/index.js').Draft[]} drafts */
  async append(drafts) {
    const fresh = drafts.filter(({ key }) => key !== undefined && !this.keys.has(key));
    for (const { key } of fresh) this.keys.add(key);
    if (fresh.length > 0) await this.broker.append(fresh);
    return drafts.map(() => ({ sequence: this.broker.last, isNew: true }));
  }

  /** @returns {Promise<string[]>} what presence has announced: '+a' began, '-a' ended */
  async told() {
    const { last } = this.broker;
    /** @type {string[]} */
    const events = [];
    while (events.length < last)
      for (const { data } of await this.broker.read(events.length, 10_000)) {
        const { match, active } = JSON.parse(data);
        events.push(`${active ? '+' : '-'}${match}`);
      }
    return events;
  }
}

/**
 * @param {import('node:test').TestContext} t
 * @param {string} url of NATS
 * @param {Order} order
 * @param {{ lease?: { beatMs?: number, leaseMs?: number }, mostBytes?: number, isListed?: boolean, heritage?: Heritage }} [options]
 */
export async function startNode(
  t,
  url,
  order,
  { lease = LEASE, mostBytes = 1e8, isListed = true, heritage } = {},
) {
  /** @type {string[]} */
  const notes = [];
  const onNote = (/** @type {string} */ line) => void notes.push(line);
  const link = await Link.open(
    { servers: [url] },
    { onNote: () => {}, signal: new AbortController().signal },
  );
  const bus = new Bus({ link, prefix: 'holdfast.TEST' });
  const broker = {
    append: async (/** @type {readonly import('../../broker/index.js').Draft[]} */ drafts) => {
      if (!link.isConnected) throw new HoldfastError('BUSY', 'not connected');
      return order.append(drafts);
    },
    get last() {
      return order.broker.last;
    },
  };
  const presence = new Presence({
    broker: /** @type {any} */ (broker),
    path: PATH,
    mostBytes,
    onError: () => {},
    identity: heritage?.identity,
  });
  const worker = {};
  presence.import(worker, heritage?.entries ?? []);
  /** @type {import('../../hub/revocations.js').Revocation[]} */
  const revoked = [];
  const end = async (/** @type {import('../../hub/revocations.js').Revocation[]} */ list) => {
    revoked.push(...list);
    return { workers: 1, unanswered: 0 };
  };
  const nodes = new Nodes({
    bus,
    presence: isListed ? presence : null,
    end,
    onNote,
    before: heritage?.before,
    lease,
  });
  nodes.start();
  const keepsAlive = setInterval(() => {}, 1000);
  /** As if the process was killed. */
  const kill = async () => {
    nodes.isStopped = true;
    nodes.lease.stop();
    presence.close();
    await link.close();
  };
  t.after(async () => {
    clearInterval(keepsAlive);
    await kill();
  });
  /** @returns {Promise<any[]>} what is on the list */
  const list = async () => {
    /** @type {string[]} */
    const parts = [];
    const query = { dialect: /** @type {const} */ ('draft'), keys: null, subscriber: '', unless: [] };
    await presence.list(query, (part) => void parts.push(part));
    return JSON.parse(`[${parts.join('')}]`);
  };
  return {
    link,
    bus,
    presence,
    nodes,
    notes,
    revoked,
    kill,
    list,
    worker,
    /** @param {number} id @param {string} text of a stream that is opened */
    enter: (id, text) => presence.enter(worker, id, `8=${text}`),
    /** @param {number} id */
    leave: (id) => presence.leave(worker, id),
    /** @param {number} count of nodes that it should know, itself included */
    untilCount: (count) =>
      until(
        () => nodes.count === count,
        () => `${count} nodes, not ${nodes.count}`,
      ),
    /** @param {string[]} names */
    untilListed: async (...names) => {
      const listed = async () => (await list()).map(({ match }) => match).sort();
      const wanted = names.sort().join();
      let found = '';
      await until(
        async () => {
          found = (await listed()).join();
          return found === wanted;
        },
        () => `${wanted} on the list, not ${found}`,
      );
    },
  };
}
