/*
 * The servers from the obvious one to the final one, in order. Each file starts like server.js.
 */
/** @typedef {{ name: string, file: string, text: string }} Step `file` is next to this one; `text`: what the step changed */

/** @type {Step[]} */
export const STEPS = [
  { name: 'obvious', file: 'obvious.js', text: 'strings, a Map, and one write per answer' },
  { name: 'batched', file: 'steps/batched.js', text: 'one write for all answers to what arrived together' },
  {
    name: 'buffers',
    file: 'steps/buffers.js',
    text: 'buffers instead of strings; values are kept as the answer that get sends',
  },
  {
    name: 'collected',
    file: 'steps/collected.js',
    text: 'no concatenation: answers are copied into one buffer that is used again',
  },
  {
    name: 'onread',
    file: 'steps/onread.js',
    text: 'one read buffer for all sockets instead of a new one per read',
  },
  {
    name: 'final',
    file: 'server.js',
    text: 'lines are parsed in place, items live in memory of a fixed size, and the whole protocol is there',
  },
];

/** The bound: reads and writes as the final server does, and stores nothing. @type {Step} */
export const NOTHING = {
  name: 'nothing',
  file: 'steps/nothing.js',
  text: 'reads and writes, but stores nothing',
};
