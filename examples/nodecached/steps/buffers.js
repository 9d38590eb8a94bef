#!/usr/bin/env node
/*
 * Step 2: buffers instead of strings. A value is never decoded, and is kept as the answer that get will send.
 */
import { requestIn, startStep } from './lines.js';

const STORED = Buffer.from('STORED\r\n');
const END = Buffer.from('END\r\n');
const ERROR = Buffer.from('ERROR\r\n');
const NONE = Buffer.alloc(0);

/** @type {Map<string, Buffer>} */
const items = new Map();

/** @param {string[]} words @param {Buffer} value @returns {Buffer[]} */
function answersTo([name, ...words], value) {
  if (name === 'set') {
    const [key, flags, , length] = words;
    items.set(key, Buffer.concat([Buffer.from(`VALUE ${key} ${flags} ${length}\r\n`, 'latin1'), value]));
    return words.at(-1) === 'noreply' ? [] : [STORED];
  }
  return name === 'get' ? [...words.map((key) => items.get(key) ?? NONE), END] : [ERROR];
}

startStep('buffers.js', (socket) => {
  let rest = NONE;
  socket.on('data', (data) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, data]) : data;
    const answers = [];
    let at = 0;
    for (let found = requestIn(bytes, 0, bytes.length); found; found = requestIn(bytes, at, bytes.length)) {
      answers.push(...answersTo(found.words, bytes.subarray(found.value, found.next)));
      at = found.next;
    }
    rest = bytes.subarray(at);
    if (answers.length > 0) socket.write(Buffer.concat(answers));
  });
});
