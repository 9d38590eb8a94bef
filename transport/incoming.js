/*
 * Requests of node:http that ask for an upgrade. If somebody listens for 'upgrade', Node takes every request with such a header away from its
 * parser, `Upgrade: h2c` of a publication too (Java's client sends that), whose body nobody would read then. Here it does so only with
 * those that ask for a WebSocket.
 */
import { IncomingMessage } from 'node:http';
import { asksForWebSocket } from '../lib/wishes.js';

const kUpgrade = Symbol('upgrade');

/** Servers that take no other upgrades. @type {WeakSet<import('node:http').Server>} */
const modest = new WeakSet();

/** @param {import('node:http').Server} server that takes WebSockets, but no other upgrades */
export function takeOnlyWebSockets(server) {
  modest.add(server);
}

/** @param {import('node:http').Server | undefined} server @returns {boolean} whether it takes every kind of upgrade */
export function takesUpgrades(server) {
  return server !== undefined && server.listenerCount('upgrade') > 0 && !modest.has(server);
}

/**
 * @param {() => boolean} takesAll whether others are wanted, too
 * @returns {typeof IncomingMessage} for the option `IncomingMessage` of a server
 */
export function incomingWith(takesAll) {
  return class extends IncomingMessage {
    /** Node asks once it has the headers. */
    get upgrade() {
      const { [kUpgrade]: isAsked } = /** @type {{ [kUpgrade]?: boolean }} */ (/** @type {unknown} */ (this));
      return isAsked && (this.method === 'CONNECT' || takesAll() || asksForWebSocket(this.headers.upgrade));
    }

    set upgrade(isAsked) {
      Object.assign(this, { [kUpgrade]: isAsked });
    }
  };
}
