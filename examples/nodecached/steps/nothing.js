#!/usr/bin/env node
/*
 * The bound: a server that reads and writes as server.js does, and does nothing in between. It finds where a request ends,
 * stores nothing, and always answers the same value. Send set with the length of the values first: get answers one of that length.
 */
import { Output } from '../output.js';
import { withBuffer } from '../sockets.js';
import { startStep } from './lines.js';

const NEWLINE = 10;
const G = 103;
const STORED = Buffer.from('STORED\r\n');
const buffer = Buffer.allocUnsafeSlow(65_536);
const output = new Output(() => {});
let value = Buffer.from('END\r\n');

/** @param {number} lineEnd @returns {number} bytes of the value and its end */
function lengthIn(lineEnd) {
  const [, key, flags, , length] = buffer.toString('latin1', 0, lineEnd).trim().split(' ');
  const text = 'x'.repeat(Number(length));
  value = Buffer.from(`VALUE ${key} ${flags} ${length}\r\n${text}\r\nEND\r\n`, 'latin1');
  return Number(length) + 2;
}

/** @param {import('node:net').Socket} accepted */
function serve(accepted) {
  let length = 0; // of each value: the first tells it
  let skip = 0; // bytes of a value that are still to come
  let first = 0; // byte of the line
  const socket = withBuffer(accepted, buffer, (bytes) => {
    output.sink = sink;
    for (let at = 0; at < bytes; at++) {
      if (skip > 0) {
        const skipped = Math.min(skip, bytes - at);
        skip -= skipped;
        at += skipped - 1;
        continue;
      }
      first ||= buffer[at];
      while (at < bytes && buffer[at] !== NEWLINE) at++;
      if (at === bytes) break; // the rest of the line comes later
      const isGet = first === G;
      first = 0;
      if (isGet) output.put(value);
      else {
        length ||= lengthIn(at);
        skip = length;
        output.put(STORED);
      }
    }
    output.flush();
    return true;
  });
  const sink = { socket, isBlocked: false };
  socket.on('error', () => {});
  socket.resume();
}

startStep('nothing.js', serve, { pauseOnConnect: true });
