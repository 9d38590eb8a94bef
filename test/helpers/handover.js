/*
 * Streams and publishers while a server hands its streams over.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { untilListening } from '../../lib/listening.js';
import { get, rawClient } from './client.js';
import { eventsIn, PATH, PUBLISHER, SECRET } from './hub.js';
import { run, startServer } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */
/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

/** Options of all servers of these tests. */
export const OPTIONS = ['--transport', 'hold', '--anonymous', '--jwt-secret', SECRET, '--drain', '500'];

/** @param {TestContext} t @param {string[]} args */
export const startOld = (t, ...args) => startServer(t, ['--workers', '2', ...OPTIONS, ...args]);

/**
 * A server that takes over from another one.
 * @param {TestContext} t @param {{ folder: string }} server @param {string[]} [args] @param {Record<string, string>} [env]
 */
export function startNew(t, { folder }, args = [], env = {}) {
  const words = ['--port', '0', '--admin-port', 'auto', '--dashboard', 'off', '--refresh', '100'];
  const started = run(
    t,
    process.execPath,
    ['server.js', '--takeover', ...words, '--log-dir', folder, ...OPTIONS, '--workers', '2', ...args],
    { stdio: ['pipe', 'pipe', 'pipe', 'ipc'], env: { ...process.env, ...env } },
  );
  const listening = untilListening(started.child).catch((error) => {
    throw new Error(`${error.message}: ${started.output.stderr}`);
  });
  listening.catch(() => {});
  return { ...started, folder, listening };
}

/** @param {number} adminPort @returns {Promise<import('../../monitor/frame.js').Frame>} */
export const frameOf = async (adminPort) => (await fetch(`http://127.0.0.1:${adminPort}/frame`)).json();

/** @param {number} adminPort @param {(totals: Record<string, any>) => boolean} condition @param {string} what */
export const untilTotals = (adminPort, condition, what) =>
  until(async () => {
    const { totals } = await frameOf(adminPort).catch(() => ({ totals: {} }));
    return condition(totals) && /** @type {Record<string, any>} */ (totals);
  }, what);

/** @param {TestContext} t @param {number} port @param {number} count of streams, half of the hub and half of a channel */
export async function openStreams(t, port, count) {
  const clients = Array.from({ length: count }, (_, i) => {
    const path = i % 2 === 0 ? `${PATH}?topic=a` : '/?channel=news';
    const client = rawClient(port, get({ Accept: 'text/event-stream' }).replace('/ HTTP', `${path} HTTP`));
    t.after(client.close);
    return { ...client, isOfHub: i % 2 === 0, client };
  });
  for (const { client } of clients) await until(() => client.received.includes('\r\n\r\n'), 'a head');
  const ofHub = clients.filter(({ isOfHub }) => isOfHub).map(({ client }) => client);
  const ofChannel = clients.filter(({ isOfHub }) => !isOfHub).map(({ client }) => client);
  return { clients: clients.map(({ client }) => client), ofHub, ofChannel };
}

/** @param {{ received: string }} client @returns {string[]} the data of all events with one */
export const datasOf = ({ received }) =>
  eventsIn(received).flatMap(({ data }) => (data === undefined ? [] : [data]));

/**
 * Publishes to the hub all the time, each with an id, so that one that fails can be sent again.
 * @param {TestContext} t @param {number} port
 */
export function publishAllTheTime(t, port) {
  const state = { sent: 0, isOver: false, retries: 0 };
  t.after(() => {
    state.isOver = true;
  });
  const publish = async () => {
    const body = new URLSearchParams({ topic: 'a', data: String(state.sent), id: `urn:test:${state.sent}` });
    const headers = { Authorization: `Bearer ${PUBLISHER}`, Connection: 'close' };
    const response = await fetch(`http://localhost:${port}${PATH}`, { method: 'POST', body, headers }).catch(
      () => null,
    );
    await response?.text().catch(() => {});
    if (response?.status === 200) state.sent++;
    else state.retries++;
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  const done = (async () => {
    while (!state.isOver) await publish();
  })();
  return {
    state,
    /** @returns {Promise<string[]>} all that was published */
    stop: async () => {
      state.isOver = true;
      await done;
      return Array.from({ length: state.sent }, (_, i) => String(i));
    },
  };
}

/** @param {{ closed: boolean, received: string }[]} clients @param {string[]} expected data, each once and in order */
export async function assertAllGot(clients, expected) {
  for (const client of clients) {
    await until(
      () => datasOf(client).length >= expected.length,
      () => `${datasOf(client).length} of ${expected.length}`,
      10_000,
    );
    assert.deepEqual(datasOf(client), expected);
  }
  assert.equal(clients.filter(({ closed }) => closed).length, 0);
}

/** @param {Server} server @param {string} path @returns {Promise<string>} status and text */
export async function post(server, path) {
  const response = await fetch(`http://127.0.0.1:${server.adminPort}${path}`, {
    method: 'POST',
    headers: { 'X-Holdfast': '1' },
  });
  return `${response.status} ${(await response.text()).trim()}`;
}

/** @param {{ folder: string }} server */
export const controlOf = ({ folder }) => join(folder, 'control.sock');
