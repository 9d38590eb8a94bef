/*
 * A `Hold` of the test's own, whose ends are kept.
 */
import { Hold } from 'holdfast';

/** A test that wants pings asks for them. */
const DAY_MS = 86_400_000;

/**
 * @param {import('node:test').TestContext} t it is closed after the test
 * @param {import('holdfast').HoldOptions} [options]
 */
export function startHold(t, options) {
  /** @type {{ id: number, reason: string }[]} */
  const closes = [];
  const onClose = (/** @type {number} */ id, /** @type {string} */ reason) =>
    void closes.push({ id, reason });
  const hold = new Hold({ pingIntervalMs: DAY_MS, onClose, ...options });
  t.after(() => hold.close());
  return { hold, closes };
}

/**
 * @param {import('node:test').TestContext} t it is closed after the test, with its connections
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
