/*
 * Lists of ports and of addresses, as they are given as parameters, and the addresses that a drone dials from. Pure.
 */
import { isIP } from 'node:net';
import { isLoopback } from './consent.js';

export const MOST_HOSTS = 256;
const MOST_PORTS = 4096;
/** Above this, the kernel takes long to find a free port of a local address. */
const STREAMS_PER_SOURCE = 8000;
const MOST_SOURCES = 65_536;
/**
 * Each drone dials from its own block of the loopback range, chosen by its pid. Two drones that share an address
 * search for its free ports one after the other, which costs more CPU than everything else.
 */
const LOOPBACK_BLOCKS = 65_000;
const BLOCK_ADDRESSES = 256;

/** @param {string} given a host name, an address, or several addresses of one server @returns {boolean} */
export function isHost(given) {
  if (/^[\d.]+[-,][\d.,-]+$/.test(given)) return areHosts(given);
  return isIP(given) !== 0 || /^[a-z0-9.-]{1,253}$/i.test(given);
}

/** @param {string} given a list @returns {boolean} */
function areHosts(given) {
  const addresses = sourcesIn(given, MOST_HOSTS);
  return addresses !== undefined && (!given.includes('-') || addresses.every(isLoopback));
}

/** @param {string} given @returns {number[] | undefined} */
export function portsIn(given) {
  const ports = [];
  for (const part of given.split(',')) {
    const found = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(part);
    if (!found) return undefined;
    const [first, last] = [Number(found[1]), Number(found[2] ?? found[1])];
    if (first === 0 || last < first || last > 65_535 || ports.length + last - first >= MOST_PORTS)
      return undefined;
    for (let port = first; port <= last; port++) ports.push(port);
  }
  return ports;
}

/** @param {string} given @param {number} [most] @returns {string[] | undefined} */
export function sourcesIn(given, most = MOST_SOURCES) {
  const all = [];
  for (const part of given.split(',')) {
    const [first, last = first, ...more] = part.split('-');
    if (more.length > 0 || isIP(first) === 0 || isIP(first) !== isIP(last)) return undefined;
    if (first === last) all.push(first);
    else {
      const range = isIP(first) === 4 ? rangeOf(first, last) : undefined;
      if (!range || all.length + range.length > most) return undefined;
      for (const address of range) all.push(address);
    }
  }
  return all.length <= most ? all : undefined;
}

/** @param {string} first @param {string} last both IPv4 @returns {string[] | undefined} */
function rangeOf(first, last) {
  const [from, to] = [numberOf(first), numberOf(last)];
  if (to < from || to - from >= MOST_SOURCES) return undefined;
  return Array.from({ length: to - from + 1 }, (_, i) => addressOf(from + i));
}

/** @param {string} address IPv4 */
function numberOf(address) {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** @param {number} number */
function addressOf(number) {
  return [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.');
}

/**
 * Enough addresses of the loopback range, from 127.0.0.2 on, for so many streams.
 * @param {number} streams
 * @param {number} from how many addresses to skip: those of other drones
 * @param {number} ports destinations: pairs of an address and a port of the target
 * @returns {string[]}
 */
export function loopbackSources(streams, from, ports) {
  const count = Math.max(1, Math.ceil(streams / (STREAMS_PER_SOURCE * ports)));
  return Array.from({ length: count }, (_, i) => addressOf(numberOf('127.0.0.2') + from + i));
}

/** @param {string} host the parameter @returns {string[]} each of them */
export function hostsOf(host) {
  return isIP(host) === 0 && /^[\d.]+[-,]/.test(host) ? (sourcesIn(host) ?? [host]) : [host];
}

/**
 * @param {import('./params.js').Params} params @param {import('./dial.js').Server[]} servers
 * @returns {string[]} local addresses; none if the kernel should choose
 */
export function ownSources({ n, churn }, servers) {
  const all = servers.flatMap(({ addresses }) => addresses);
  const isLocal4 = all.every((address) => isLoopback(address) && !address.includes(':'));
  if (!isLocal4) return [];
  // A single server may get all streams.
  const pairs = Math.min(
    ...servers.map(({ addresses, ports }) => addresses.length * ports.length || Infinity),
  );
  // Half of the destinations: while a ramp rises step by step, the first sources take part in every step.
  const destinations = Math.ceil(pairs / 2);
  const from = (process.pid % LOOPBACK_BLOCKS) * BLOCK_ADDRESSES;
  // The port of a stream that was closed can't be used for a second.
  return loopbackSources(n + 2 * churn, from, destinations);
}
