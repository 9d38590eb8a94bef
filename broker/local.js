/*
 * The brokers of one machine.
 */
import { MemoryBroker } from './memory.js';

/**
 * @param {import('./index.js').Limits & { store: string, syncs: boolean }} options as for `openBroker`
 * @returns {Promise<import('./index.js').Copy>}
 * @throws {import('../lib/errors.js').HoldfastError} STORE
 */
export async function openLocal({ store, syncs, ...limits }) {
  if (store === '') return new MemoryBroker(limits);
  const { openDisk } = await import('./disk.js'); // the package lmdb is optional
  return openDisk({ store, syncs, ...limits });
}
