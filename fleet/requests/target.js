/*
 * What `requests` may load: this machine, or a server that consents, at the address that was asked for its consent.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { askConsent, isLoopback } from '../drone/consent.js';
import { askingWith } from '../drone/tls/security.js';

/**
 * @typedef {object} Target
 * @property {string} origin as it is dialled: an address in place of a name
 * @property {string} path with the query
 * @property {Record<string, string>} headers what the URL says: Host, and Authorization if it has a user
 * @property {string} servername for TLS; '' for an address
 * @property {string} shown the URL without user and password, for the report
 */

/**
 * @param {string} given the URL, with or without its scheme
 * @returns {Promise<Target>}
 * @throws {HoldfastError} BAD_OPTION, NO_HOST, NO_CONSENT
 */
export async function targetOf(given) {
  const url = parse(given);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = await allowedAddress(url, host);
  const { host: named, pathname, search, port, protocol } = url;
  // 'localhost' may be 127.0.0.1 or ::1, whichever answers. Any other name could resolve differently the next time.
  const dialled = host === 'localhost' ? host : address.includes(':') ? `[${address}]` : address;
  return {
    origin: `${protocol}//${dialled}${port ? `:${port}` : ''}`,
    path: `${pathname}${search}`,
    headers: { Host: named, ...authorizationOf(url) },
    servername: isIP(host) ? '' : host,
    shown: withoutUser(url.href),
  };
}

/** @param {string} given @returns {URL} */
function parse(given) {
  const text = given.includes('://') ? given : `http://${given}`;
  const url = given !== '' && URL.canParse(text) ? new URL(text) : null;
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  const what = given === '' ? 'no URL' : `'${given}'`;
  throw new HoldfastError(
    'BAD_OPTION',
    `requests got ${what}: expected a URL such as http://127.0.0.1:8888/; see requests --help`,
  );
}

/** @param {URL} url @returns {{ Authorization?: string }} */
function authorizationOf({ username, password }) {
  if (username === '' && password === '') return {};
  const user = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { Authorization: `Basic ${Buffer.from(user).toString('base64')}` };
}

/** @param {string} href */
function withoutUser(href) {
  const url = new URL(href);
  url.username = '';
  url.password = '';
  url.hash = '';
  return url.href;
}

/** @param {URL} url @param {string} host @returns {Promise<string>} */
async function allowedAddress({ protocol, port }, host) {
  const address = await lookup(host).then(
    (found) => found.address,
    (error) => {
      throw new HoldfastError('NO_HOST', `unknown host '${host}' (${messageOf(error)})`);
    },
  );
  if (isLoopback(address)) return address;
  const isSecure = protocol === 'https:';
  // Certificates are not checked: neither are those of the connections that follow.
  const via = isSecure ? askingWith({ roots: null, resumes: true }, host) : undefined;
  return (await askConsent([host], [Number(port || (isSecure ? 443 : 80))], via)).addresses[0];
}
