/*
 * Certificates and their keys, as PEM: whether a server can use them, and until when. Pure.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { messageOf } from './errors.js';

const CERTIFICATE = '-----BEGIN CERTIFICATE-----';
const KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----/;
/** Of session tickets, as in node:tls. */
export const TICKET_KEYS_BYTES = 48;
const ENCRYPTED = /-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/;

/**
 * A certificate with the others of its chain after it, and its key: PEM. The names are for errors, such as '--tls-cert a.pem'.
 * @typedef {{ chain: string, key: string, chainName: string, keyName: string }} Given
 */

/**
 * What is in the first certificate of a chain. `names`: for people. The times are in ms since 1970.
 * @typedef {{ names: string, startsMs: number, expiresMs: number }} Facts
 */

/** @param {Given} given @returns {{ problem: string, facts: null } | { problem: '', facts: Facts }} `problem`: one line, why it can't be used */
export function readPair({ chain, key, chainName, keyName }) {
  const problem = (/** @type {string} */ line) => ({ problem: line, facts: null });
  if (!chain.includes(CERTIFICATE))
    return problem(`${chainName} has no certificate: expected '${CERTIFICATE}'`);
  const certificate = attempt(() => new X509Certificate(chain));
  if (certificate instanceof Error)
    return problem(`${chainName} has a damaged certificate (${messageOf(certificate)})`);
  if (ENCRYPTED.test(key))
    return problem(
      `${keyName} is encrypted, and nobody is there to enter its passphrase: decrypt it (openssl pkey -in KEY -out DECRYPTED)`,
    );
  if (!KEY.test(key)) return problem(`${keyName} has no key: expected '-----BEGIN PRIVATE KEY-----'`);
  const privateKey = attempt(() => createPrivateKey(key));
  if (privateKey instanceof Error) return problem(`${keyName} has a damaged key (${messageOf(privateKey)})`);
  if (!certificate.checkPrivateKey(privateKey))
    return problem(
      `${keyName} does not belong to ${chainName}: the first certificate of the file must be that of the key`,
    );
  return { problem: '', facts: factsOf(certificate) };
}

/** @param {X509Certificate} certificate @returns {Facts} */
function factsOf({ subject = '', subjectAltName = '', validFrom, validTo }) {
  const names = (subjectAltName || subject).replace(/DNS:|IP Address:/g, '').replace(/\s*\n\s*/g, ', ');
  return { names, startsMs: Date.parse(validFrom), expiresMs: Date.parse(validTo) };
}

/** @param {Facts} facts @param {number} nowMs @returns {string} why clients would refuse it now; '' if they would not */
export function invalidity({ startsMs, expiresMs }, nowMs) {
  if (expiresMs <= nowMs) return `expired at ${new Date(expiresMs).toISOString()}`;
  if (startsMs > nowMs)
    return `is valid only from ${new Date(startsMs).toISOString()}, and it is ${new Date(nowMs).toISOString()} here`;
  return '';
}

/** @template T @param {() => T} act @returns {T | Error} */
function attempt(act) {
  try {
    return act();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
