/*
 * All cases, in the order of the report.
 */
import { ANSWERS, COMPARING, MAKING, READING, SEARCHING, WRITING } from './cases/bytes.js';
import { DISPATCH, ERRORS, EVENTS, FUNCTIONS, LOOKUPS, NUMBERS } from './cases/code.js';
import { LATER } from './cases/later.js';
import { CLOCKS, MEASURING } from './cases/measuring.js';
import { SOCKETS } from './cases/sockets.js';

/** @typedef {import('./micro.js').Case} Case */
/** @typedef {{ name: string, text: string }} Named */
/** @typedef {{ title: string, cases: readonly (Case | (Named & { open: () => Promise<Case> }))[] }} Group */

/** @type {readonly Group[]} */
export const GROUPS = [
  { title: 'Reading a clock', cases: CLOCKS },
  { title: 'Measuring', cases: MEASURING },
  { title: 'Making bytes and strings', cases: MAKING },
  { title: 'Putting an answer together', cases: ANSWERS },
  { title: 'Writing an answer to a socket, with its request', cases: SOCKETS },
  { title: 'From bytes to a string', cases: READING },
  { title: 'Writing a string or bytes into a buffer', cases: WRITING },
  { title: 'Comparing', cases: COMPARING },
  { title: 'Searching the end of a line', cases: SEARCHING },
  { title: 'Numbers', cases: NUMBERS },
  { title: 'Errors', cases: ERRORS },
  { title: 'Functions', cases: FUNCTIONS },
  { title: 'Map and object', cases: LOOKUPS },
  { title: 'Choosing a command', cases: DISPATCH },
  { title: 'Callbacks and events', cases: EVENTS },
  { title: 'Going on later', cases: LATER },
];
