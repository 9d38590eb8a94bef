/*
 * The messages between a remote broker and the server of the real one. They are part of the table in primary/messages.js, which
 * draws them.
 */

/** @typedef {import('./blocks.js').Block} Block */
/** @typedef {import('./blocks.js').Row} Row */

/**
 * What a worker needs to know first; from then on it gets every publication above `last`.
 * @typedef {object} Place
 * @property {number} epoch
 * @property {string} key base64
 * @property {number} first
 * @property {number} last
 *
 * @typedef {{ code: string, message: string }} Problem
 *
 * @typedef {{ id: number, sequences: number[], known?: number[] } | { id: number, problem: Problem }} Stored answers a call of
 *   `append`; `known` has the indexes of the drafts whose id was known already
 *
 * @typedef {{ type: 'feed', first: number, blocks: Block[], stored: Stored[] }} Feed
 * @typedef {{ type: 'answer', id: number, blocks?: Block[], more?: boolean, sequence?: number, problem?: Problem }} Answer to
 *   `read`, `find` or `latest`; `more`: further ones with the same id follow
 * @typedef {{ type: 'reset', place: Place }} Reset the order has begun anew, or has a gap: nothing of the one before follows
 * @typedef {Feed | Answer | Reset} ToRemote
 *
 * @typedef {{ type: 'append', calls: { id: number, rows: Row[] }[] }} Append
 * @typedef {{ type: 'read', id: number, after: number, most: number }} Read
 * @typedef {{ type: 'find', id: number, name: string }} Find the publication with this publisher's id
 * @typedef {{ type: 'latest', id: number }} Latest
 * @typedef {{ type: 'fed', epoch: number, sequence: number }} Fed everything up to here is delivered
 * @typedef {Append | Read | Find | Latest | Fed} ToServer
 */
export {};
