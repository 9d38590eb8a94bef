/*
 * --profile: wraps the methods that the steps of a request consist of. Without it, this file isn't loaded and the methods are what they
 * are in the class, so that it costs nothing when it is off.
 */
import { startProfiler } from '../microprofiler/live.js';
import { Connection } from './connection.js';
import { Line } from './line.js';
import { Output } from './output.js';
import { Requests } from './requests.js';
import { Store } from './store.js';

/** What is measured: a class, its method, and the step. Steps contain those below them. @type {[{ prototype: object }, string, string][]} */
const STEPS = [
  [Connection, 'receive', 'chunk'],
  [Requests, 'one', 'request'],
  [Line, 'read', 'read'],
  [Line, 'split', 'parse'],
  [Requests, 'hash', 'hash'],
  [Store, 'find', 'find'],
  [Store, 'allocate', 'allocate'],
  [Output, 'copy', 'copy'],
  [Output, 'flush', 'write'],
];

/** @param {import('./options.js').Options} options */
export function profile({ every, budgets, csv }) {
  const { profiler } = startProfiler({ every, budgets, csv });
  for (const [{ prototype }, method, step] of STEPS) {
    const owner = Object.hasOwn(prototype, method) ? prototype : Object.getPrototypeOf(prototype);
    profiler.wrapMethod(owner, method, step);
  }
}
