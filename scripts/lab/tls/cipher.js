/*
 * Which cipher a server chooses. Servers that choose different ones can't be compared.
 */
import { once } from 'node:events';
import { connect } from 'node:tls';
import { HoldfastError } from '../../../lib/errors.js';

/** That all servers of the experiment have to choose. */
export const CIPHER = 'TLS_AES_128_GCM_SHA256';
/** What the clients of the experiment offer, in the order of their preference. */
const OFFERED = [CIPHER, 'TLS_CHACHA20_POLY1305_SHA256'];
const ANSWER_MS = 5000;

/**
 * @param {string} name of the server @param {number} port
 * @returns {Promise<void>}
 * @throws {HoldfastError} CIPHER if it chooses another one, or none
 */
export async function checkCipher(name, port) {
  const options = { ciphers: OFFERED.join(':'), minVersion: /** @type {const} */ ('TLSv1.3') };
  const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false, ...options });
  const signal = AbortSignal.timeout(ANSWER_MS);
  const failed = await once(socket, 'secureConnect', { signal }).then(
    () => null,
    (error) => error,
  );
  const chosen = failed ? `no cipher (${failed.message})` : socket.getCipher().standardName;
  socket.destroy();
  if (chosen === CIPHER) return;
  throw new HoldfastError('CIPHER', `${name} chose ${chosen}, not ${CIPHER}: it can't be compared`);
}
