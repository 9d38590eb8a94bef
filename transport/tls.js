/*
 * The TLS options of a Hold, named as in node:tls: checked, and made into objects of the native core.
 */
import { createHash, randomBytes } from 'node:crypto';
import { types } from 'node:util';
import { readPair, TICKET_KEYS_BYTES } from '../lib/certificates.js';
import { HoldfastError, messageOf } from '../lib/errors.js';
import { formatNoun } from '../lib/format.js';
import { shown } from '../lib/shown.js';
import { badArgument, checkKeys } from './checks.js';

/** @type {Record<string, 12 | 13>} */
const VERSIONS = { 'TLSv1.2': 12, 'TLSv1.3': 13 };
const KEYS = ['cert', 'key', 'minVersion', 'ticketKeys'];

/** @typedef {string | Uint8Array} Pem */

/**
 * @typedef {object} TlsOptions
 * @property {Pem | readonly Pem[]} cert certificates with their chains; the first one is also for clients that ask for no name, or
 *   another one
 * @property {Pem | readonly Pem[]} key as many, in the same order
 * @property {'TLSv1.2' | 'TLSv1.3'} [minVersion] TLSv1.3 by default
 * @property {Uint8Array} [ticketKeys] 48 bytes
 */

/** The certificates that the shards of a Hold use. */
export class Tls {
  /** @param {import('../native/types.js').Native} native @param {import('../native/types.js').Core} core */
  constructor(native, core) {
    this.native = native;
    this.core = core;
    /** With these, clients resume their sessions. Random, unless somebody gives others. @type {Uint8Array} */
    this.ticketKeys = randomBytes(TICKET_KEYS_BYTES);
    /** Whether there are any certificates. */
    this.isUsed = false;
  }

  /**
   * @param {TlsOptions} options without `ticketKeys`, those from before stay
   * @returns {() => void} a function that makes new connections use them
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  prepare(options) {
    const tls = secureContext(this.native, options, this.ticketKeys);
    const { ticketKeys = this.ticketKeys } = options;
    const own = Uint8Array.from(ticketKeys); // the application may change its own
    return () => {
      this.ticketKeys = own;
      this.isUsed = true;
      this.core.useTls(tls);
    };
  }
}

/** @returns {HoldfastError} */
export function noTls() {
  return new HoldfastError(
    'NOT_NATIVE',
    'only the native core can listen with TLS, and it is not available (see the warning NO_NATIVE): use a server of node:https, and adopt its responses',
  );
}

/**
 * @param {import('../native/types.js').Native} native
 * @param {TlsOptions} options
 * @param {Uint8Array} ticketKeys those that are used without `options.ticketKeys`
 * @returns {import('../native/types.js').Tls}
 * @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT
 */
export function secureContext(native, options, ticketKeys) {
  checkKeys('tls', options, KEYS);
  const [chains, keys] = [textsOf('cert', options.cert), textsOf('key', options.key)];
  if (chains.length !== keys.length)
    throw badArgument(
      `tls has ${formatNoun(chains.length, 'certificate')} (cert) and ${formatNoun(keys.length, 'key')}: each certificate needs its key, in the same order`,
    );
  chains.forEach((chain, i) => {
    const number = chains.length > 1 ? ` ${i + 1}` : '';
    const names = { chainName: `tls: cert${number}`, keyName: `tls: key${number}` };
    const { problem } = readPair({ chain, key: keys[i], ...names });
    if (problem) throw badArgument(problem);
  });
  const { minVersion = 'TLSv1.3', ticketKeys: own = ticketKeys } = options;
  if (typeof minVersion !== 'string' || !Object.hasOwn(VERSIONS, minVersion))
    throw badArgument(
      `tls: minVersion must be one of ${Object.keys(VERSIONS).join(', ')}, not ${shown(minVersion)}`,
    );
  checkTicketKeys(own);
  const certificates = chains.map((chain, i) => ({ chain: Buffer.from(chain), key: Buffer.from(keys[i]) }));
  try {
    return new native.Tls({ certificates, minVersion: VERSIONS[minVersion], ticketSecret: secretOf(own) });
  } catch (error) {
    throw badArgument(`tls: ${messageOf(error)}`);
  }
}

/** @param {Uint8Array} keys @throws {import('../lib/errors.js').HoldfastError} BAD_ARGUMENT, without the keys */
function checkTicketKeys(keys) {
  if (!types.isUint8Array(keys))
    throw badArgument(`tls: ticketKeys must be a Buffer of ${TICKET_KEYS_BYTES} bytes, not ${typeof keys}`);
  if (keys.length !== TICKET_KEYS_BYTES)
    throw badArgument(`tls: ticketKeys must have ${TICKET_KEYS_BYTES} bytes, not ${keys.length}`);
}

/** Native takes 32 bytes. @param {Uint8Array} ticketKeys @returns {Buffer} */
function secretOf(ticketKeys) {
  return createHash('sha256').update(ticketKeys).digest();
}

/** @param {'cert' | 'key'} name @param {TlsOptions['cert']} given @returns {string[]} */
function textsOf(name, given) {
  const list = Array.isArray(given) ? given : [given];
  if (list.length === 0) throw badArgument(`tls: ${name} is an empty array: expected at least one`);
  return list.map((one) => {
    if (typeof one === 'string') return one;
    if (types.isUint8Array(one)) return Buffer.from(one).toString('latin1');
    const what = one === undefined || name === 'cert' ? shown(one) : typeof one; // a key must not be shown
    throw badArgument(`tls: ${name} must be PEM as a string or a Buffer, or an array of those, not ${what}`);
  });
}
