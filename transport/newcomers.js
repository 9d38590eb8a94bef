/*
 * Connections that have not sent a complete request head yet, in the order in which they came. When there is no room, or
 * an address has too many of them, the oldest makes room.
 */
import { performance } from 'node:perf_hooks';
import { inRanges, plainAddress, siteOf } from '../lib/addresses.js';

/**
 * How long a client has to send its head, or to read an answer and close, before its connection may be cut in favour of
 * another; native has the same.
 */
const GRACE_MS = 250;

/** @typedef {import('node:net').Socket} Socket */

/**
 * @template T
 * @param {Map<T, { sinceMs: number }>} connections the oldest first
 * @returns {T | undefined} the oldest, if it has had some time
 */
export function expendable(connections) {
  for (const [socket, { sinceMs }] of connections)
    return performance.now() - sinceMs < GRACE_MS ? undefined : socket;
  return undefined;
}

export class Newcomers {
  /** @param {number} mostPerAddress @param {readonly string[]} proxies ranges of addresses without that limit */
  constructor(mostPerAddress, proxies) {
    this.mostPerAddress = mostPerAddress;
    this.isProxy = inRanges(proxies);
    /** The oldest first. @type {Map<Socket, { sinceMs: number, site: string }>} */
    this.bySocket = new Map();
    /** @type {Map<string, Set<Socket>>} */
    this.bySite = new Map();
  }

  /** @param {Socket} socket */
  add(socket) {
    const address = plainAddress(socket.remoteAddress);
    const site = this.isProxy(address) ? '' : siteOf(address);
    this.bySocket.set(socket, { sinceMs: performance.now(), site });
    if (site === '') return;
    const same = this.bySite.get(site);
    if (same) same.add(socket);
    else this.bySite.set(site, new Set([socket]));
  }

  /** @param {Socket} socket that has sent a head, or has closed */
  delete(socket) {
    const found = this.bySocket.get(socket);
    if (!found) return;
    this.bySocket.delete(socket);
    const same = this.bySite.get(found.site);
    same?.delete(socket);
    if (same?.size === 0) this.bySite.delete(found.site);
  }

  /** @param {Socket} socket @returns {Socket | undefined} the oldest of the same client, if that has too many */
  oldestOfCrowd(socket) {
    const same = this.bySite.get(this.bySocket.get(socket)?.site ?? '');
    if (!same || same.size <= this.mostPerAddress) return undefined;
    const [oldest] = same;
    return oldest;
  }

  /** @returns {Socket | undefined} the oldest, if it has had some time */
  oldest() {
    return expendable(this.bySocket);
  }
}
