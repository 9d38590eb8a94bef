/*
 * Every message between the primary and a worker. The channel keeps their order.
 *
 *     primary                         worker
 *       | <--- hello ------------------- |    it can receive messages from now on
 *       | ---- start ------------------> |    what to hold, and how
 *       | <--- ready | failed ---------- |    it listens, or why it can't
 *       | ---- sample {id} ------------> |    each second, one at a time
 *       | <--- snapshot {id, …} -------- |    by the deadline; after that the worker is late
 *       | ---- publish {id, …} --------> |    few at a time (publications.js)
 *       | <--- published {id, …} ------- |    once it is delivered, or if there was no room for it
 *       | <--- append {calls} ---------- |    what publishers of this worker gave, once per turn of its event loop
 *       | ---- feed {blocks, stored} --> |    every publication, in order; then the answers to `append`
 *       | <--- fed {epoch, sequence} --- |    up to where they are delivered
 *       | ---- reset {place} ----------> |    their order has begun anew: the streams of the hub end
 *       | <--- read, find, latest {id} - |    questions to the broker
 *       | ---- answer {id, …} ---------> |    by a deadline
 *       | <--- attendance {entered, left} |    with --subscriptions: streams that were opened and have ended, once per turn
 *       | <--- list {id, query} -------- |    who is subscribed to what?
 *       | ---- listed {id, part}, … ---> |    by a deadline, in parts; the last has what was found
 *       | ---- room {isFull} ----------> |    whether the list takes no more streams
 *       | ---- revoke {id, list} ------> |    streams to be ended
 *       | <--- revoked {id} ------------ |    they are being ended
 *       | ---- count {id, most} -------> |    while a dashboard is open: the topics with most streams?
 *       | <--- counted {id, top} ------- |
 *       | ---- handover {id, step} --> |    streams move to another worker, or come from one: the steps are in handover/steps.js
 *       | <--- handedOver {id, …} ---- |
 *       | <--- crashed {message} ----- |    its JS has thrown: its streams have to move, now
 *       | ---- certificates {secure} --> |    for connections from now on
 *       | ---- gc ---------------------> |
 *       | ---- drain {periodMs} -------> |
 *       | <--- drained {snapshot} ------ |    its last message; then it exits
 */
export { dispatch } from '../lib/dispatch.js';

/** @typedef {import('../lib/counters.js').Snapshot} Snapshot */

/**
 * @typedef {object} Start
 * @property {'start'} type
 * @property {import('../lib/config.js').Config} config with the port to listen on
 * @property {string} transport
 * @property {number} capacity streams per shard
 * @property {number} connectionLimit connections per shard
 * @property {number} shards
 * @property {number} phase of its first shard among all shards, so that they don't wake up together
 * @property {number} phases shards of all workers
 * @property {boolean} takesOver whether it gets the listening sockets and streams of another worker, and does not listen itself
 * @property {import('./certificates.js').Secure | null} secure what it listens with; null without TLS
 * @property {import('../broker/messages.js').Place} place in the order; every publication after it follows in a `feed`
 *
 * @typedef {{ type: 'sample', id: number }} Sample
 * @typedef {{ type: 'publish', id: number, channel: string, message: string }} Publish
 * @typedef {{ type: 'certificates', secure: import('./certificates.js').Secure }} NewCertificates
 * @typedef {{ type: 'gc' }} Gc
 * @typedef {{ type: 'drain', periodMs: number }} Drain
 * @typedef {import('../broker/messages.js').Feed} Feed
 * @typedef {import('../broker/messages.js').Answer} Answer
 * @typedef {import('../broker/messages.js').Reset} Reset
 * @typedef {import('../hub/presence/messages.js').Listed} Listed
 * @typedef {import('../hub/presence/messages.js').Room} Room
 * @typedef {{ type: 'revoke', id: number, list: import('../hub/revocations.js').Revocation[] }} Revoke
 * @typedef {{ type: 'count', id: number, most: number }} Count
 * @typedef {{ type: 'handover', id: number, step: string, ms?: number, wantsIds?: boolean, sources?: import('./handover/links.js').Link[], notes?: any[] }} Handover
 *   a step of a handover, and what it needs
 * @typedef {Start | Sample | Publish | Feed | Answer | Reset | Listed | Room | Revoke | Count | Handover | NewCertificates | Gc | Drain} ToWorker
 *
 * @typedef {{ type: 'hello' }} Hello
 * @typedef {{ type: 'ready', port: number, shards: number }} Ready
 * @typedef {{ type: 'failed', code: string, message: string }} Failed
 * @typedef {{ type: 'snapshot', id: number, snapshot: Snapshot }} SnapshotMessage
 * @typedef {{ type: 'drained', snapshot: Snapshot | null }} Drained
 * @typedef {{ type: 'published', id: number, listeners?: number, busy?: boolean, problem?: string }} Published how many
 *   streams it was addressed to, or that it was dropped for lack of room, or what is wrong with it
 * @typedef {import('../broker/messages.js').ToServer} ToServer `append`, `read`, `find`, `latest` and `fed`
 * @typedef {import('../hub/presence/messages.js').ToPresence} ToPresence `attendance` and `list`
 * @typedef {{ type: 'revoked', id: number }} Revoked
 * @typedef {{ type: 'counted', id: number, top: import('../lib/tops.js').Top }} Counted
 * @typedef {{ type: 'handedOver', id: number, value?: any, problem?: string }} HandedOver the answer to `handover`
 * @typedef {{ type: 'crashed', message: string }} Crashed
 * @typedef {Hello | Ready | Failed | SnapshotMessage | Published | ToServer | ToPresence | Revoked | Counted | HandedOver | Crashed | Drained} ToPrimary
 */
