/*
 * TLS for the plain dialer.
 */
import { connect } from 'node:tls';
import { causeOf as causeOfPlain } from '../causes.js';
import { isOfCertificate, tlsOptions } from './security.js';

/** @typedef {import('../dial.plain.js').PlainDialer} PlainDialer */

/** The newest of each server, by its name and host; for one security alone. @typedef {{ roots: string | null, newest: Map<string, Buffer> }} Tickets */

/** @type {WeakMap<PlainDialer, Tickets>} */
const tickets = new WeakMap();

/** @param {PlainDialer} dialer @param {import('../dial.js').Security} security @returns {Tickets['newest']} */
function ticketsOf(dialer, { roots }) {
  const known = tickets.get(dialer);
  if (known && known.roots === roots) return known.newest;
  const newest = new Map();
  tickets.set(dialer, { roots, newest });
  return newest;
}

/**
 * @param {PlainDialer} dialer which counts the handshake
 * @param {import('node:net').NetConnectOpts & { host: string }} where
 * @param {import('../dial.js').Server} server
 * @param {import('../dial.js').Security} security
 * @returns {import('node:tls').TLSSocket}
 */
export function connectSecurely(dialer, where, { name, host }, security) {
  const known = ticketsOf(dialer, security);
  const key = `${name} ${host}`;
  const session = security.resumes ? known.get(key) : undefined;
  const socket = connect({ ...where, ...tlsOptions(security, host), session, ALPNProtocols: ['http/1.1'] });
  let connectedMs = 0;
  socket.on('connect', () => {
    connectedMs = performance.now();
  });
  socket.on('secureConnect', () => {
    dialer.counts.handshakes++;
    if (socket.isSessionReused()) dialer.counts.resumptions++;
    dialer.record('handshake', performance.now() - connectedMs);
  });
  if (security.resumes) socket.on('session', (ticket) => known.set(key, ticket));
  return socket;
}

/** @param {string} code of an error @returns {import('../causes.js').Cause} */
export function causeOf(code) {
  if (isOfCertificate(code)) return 'certificate';
  if (code.includes('_ALERT_')) return 'tls-alert';
  if (code === 'ERR_SSL_DECRYPTION_FAILED_OR_BAD_RECORD_MAC') return 'bad-record';
  return code === 'EPROTO' || code.startsWith('ERR_SSL_') ? 'handshake' : causeOfPlain(code);
}
