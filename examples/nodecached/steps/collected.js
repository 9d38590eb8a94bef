#!/usr/bin/env node
/*
 * Step 3: no concatenation. Answers are copied into one buffer, which is written without a copy and used again.
 */
import { Output } from '../output.js';
import { requestIn, startStep } from './lines.js';
import { answer } from './map.js';

const NONE = Buffer.alloc(0);
const output = new Output(() => {});

startStep('collected.js', (socket) => {
  let rest = NONE;
  const sink = { socket, isBlocked: false };
  socket.on('data', (data) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, data]) : data;
    output.sink = sink;
    let at = 0;
    for (let found = requestIn(bytes, 0, bytes.length); found; found = requestIn(bytes, at, bytes.length)) {
      answer(output, found.words, bytes.subarray(found.value, found.next));
      at = found.next;
    }
    rest = bytes.subarray(at);
    output.flush();
  });
});
