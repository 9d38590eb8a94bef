/*
 * Certificates of openssl, for this machine.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { native } from '../../native/index.js';
import { temporaryFolder } from './server.js';

/** For tests that need certificates. */
export const NEEDS_OPENSSL = {
  skip: spawnSync('openssl', ['version']).status !== 0 && 'openssl is not installed',
};

/** For tests that need certificates, and what uses them. */
export const NEEDS_TLS = { skip: native ? NEEDS_OPENSSL.skip : 'the native core is not built' };

/**
 * @typedef {object} Pair
 * @property {string} cert path of a self-signed certificate
 * @property {string} key path of its key
 * @property {() => { cert: string, key: string }} read their contents
 */

/**
 * @param {import('./server.js').Scope} t
 * @param {object} [options]
 * @param {string[]} [options.names] DNS names, besides localhost and 127.0.0.1
 * @param {number} [options.days] until it expires; negative if it has
 * @param {string} [options.folder] where; otherwise a folder of its own
 * @param {string} [options.stem] of the files
 * @returns {Pair}
 */
export function makeCertificate(
  t,
  { names = [], days = 90, folder = temporaryFolder(t), stem = 'server' } = {},
) {
  const [cert, key] = [join(folder, `${stem}.pem`), join(folder, `${stem}.key`)];
  const all = ['localhost', ...names];
  const alternatives = [...all.map((name) => `DNS:${name}`), 'IP:127.0.0.1', 'IP:::1'].join(',');
  openssl(
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-batch'],
    ...['-subj', `/CN=${all.at(-1)}`, '-addext', `subjectAltName=${alternatives}`],
    ...['-days', String(Math.max(days, 1)), '-keyout', key, '-out', cert],
  );
  if (days < 0) openssl('x509', '-in', cert, '-signkey', key, '-days', String(days), '-out', cert);
  return { cert, key, read: () => ({ cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') }) };
}

/** @param {...string} args @returns {string} what it has printed */
export function openssl(...args) {
  return execFileSync('openssl', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
}

/** @param {Pair[]} pairs @returns {string[]} options of a server */
export const tlsOptions = (...pairs) =>
  pairs.flatMap(({ cert, key }) => ['--tls-cert', cert, '--tls-key', key]);
