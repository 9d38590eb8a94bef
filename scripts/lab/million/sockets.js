/*
 * The TCP sockets of the machine, as the kernel counts them.
 */
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../../../lib/errors.js';
import { formatCount } from '../../../lib/format.js';
import { hasOwnNetwork } from '../namespace.js';

const POLL_MS = 100;
const PATIENCE_MS = 300_000;
/** Sockets that may be open in addition to those before the first stream. */
export const OTHER_SOCKETS = 50;

/** @returns {number} sockets in use, without those in TIME-WAIT */
export function socketsNow() {
  const found = /^TCP: inuse (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'));
  return Number(found?.[1] ?? 0);
}

/**
 * Waits until the sockets are gone. In the network of the machine it doesn't wait, because others have sockets there, too.
 * @param {import('../lab.js').Lab} lab @param {number} most that may be left
 * @returns {Promise<boolean>} whether it saw them go
 * @throws {HoldfastError} NOT_CLOSED
 */
export async function untilGone(lab, most) {
  if (!hasOwnNetwork()) return false;
  const endMs = Date.now() + PATIENCE_MS;
  for (let left = socketsNow(); left > most; left = socketsNow()) {
    if (Date.now() > endMs)
      throw new HoldfastError('NOT_CLOSED', `${formatCount(left)} sockets were still open`);
    await lab.sleep(POLL_MS);
  }
  return true;
}
