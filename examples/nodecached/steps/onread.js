#!/usr/bin/env node
/*
 * Step 4: all sockets read into one buffer that stays. Before, Node made a new one of 64 KB for each read.
 */
import { Output } from '../output.js';
import { withBuffer } from '../sockets.js';
import { requestIn, startStep } from './lines.js';
import { answer } from './map.js';

const NONE = Buffer.alloc(0);
const buffer = Buffer.allocUnsafeSlow(65_536);
const output = new Output(() => {});

/** @param {import('node:net').Socket} accepted */
function serve(accepted) {
  let rest = NONE;
  const socket = withBuffer(accepted, buffer, (length) => {
    const bytes = rest.length > 0 ? Buffer.concat([rest, buffer.subarray(0, length)]) : buffer;
    const end = rest.length + length;
    output.sink = sink;
    let at = 0;
    for (let found = requestIn(bytes, 0, end); found; found = requestIn(bytes, at, end)) {
      answer(output, found.words, bytes.subarray(found.value, found.next));
      at = found.next;
    }
    rest = at < end ? Buffer.from(bytes.subarray(at, end)) : NONE;
    output.flush();
    return true;
  });
  const sink = { socket, isBlocked: false };
  socket.on('error', () => {});
  socket.resume();
}

startStep('onread.js', serve, { pauseOnConnect: true });
