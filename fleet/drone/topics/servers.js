/*
 * The servers that share the streams of a drone: nodes of one hub. A stream that comes back takes the next one. Usually there is
 * one server. The native dialer chooses in the same way (native/core/src/dial/servers.rs).
 */
import { isIP } from 'node:net';
import { hostsOf, isHost, portsIn } from '../addresses.js';
import { askConsent } from '../consent.js';
import { askingWith } from '../tls/security.js';
import { numberOf } from './subscriber.js';

export const MOST_SERVERS = 16;
const SERVER = /^(?:\[([^\]]+)\]|([^:[\]]+)):([\d,-]+)$/;

/** @typedef {import('../dial.js').Target} Target */
/** @typedef {import('../dial.js').Server} Server */
/** @typedef {import('../dial.js').ServerCounts} ServerCounts */
/** @typedef {import('../consent.js').Consent} Consent */
/** @typedef {{ host: string, port: number[] }} Place */

/**
 * @param {string} given 'a:8888,b:8888,8890,10.0.0.5,10.0.0.6:8888' are three servers: b has two ports, and the last one two addresses
 * @returns {string[]} the text of each, whether it is valid or not
 */
export function splitServers(given) {
  /** @type {string[]} */
  const texts = [];
  for (const part of given.split(',')) {
    const last = texts.pop();
    if (last === undefined) texts.push(part);
    else if (/:[\d,-]+$/.test(last) && !/^[\d-]+$/.test(part)) texts.push(last, part);
    else texts.push(`${last},${part}`);
  }
  return texts;
}

/** @param {string} text 'a:8888' @returns {Place | undefined} undefined if it is not a server with its ports */
export function serverIn(text) {
  const [, six, name, ports] = SERVER.exec(text) ?? [];
  const host = six ?? name;
  const port = ports && portsIn(ports);
  return host && isHost(host) && port ? { host, port } : undefined;
}

/** @param {Place} place @returns {string} 'a:8888' */
function nameOf({ host, port }) {
  return `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

/** @param {import('../params.js').Params} params @returns {string[]} the name of each server */
export function namesOf(params) {
  return placesOf(params).map(nameOf);
}

/** @param {import('../params.js').Params} params @returns {Place[]} of all its servers */
export function placesOf({ host, port, others }) {
  return [{ host, port }, ...others.map((text) => /** @type {Place} */ (serverIn(text)))];
}

/**
 * Asks all servers for their consent.
 * @param {import('../params.js').Params} params
 * @param {import('../dial.js').Security | null} security
 * @param {boolean} isAgain servers that don't answer are left out, if another one does
 * @returns {Promise<Omit<Consent, 'addresses'> & { servers: Server[], isPartial: boolean }>} isPartial: some are left out
 * @throws {import('../consent.js').Refusal} the first one, or that of a server that answers and refuses
 */
export async function askServers(params, security, isAgain) {
  const places = placesOf(params).map((place) => ({ ...place, hosts: hostsOf(place.host) }));
  const asked = await Promise.allSettled(
    places.map(({ hosts, port }) =>
      askConsent(hosts, port, security ? askingWith(security, hosts[0]) : undefined),
    ),
  );
  const refusals = asked.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
  const consents = asked.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
  const isBearable = isAgain && consents.length > 0 && refusals.every(({ code }) => code === 'NO_ANSWER');
  if (refusals.length > 0 && !isBearable)
    throw refusals.find(({ code }) => code === 'NO_CONSENT') ?? refusals[0];
  const servers = places.map((place, i) => {
    const one = asked[i];
    const addresses = one.status === 'fulfilled' ? one.value.addresses : [];
    return { name: nameOf(place), host: place.hosts[0], addresses, ports: place.port };
  });
  return {
    servers,
    isLocal: consents.every(({ isLocal }) => isLocal),
    pingIntervalMs: consents.find(({ pingIntervalMs }) => pingIntervalMs !== null)?.pingIntervalMs ?? null,
    idlePings: consents.some(({ idlePings }) => idlePings),
    isPartial: refusals.length > 0,
  };
}

/**
 * @param {ServerCounts[]} now @param {ServerCounts[]} before
 * @returns {ServerCounts[]} what has been counted in between; `open` is the number now
 */
export function countsSince(now, before) {
  return now.map(({ name, open, opened, failed, lost }) => {
    const then = before.find((one) => one.name === name) ?? { opened: 0, failed: 0, lost: 0 };
    return { name, open, opened: opened - then.opened, failed: failed - then.failed, lost: lost - then.lost };
  });
}

/** Where each stream of the plain dialer is, if there are several servers, and what became of it there. */
export class Visits {
  constructor() {
    /** Indexes of servers, by place: where it was opened last, or failed to, and where it was open last. @type {({ at: number, open: number } | undefined)[]} */
    this.all = [];
    /** By the name of the server. @type {Map<string, ServerCounts>} */
    this.counted = new Map();
  }

  /** @param {Target} target @param {number} place of a stream that is about to be opened @returns {number} the index of its server */
  next({ servers, subscription }, place) {
    const count = servers.length;
    if (count === 1) {
      this.forget(place);
      return 0;
    }
    const visit = this.all[place] ?? { at: -1, open: -1 };
    const number = subscription ? numberOf(subscription, place) : place;
    visit.at = visit.at < 0 ? firstOf(number, count) : (visit.at + 1) % count;
    while (servers[visit.at].addresses.length === 0) visit.at = (visit.at + 1) % count;
    this.all[place] = visit;
    return visit.at;
  }

  /**
   * @param {import('../stream.js').Stream} stream @param {'opened' | 'failed' | 'lost' | 'closed'} what became of it
   * @returns {boolean} whether it is open now and was open at another server before
   */
  count({ target, server, place }, what) {
    if (target.servers.length === 1) return false;
    const counts = this.of(target.servers[server]);
    if (what === 'lost' || what === 'closed') counts.open--;
    if (what === 'closed') return false;
    counts[what]++;
    const visit = this.all[place];
    if (what !== 'opened' || !visit) return false;
    counts.open++;
    const before = visit.open;
    visit.open = server;
    return before >= 0 && before !== server;
  }

  /** @param {number} place of a stream that was closed for good */
  forget(place) {
    this.all[place] = undefined;
  }

  /** @param {Server} server */
  of({ name }) {
    const counts = this.counted.get(name) ?? { name, open: 0, opened: 0, failed: 0, lost: 0 };
    this.counted.set(name, counts);
    return counts;
  }

  /** @param {Target | null} target @returns {ServerCounts[]} of its servers; none if there is only one */
  counts(target) {
    const servers = target?.servers ?? [];
    return servers.length > 1 ? servers.map((server) => ({ ...this.of(server) })) : [];
  }
}

/**
 * The first server of a stream. Of `count` streams in a row each gets another one. Where the row begins is mixed up, so that those
 * of a topic like {n%20}, which have every 20th number, are not all at the same server.
 * @param {number} number @param {number} count
 */
function firstOf(number, count) {
  return (number + mixed(Math.floor(number / count))) % count;
}

/** The finalizer of MurmurHash3. @param {number} number 32 bits */
function mixed(number) {
  const first = Math.imul(number ^ (number >>> 16), 0x85ebca6b);
  const second = Math.imul(first ^ (first >>> 13), 0xc2b2ae35);
  return (second ^ (second >>> 16)) >>> 0;
}
