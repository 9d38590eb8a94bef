/*
 * The parameters of a drone that have to do with TLS. One table.
 */
import { X509Certificate } from 'node:crypto';
import { FLAG, option } from '../../../lib/options.js';

/** Certificates in a file, and nothing but comments between them. */
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;
/** Parameters travel in URLs. */
const MOST_PEM = 10_000;
const GIVEN = '(given)';

/**
 * @typedef {object} TlsParams
 * @property {boolean} tls
 * @property {boolean} insecure whether every certificate is accepted
 * @property {string} tlsCa certificates to trust, in PEM; '' for those of the system
 * @property {boolean} noResume
 */

/** @type {import('../../../lib/options.js').Kind} */
const PEM = {
  expected: `certificates in PEM (-----BEGIN CERTIFICATE-----), at most ${MOST_PEM} bytes`,
  word: 'PEM',
  read: (given) => (given.length <= MOST_PEM && areCertificates(given) ? given : undefined),
};

// biome-ignore format: a table reads best with one row per line
export const TLS_PARAMS = [
  option('tls', 'tls', FLAG, false, 'speak TLS to the server, as with https'),
  option('insecure', 'insecure', FLAG, false, 'with TLS: accept every certificate, such as a self-signed one'),
  option('tls-ca', 'tlsCa', PEM, '', 'with TLS: certificates that may have signed that of the server, in PEM, instead of those of the system (SSL_CERT_FILE); commands of the fleet read them from a FILE'),
  option('no-resume', 'noResume', FLAG, false, 'with TLS: a full handshake each time, never one with a ticket of an earlier stream'),
];

/** @param {string} text @returns {boolean} */
function areCertificates(text) {
  const found = text.match(CERTIFICATE) ?? [];
  try {
    return found.map((pem) => new X509Certificate(pem)).length > 0;
  } catch {
    return false;
  }
}

/** @param {string} text of a file @returns {string} its certificates, without what is between them */
export function certificatesIn(text) {
  return text.match(CERTIFICATE)?.join('\n') ?? '';
}

/** @template {TlsParams} T @param {T} params @returns {T} without what is long */
export function shortened(params) {
  return { ...params, tlsCa: params.tlsCa && GIVEN };
}
