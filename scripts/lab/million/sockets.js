/*
 * The TCP sockets of the machine, as the kernel counts them.
 */
import { readFileSync } from 'node:fs';
import { HoldfastError } from '../../../lib/errors.js';
import { formatCount } from '../../../lib/format.js';
import { hasOwnNetwork } from '../namespace.js';

const POLL_MS = 100;
const PATIENCE_MS = 300_000;

/** @returns {number} that are in use, those in TIME-WAIT left out */
export function socketsNow() {
  const found = /^TCP: inuse (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'));
  return Number(found?.[1] ?? 0);
}

/**
 * Waits for nothing where the network is that of the machine: it has sockets of others, too.
 * @param {import('../lab.js').Lab} lab @param {number} most that may be left
 * @returns {Promise<boolean>} whether it has seen them go
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
