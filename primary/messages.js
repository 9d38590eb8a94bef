/*
 * Every message between the primary and a worker. The channel keeps their order.
 *
 *     primary                         worker
 *       | <--- hello ------------------- |    it hears messages from now on
 *       | ---- start ------------------> |    what to do
 *       | <--- ready | failed ---------- |    it listens, or why it can't
 *       | ---- sample {id} ------------> |    each second, one at a time
 *       | <--- snapshot {id, …} -------- |    by the deadline; after it the worker is late
 *       | ---- publish {channel, …} ---> |
 *       | ---- gc ---------------------> |
 *       | ---- drain {periodMs} -------> |
 *       | <--- drained {snapshot} ------ |    the last word; then it exits
 */
import { HoldfastError } from '../lib/errors.js';

/**
 * What a worker says of itself each second.
 * @typedef {import('../lib/sampler.js').ProcessSample & TransportCounters} Snapshot
 */

/**
 * What a transport says of its streams. Counts are since it began; `lateness` is since the last time.
 * @typedef {object} TransportCounters
 * @property {number} streams open now
 * @property {number} opened
 * @property {Record<import('../lib/reasons.js').CloseReason, number>} closed
 * @property {Record<import('../lib/reasons.js').RefusalStatus, number>} refused requests, by status
 * @property {number} cut connections over the limit, closed without an answer
 * @property {number} pings
 * @property {number} bytesWritten to streams
 * @property {number} backlogBytes waiting now
 * @property {number} deliveries messages written to streams
 * @property {import('../lib/histogram.js').EncodedHistogram} lateness of pings
 * @property {import('../lib/histogram.js').EncodedHistogram} openCpu ns of CPU by stream opened; like the next two it is empty
 *   where the transport can't tell
 * @property {import('../lib/histogram.js').EncodedHistogram} pingCpu ns of CPU by ping
 * @property {import('../lib/histogram.js').EncodedHistogram} deliveryCpu ns of CPU by delivery
 */

/**
 * @typedef {object} Start
 * @property {'start'} type
 * @property {import('../lib/config.js').Config} config with the port to listen on
 * @property {string} transport
 * @property {number} capacity of a shard
 * @property {number} connectionLimit of a shard
 * @property {number} shards
 * @property {number} seat of the first shard among all
 * @property {number} seats
 *
 * @typedef {{ type: 'sample', id: number }} Sample
 * @typedef {{ type: 'publish', channel: string, message: string }} Publish
 * @typedef {{ type: 'gc' }} Gc
 * @typedef {{ type: 'drain', periodMs: number }} Drain
 * @typedef {Start | Sample | Publish | Gc | Drain} ToWorker
 *
 * @typedef {{ type: 'hello' }} Hello
 * @typedef {{ type: 'ready', port: number }} Ready
 * @typedef {{ type: 'failed', code: string, message: string }} Failed
 * @typedef {{ type: 'snapshot', id: number, snapshot: Snapshot }} SnapshotMessage
 * @typedef {{ type: 'drained', snapshot: Snapshot | null }} Drained
 * @typedef {Hello | Ready | Failed | SnapshotMessage | Drained} ToPrimary
 */

/**
 * Hands a message to the handler of its type.
 * @template {{ type: string }} Message
 * @param {{ [T in Message['type']]: (message: Extract<Message, { type: T }>) => void }} handlers
 * @param {Message} message
 * @throws {HoldfastError} UNKNOWN_MESSAGE: the two sides are not of one version
 */
export function dispatch(handlers, message) {
  const handler =
    Object.hasOwn(handlers, message?.type) && handlers[/** @type {Message['type']} */ (message.type)];
  if (!handler) throw new HoldfastError('UNKNOWN_MESSAGE', `unknown message ${JSON.stringify(message)}`);
  /** @type {(message: Message) => void} */ (handler)(message);
}
