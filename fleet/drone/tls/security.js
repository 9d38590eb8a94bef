/*
 * Whose certificates are accepted, for the dialer and for everything else that talks to the server.
 */
import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { checkServerIdentity, createSecureContext } from 'node:tls';
import { HoldfastError } from '../../../lib/errors.js';

/** Where distributions have the certificates of the authorities that they trust. */
const SYSTEM_FILES = ['/etc/ssl/certs/ca-certificates.crt', '/etc/pki/tls/certs/ca-bundle.crt'];

/** What Node adds to some messages since version 24, about an option of its own. */
const HINT_OF_NODE = /; if the root CA is installed locally,.*/;

/** @typedef {import('../dial.js').Security} Security */

/**
 * @param {import('./params.js').TlsParams} params
 * @returns {Security | null} null for plain HTTP
 * @throws {HoldfastError} BAD_PARAM
 */
export function securityOf({ tls, insecure, tlsCa, noResume }) {
  if (!tls) return null;
  return { roots: insecure ? null : tlsCa || systemRoots(), resumes: !noResume };
}

/** @returns {string} PEM */
function systemRoots() {
  const { SSL_CERT_FILE: own } = process.env;
  const files = own ? [own] : SYSTEM_FILES;
  for (const file of files) {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      // the next one
    }
  }
  const line = `can't read certificates to trust from ${files.join(' or ')}`;
  throw new HoldfastError(
    'BAD_PARAM',
    `${line}: give them with --tls-ca FILE, or accept every one with --insecure`,
  );
}

/** Reading the certificates of the system takes some ms. @type {WeakMap<Security, import('node:tls').SecureContext>} */
const contexts = new WeakMap();

/** @param {Security} security */
function contextOf(security) {
  const context = contexts.get(security) ?? createSecureContext({ ca: security.roots ?? undefined });
  contexts.set(security, context);
  return context;
}

/**
 * For node:tls, node:https and undici.
 * @param {Security} security @param {string} host a name or an address, which the certificate has to be for
 */
export function tlsOptions(security, host) {
  return {
    secureContext: contextOf(security),
    rejectUnauthorized: security.roots !== null,
    ...(isIP(host) ? {} : { servername: host }),
    // The address that is dialled is not always the name that was given.
    checkServerIdentity: (
      /** @type {string} */ _,
      /** @type {import('node:tls').PeerCertificate} */ certificate,
    ) => checkServerIdentity(host, certificate),
  };
}

/**
 * @param {Security} security @param {string} host
 * @returns {import('../consent.js').Asking} which fails with BAD_CERTIFICATE if the server's certificate is not accepted
 */
export function askingWith(security, host) {
  return (options, onResponse, onError) => {
    const onFailure = (/** @type {NodeJS.ErrnoException} */ error) =>
      onError(isOfCertificate(error.code ?? '') ? badCertificate(host, error.message) : error);
    request({ ...options, ...tlsOptions(security, host) }, onResponse)
      .on('error', onFailure)
      .end();
  };
}

/** @param {string} host @param {string} why */
function badCertificate(host, why) {
  const line = `the certificate of ${host} is not accepted (${why.replace(HINT_OF_NODE, '')})`;
  return new HoldfastError(
    'BAD_CERTIFICATE',
    `${line}: give the one that signed it with --tls-ca FILE, or accept every certificate with --insecure`,
  );
}

/** @param {string} code of an error @returns {boolean} whether a certificate was not accepted */
export function isOfCertificate(code) {
  return /CERT|SELF_SIGNED|^UNABLE_TO_(GET|VERIFY)|ALTNAME|INVALID_CA|^HOSTNAME_MISMATCH/.test(code);
}
