/*
 * Connections with TLS that were passed on. A shard encrypts and decrypts; JS has one end of a socket pair, on which nothing is
 * encrypted. To an application it looks like a connection of node:https.
 */
import { isIPv6, Socket } from 'node:net';

/** The ids of their connections. @type {WeakMap<object, number>} */
const relayed = new WeakMap();

/** @param {object} socket @returns {boolean} whether a shard encrypts what is written to it */
export function isRelayed(socket) {
  return relayed.has(socket);
}

/** @param {object} socket @returns {number} the id of the connection with TLS behind it, by which native adopts it; 0 if it is its own */
export function relayedId(socket) {
  return relayed.get(socket) ?? 0;
}

/**
 * @param {number} fd
 * @param {number} id of the connection
 * @param {string} from address and port of the client, such as '127.0.0.1 4711'
 * @param {{ address: string, port: number } | null} place where the Hold listens; null if that is unknown
 * @returns {Socket}
 */
export function relayedSocket(fd, id, from, place) {
  const socket = new Socket({ fd, readable: true, writable: true, allowHalfOpen: true });
  const [remoteAddress, port] = from.split(' ');
  // '' and '::' are all addresses: which of them it is, is not known.
  const localAddress = place && !['', '::', '0.0.0.0'].includes(place.address) ? place.address : undefined;
  const facts = {
    encrypted: true,
    authorized: false, // clients show no certificates
    remoteAddress,
    remotePort: Number(port),
    remoteFamily: familyOf(remoteAddress),
    localAddress,
    localPort: place?.port,
    localFamily: localAddress && familyOf(localAddress),
  };
  for (const [name, value] of Object.entries(facts))
    Object.defineProperty(socket, name, { value, configurable: true, enumerable: true, writable: true });
  relayed.set(socket, id);
  return socket;
}

/** @param {string} address */
function familyOf(address) {
  return isIPv6(address) ? 'IPv6' : 'IPv4';
}
