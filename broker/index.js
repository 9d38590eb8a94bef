/*
 * Where publications get their order and are stored. Four brokers fulfil one contract, and test/broker.contract.test.js runs
 * against all of them: `memory`, `disk` (one machine), `nats` (many), and `remote`, which is the primary's broker as a worker sees it.
 */
import { openLocal } from './local.js';

/**
 * What a publisher gives, checked.
 * @typedef {object} Draft
 * @property {readonly string[]} topics at least one; the first is canonical
 * @property {string} data
 * @property {boolean} private
 * @property {string} [id] the publisher's own
 * @property {string} [type]
 * @property {number} [retry] ms, above 0
 * @property {string} [key] drafts with the same key are one publication, even if several nodes publish them. It is not stored, and brokers
 *   of one machine ignore it
 *
 * @typedef {Omit<Draft, 'key'> & { sequence: number, at: number }} Publication a stored draft; `sequence` counts from 1 without gaps, `at` is
 *   ms since 1970
 *
 * @typedef {{ sequence: number, isNew: boolean }} Receipt where a draft was stored, or where its id already was
 *
 * @typedef {(publications: readonly Publication[]) => void | Promise<void>} Listener must not fail. If it returns a promise, the
 *   publications count as waiting until it resolves: that is how a slow one slows publishers down, and nothing is lost
 *
 * @typedef {{ epoch: number, key: Uint8Array, last: number }} Order as a Broker has them
 */

/**
 * @typedef {object} Broker
 * @property {number} epoch 32 bits; a wiped store starts a new one
 * @property {Uint8Array} key 16 bytes for cursors; lives as long as the epoch
 * @property {number} last sequence of the last publication; 0 if there was none
 * @property {number} first sequence of the oldest publication that is still stored; last + 1 if none is
 * @property {(drafts: readonly Draft[]) => Promise<Receipt[]>} append resolves once they are stored (disk: flushed). A draft whose
 *   id is known is not stored again: its receipt has the sequence of the first one, also within one call. All of one call are
 *   consecutive and in order; in nats, others may come in between, and one that has to be sent again may come after those that follow it.
 *   Rejects with HoldfastError BUSY if too much is waiting (to be stored or delivered), CLOSED, STORE if they can't be stored, or
 *   TOO_LARGE (nats). In nats, some of them may be stored then, and BUSY may also mean that nobody knows: send them again, with ids
 * @property {(listener: Listener, onReset?: () => void) => void} follow passes on every publication above `last`, in order, in
 *   batches, exactly once; `last` has already moved then, and the append it came from has not resolved yet (in nats it may have, if this
 *   node is more than a second behind). `onReset` is called, in
 *   order with the publications, when the order has begun anew (another epoch, key, first and last), or has a gap (the same epoch;
 *   first and last have jumped ahead). All four are the new ones already. Streams that are open can't be continued: their clients
 *   have to come again with their cursors. It must not fail
 * @property {(after: number, most: number) => Promise<readonly Publication[]>} read stored publications above the sequence
 *   `after`, in order, at most `most` and about READ_BYTES of them, but at least one. Empty at the end. It starts later than
 *   after + 1 if those before have expired. It has nothing above `last`. Identical reads in progress share their answer. Those that
 *   are in progress when the order begins anew are answered from the order before, or rejected with BUSY; so are `find` and `latest`
 * @property {(id: string) => Promise<number | undefined>} find sequence of the publication with this publisher's id, if it is
 *   still known: as long as the publication is stored
 * @property {() => Promise<readonly Publication[]>} latest the last publication of each cached topic, in order, each once. They
 *   are kept beyond retention, but only for MOST_CACHED_TOPICS topics and MOST_CACHED_BYTES: those published to longest ago go
 * @property {() => Promise<void>} close finishes the appends in progress and refuses others
 * @property {State | undefined} [state] only nats, until it is closed
 * @property {import('./nats/bus.js').Bus} [bus] for what nodes tell each other without storing it; only nats
 */

/**
 * How a node of several is connected to the others.
 * @typedef {object} State
 * @property {boolean} isConnected whether publications can be expected to come
 * @property {number} behind publications that others may have, and this node does not have yet
 * @property {number} lagMs how long ago this node last had everything; 0 if it has
 * @property {string} problem the last one; '' if there is none
 */

/**
 * A broker can be the copy of another one, which decides about the order (`isCopy`). Memory and disk can.
 * @typedef {Broker & { restart: (order: Order) => Promise<void>, waitingBytes: number }} Copy `waitingBytes` of what waits to be stored or
 *   delivered; `restart` waits for the appends in progress, forgets all
 *   publications, ids and cached topics, and then calls the listeners' `onReset`; the next publication gets `last + 1`. Rejects with
 *   HoldfastError STORE, and then nothing has changed
 */

/**
 * Publications go when any of the limits is exceeded, oldest first; 0 keeps none.
 * @typedef {object} Retention
 * @property {number} historyCount
 * @property {number} historyAgeMs
 * @property {number} historyBytes
 */

/**
 * @typedef {Retention & { isCached: (topic: string) => boolean, hasCached?: boolean, maxQueueBytes: number, isCopy?: boolean }} Limits
 *   `isCached`: whether the topic's last publication is kept beyond retention; `hasCached`: whether there are such topics;
 *   `maxQueueBytes` of drafts may wait to be stored; `isCopy`: every draft is stored at its own place, even if its id is known (`find` has the first)
 */

/** @typedef {import('./nats.js').NatsOptions} NatsOptions */

/**
 * @param {Limits & { store: string, syncs: boolean, nats?: NatsOptions | null, onNote?: (line: string) => void }} options `store` is a
 *   folder, '' for memory; `syncs`: an append resolves once the disk has it, otherwise once the operating system has it; `onNote` gets
 *   what an operator should know
 * @param {AbortSignal} [signal] ends waiting for NATS
 * @returns {Promise<Broker>}
 * @throws {import('../lib/errors.js').HoldfastError} STORE: the folder or the package can't be used; NATS: it refuses this server
 */
export async function openBroker({ store, syncs, nats = null, onNote = () => {}, ...limits }, signal) {
  if (nats) {
    const { openNats } = await import('./nats.js');
    return openNats({ store, syncs, nats, onNote, ...limits }, signal);
  }
  return openLocal({ store, syncs, ...limits });
}
