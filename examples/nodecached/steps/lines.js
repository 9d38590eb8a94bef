/*
 * What the steps share: they know only get and set, and take their time with neither errors nor memory limits.
 */
import { createServer } from 'node:net';
import { listen, ONLY_FINAL, readOptions } from '../options.js';

const NEWLINE = 10;

/** @param {string} file @param {(socket: import('node:net').Socket) => void} serve @param {object} [how] of the server */
export function startStep(file, serve, how = {}) {
  const name = `nodecached/steps/${file}`;
  const options = readOptions(name, ONLY_FINAL);
  const server = createServer({ noDelay: true, ...how }, (socket) => {
    socket.on('error', () => {});
    serve(socket);
  });
  listen(server, options, name);
}

/**
 * The first request in some bytes: `words` of its line, where its value starts and where it ends.
 * @param {Buffer} bytes @param {number} start @param {number} end of what has arrived
 * @returns {{ words: string[], value: number, next: number } | undefined} undefined if it is not complete
 */
export function requestIn(bytes, start, end) {
  const newline = bytes.indexOf(NEWLINE, start);
  if (newline < 0 || newline >= end) return undefined;
  const words = bytes.toString('latin1', start, newline - 1).split(' ');
  const value = newline + 1;
  const next = words[0] === 'set' ? value + Number(words[4]) + 2 : value;
  return next > end ? undefined : { words, value, next };
}
