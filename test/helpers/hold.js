/*
 * Holds for tests, of both kinds: with the native core and without it.
 */
import { native } from '../../native/index.js';
import { StreamHolder } from '../../transport/holder.js';
import { get, rawClient } from './client.js';

/** A test that wants pings asks for them. */
const DAY_MS = 86_400_000;

/** @typedef {'native' | 'JS'} Kind */

/** The kinds of Hold that every test of its contract runs against. @type {Kind[]} */
export const KINDS = native ? ['native', 'JS'] : ['JS'];

/** For tests of what the native core alone does. */
export const NEEDS_NATIVE = { skip: !native && 'the native core is not built' };

/** @typedef {{ id: number, reason: string }} Close */

/**
 * @param {import('node:test').TestContext} t the Hold is closed after the test
 * @param {Kind} kind
 * @param {import('holdfast').HoldOptions} [options]
 */
export function startHold(t, kind, options) {
  /** @type {Close[]} */
  const closes = [];
  const onClose = (/** @type {number} */ id, /** @type {string} */ reason) =>
    void closes.push({ id, reason });
  const hold = new StreamHolder(
    { pingIntervalMs: DAY_MS, onClose, ...options },
    kind === 'native' ? native : null,
  );
  t.after(() => hold.close());
  return { hold, closes };
}

/**
 * A Hold that listens, with streams by target: '/a,b' listens to the channels a and b, and begins with 'Welcome!'.
 * @param {import('node:test').TestContext} t
 * @param {Kind} kind
 * @param {import('holdfast').HoldOptions} [options]
 */
export async function startListening(t, kind, options) {
  /** @type {Map<string, number>} */
  const ids = new Map();
  /** @type {import('holdfast').Policy} */
  const policy = {
    decide: ({ target }, id) => {
      ids.set(target, id);
      return { hold: 'text', channels: target.slice(1).split(','), welcome: 'Welcome!' };
    },
  };
  const { hold, closes } = startHold(t, kind, { policy, ...options });
  const port = await hold.listen(0, '127.0.0.1');
  const ask = (/** @type {string} */ target, headers = {}, version = '1.1') => {
    const client = rawClient(port, get(headers, version).replace('/ HTTP', `${target} HTTP`));
    t.after(client.close);
    return client;
  };
  const open = async (/** @type {string} */ target, version = '1.1') => {
    const client = ask(target, {}, version);
    await client.untilRead(/Welcome!/);
    return client;
  };
  const idOf = (/** @type {string} */ target) => /** @type {number} */ (ids.get(target));
  return { hold, closes, idOf, port, ask, open };
}

/**
 * @param {import('node:test').TestContext} t the server is closed after the test, with its connections
 * @param {import('node:net').Server} server
 * @returns {Promise<number>} its port
 */
export async function listening(t, server) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  t.after(() => {
    server.close();
    if ('closeAllConnections' in server)
      /** @type {import('node:http').Server} */ (server).closeAllConnections();
  });
  return /** @type {import('node:net').AddressInfo} */ (server.address()).port;
}
