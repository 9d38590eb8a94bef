/*
 * A certificate for the servers of an experiment.
 */
import { join } from 'node:path';
import { findCommand, runTool } from '../install.js';

const FILES = { cert: 'tls.crt', key: 'tls.key' };

/** @typedef {import('../lab.js').Lab} Lab */

/** One for all servers: ECDSA P-256, signed by itself. @param {Lab} lab @returns {Promise<string>} why there is none; '' on success */
export async function makeCertificate(lab) {
  const openssl = findCommand('openssl');
  if (!openssl) return 'openssl is not installed';
  const { cert, key } = certificateFiles(lab);
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  return runTool(
    lab,
    openssl,
    ['req', '-x509', ...curve, '-days', '2', ...names, '-keyout', key, '-out', cert],
    lab.folder,
  );
}

/** @param {Lab} lab */
export function certificateFiles({ folder }) {
  return { cert: join(folder, FILES.cert), key: join(folder, FILES.key) };
}
