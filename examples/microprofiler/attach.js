/*
 * Attaches a profiler to a process from outside, before its program is loaded:
 *
 *     node --import './examples/microprofiler/attach.js?every=16' server.js
 *
 * The program itself contains no trace of the profiler, so without this flag it runs exactly as before. Its workers and child
 * processes get the flag too, because Node passes it on. Options are in the query: `every`, `budget`, `keys` and `socket`. With `socket`,
 * run.js gets the reports; without, each process writes its own table when it exits.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { startProfiler } from './live.js';
import { profilerOptions } from './options.js';
import { Profiler } from './profiler.js';
import { rowsNamed } from './rows.js';

const ROOT = new URL('../../', import.meta.url);

/** @param {Profiler} profiler @param {readonly string[]} keys @returns {Promise<(() => void)[]>} what undoes it */
async function wrapAll(profiler, keys) {
  const undos = [];
  for (const { module, name, method, key } of rowsNamed(keys)) {
    const exports = await import(new URL(module, ROOT).href);
    undos.push(profiler.wrapMethod(exports[name].prototype, method, key));
  }
  return undos;
}

/**
 * Reports whenever the other side asks, and when the process exits. It does not keep the process alive. Nothing is measured any more
 * once nobody listens.
 * @param {Profiler} profiler @param {string} path of a Unix socket @param {() => void} detach
 */
async function reportTo(profiler, path, detach) {
  const socket = connect(path);
  const report = () => void socket.write(`${JSON.stringify(profiler.take())}\n`);
  createInterface(socket).on('line', report);
  socket.on('error', () => {});
  socket.once('close', () => {
    process.off('exit', report);
    detach();
  });
  await once(socket, 'connect').catch(() => {}); // nobody listens any more
  socket.unref();
  process.once('exit', report); // what is written to a connected Unix socket is sent at once
}

const query = new URL(import.meta.url).searchParams;
const socketPath = query.get('socket');
const { every, budgets } = profilerOptions({
  budget: query.getAll('budget'),
  every: query.get('every') ?? undefined,
});
const profiler = socketPath ? new Profiler({ every, budgets }) : startProfiler({ every, budgets }).profiler;
const undos = await wrapAll(profiler, query.getAll('keys'));
if (socketPath)
  await reportTo(profiler, socketPath, () => {
    for (const undo of undos) undo();
  });
