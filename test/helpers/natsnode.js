/*
 * Nodes on NATS without a server around them: a broker, and what its followers get.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { openBroker } from '../../broker/index.js';
import { OPTIONS } from './brokers.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {import('../../broker/index.js').Draft} Draft */
/** @typedef {import('../../broker/index.js').Publication} Publication */

/** @param {string} data @param {Partial<Draft>} [more] @returns {Draft} */
export const draft = (data, more) => ({ topics: ['news'], data, private: false, ...more });

/**
 * A node: its broker, and everything that a follower of it gets. `resets` counts how often it was told to begin anew.
 * @param {TestContext} t @param {readonly { url: string }[]} servers
 * @param {Partial<Parameters<typeof openBroker>[0]> & { stream?: string, replicas?: number }} [more]
 */
export async function openNode(t, servers, { stream = 'TEST', replicas = 1, ...more } = {}) {
  /** @type {string[]} */
  const notes = [];
  const nats = { servers: servers.map(({ url }) => url), stream, replicas };
  const broker = await openBroker({ ...OPTIONS, onNote: (line) => notes.push(line), ...more, nats });
  /** @type {Publication[]} */
  const followed = [];
  const node = { broker, followed, notes, resets: 0 };
  broker.follow(
    (publications) => void followed.push(...publications),
    () => void node.resets++,
  );
  t.after(() => broker.close());
  return node;
}

/** @param {{ followed: Publication[] }} node @param {number} count */
export const untilFollowed = (node, count) =>
  until(
    () => node.followed.length >= count,
    () => `${node.followed.length} of ${count} publications`,
  );

/** @param {readonly Publication[]} publications */
export const dataOf = (publications) => publications.map(({ data }) => data);

/** @param {TestContext} t @param {{ url: string }} server */
export async function managerOf(t, server) {
  const nc = await connect({ servers: server.url });
  t.after(() => nc.close());
  return { nc, manager: await jetstreamManager(nc) };
}
