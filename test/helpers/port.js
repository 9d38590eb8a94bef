/*
 * Ports for programs that can't be asked which one they have chosen, or that come back to the same one. They are outside the range
 * from which the system takes ports for outgoing connections: so nothing else takes them in between.
 */
import { randomInt } from 'node:crypto';
import { codeOf } from '../../lib/errors.js';
import { freePort } from '../../lib/port.js';

/** The local range begins at 32,768 by default, and is rarely changed to begin lower than this one ends. */
const FIRST = 10_000;
const END = 30_000;
const MOST_ATTEMPTS = 100;

/** @param {string} [host] @returns {Promise<number>} on which nobody listens */
export async function quietPort(host = '127.0.0.1') {
  for (let i = 1; ; i++) {
    try {
      return await freePort(randomInt(FIRST, END), host);
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE' || i === MOST_ATTEMPTS) throw error;
    }
  }
}
