/*
 * Which caches `requests` may load: those of this machine, because their protocols have no way to ask for consent.
 */
import { lookup } from 'node:dns/promises';
import { connect } from 'node:net';
import { HoldfastError, messageOf } from '../../../lib/errors.js';
import { isLoopback } from '../../drone/consent.js';

const PORTS = { memcached: 11_211, redis: 6379 };
const SCHEME = /^(memcached|redis):/i;
/** Until an address of this machine must accept a connection. */
const DIAL_MS = 1000;

/** @typedef {keyof typeof PORTS} Protocol */

/**
 * @typedef {object} Address
 * @property {Protocol} protocol
 * @property {string} host an IP address; '' for a Unix socket
 * @property {number} port
 * @property {string} path of the Unix socket, or ''
 * @property {string} shown the URL
 */

/** @param {string} text @returns {boolean} */
export function isCacheUrl(text) {
  return SCHEME.test(text);
}

/** @param {string} given @returns {Promise<Address>} @throws {HoldfastError} BAD_OPTION, NO_HOST, NOT_LOCAL */
export async function addressOf(given) {
  const { protocol, hostname, port, path } = parse(given);
  if (path) return { protocol, host: '', port: 0, path, shown: `${protocol}://${path}` };
  const number = Number(port || PORTS[protocol]);
  const host = await localAddress(hostname.replace(/^\[|\]$/g, ''), number, protocol);
  return { protocol, host, port: number, path: '', shown: `${protocol}://${hostname}:${number}` };
}

/** @param {string} given */
function parse(given) {
  const url = URL.canParse(given) ? new URL(given) : null;
  const protocol = /** @type {Protocol} */ (SCHEME.exec(given)?.[1].toLowerCase());
  const { hostname = '', port = '', pathname = '', username = '', search = '' } = url ?? {};
  const path = hostname === '' && pathname.length > 1 ? decodeURIComponent(pathname) : '';
  const isEmpty = hostname === '' && path === '';
  const hasMore = hostname !== '' && pathname.length > 1;
  if (url && !isEmpty && !hasMore && !username && !search) return { protocol, hostname, port, path };
  const expected = `${protocol}://127.0.0.1:${PORTS[protocol]} or ${protocol}:///path/of/a/socket`;
  throw new HoldfastError('BAD_OPTION', `requests got '${given}': expected a URL such as ${expected}`);
}

/**
 * @param {string} host @param {number} port @param {Protocol} protocol
 * @returns {Promise<string>} an address of this machine: 'localhost' may be 127.0.0.1 or ::1, whichever answers
 */
async function localAddress(host, port, protocol) {
  const found = await lookup(host, { all: true }).catch((error) => {
    throw new HoldfastError('NO_HOST', `unknown host '${host}' (${messageOf(error)})`);
  });
  const addresses = found.map(({ address }) => address);
  if (!addresses.every(isLoopback))
    throw new HoldfastError(
      'NOT_LOCAL',
      `refusing to load ${protocol}://${host}: this protocol can't ask for consent, so only caches on this machine are loaded, such as ${protocol}://127.0.0.1:${port}`,
    );
  if (addresses.length === 1) return addresses[0];
  const answers = await Promise.all(addresses.map((address) => accepts(address, port)));
  return addresses[Math.max(0, answers.indexOf(true))];
}

/** @param {string} host @param {number} port @returns {Promise<boolean>} */
function accepts(host, port) {
  return new Promise((resolve) => {
    const socket = connect({ host, port, timeout: DIAL_MS });
    const end = (/** @type {boolean} */ answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
    socket.once('timeout', () => end(false));
  });
}
