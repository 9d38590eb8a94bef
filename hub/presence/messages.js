/*
 * The messages between the hub of a worker and the presence of its server. They are part of the table in primary/messages.js, which
 * draws them.
 */

/**
 * @typedef {object} Query
 * @property {'draft' | 'legacy'} dialect of the answer
 * @property {string[] | null} keys of selectors; null for all
 * @property {string} subscriber '' for all
 * @property {number[] | '*'} unless sequences for which the client has the list already; '*' if it only wants to know whether there is one
 *
 * @typedef {object} Found
 * @property {number} sequence of the last publication when the list was begun
 * @property {number} count
 * @property {'whole' | 'same' | 'long'} state 'same': the client has it already; 'long': there is more than can be listed
 *
 * @typedef {{ type: 'attendance', entered: [id: number, text: string][], left: number[] }} Attendance streams that were opened, and then
 *   those that have ended
 * @typedef {{ type: 'list', id: number, query: Query }} List
 * @typedef {Attendance | List} ToPresence
 *
 * @typedef {{ type: 'listed', id: number, part: string } | { type: 'listed', id: number, found: Found }} Listed
 * @typedef {{ type: 'room', isFull: boolean }} Room whether the list takes no more streams
 * @typedef {Listed | Room} ToHub
 */
export {};
