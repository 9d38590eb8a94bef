/*
 * What nodecached's own profiler says about its steps, with 50 connections and one request at a time.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { medianOf } from '../phases.js';
import { OPS, STEPS } from './cells.js';
import { NAMES, subjectOf } from './subjects.js';

/** Of so many calls one is measured: it costs little then. */
const EVERY = 16;
/** Rows of the CSV are a second apart: earlier ones contain the warm-up. */
const SECOND_MS = 1000;

/** @typedef {import('../experiment.js').Round} Round */
/** @typedef {import('./server.js').Server} Server */

/**
 * @param {Round} round
 * @param {{ start: (subject: import('./subjects.js').Subject) => Promise<Server>, load: (server: Server, op: 'get' | 'set') => Promise<unknown> }} how
 */
export async function measureProfile({ lab, record }, { start, load }) {
  const subject = subjectOf(NAMES.nodecached);
  for (const op of OPS) {
    const file = join(lab.folder, `profile-${op}.profile`);
    const args = ['--profile', '--every', String(EVERY), '--profile-csv', file];
    const server = await start({ ...subject, command: (port) => [...subject.command(port), ...args] });
    const begunMs = Date.now();
    await load(server, op);
    await server.stop(); // writes the last row
    const found = stepsIn(readFileSync(file, 'utf8'), begunMs + SECOND_MS);
    record(
      subject.name,
      Object.fromEntries(Object.entries(found).map(([step, us]) => [`${op}-step-${step}`, us])),
    );
  }
}

/**
 * A step takes its median times how often it occurs in a request: the mean would contain the time in which another program had
 * the core.
 * @param {string} csv of the profiler: a row for each step and second @param {number} fromMs rows before it don't count
 * @returns {Record<string, number>} µs per request of each known step
 */
export function stepsIn(csv, fromMs) {
  const [head = [], ...rows] = csv
    .trim()
    .split('\n')
    .map((line) => line.split(','));
  const [time, key, calls, p50] = ['time', 'key', 'calls', 'p50_ns'].map((name) => head.indexOf(name));
  const late = rows.filter((row) => Date.parse(row[time]) >= fromMs);
  const callsOf = (/** @type {string} */ step) =>
    late.filter((row) => row[key] === step).reduce((sum, row) => sum + Number(row[calls]), 0);
  const requests = callsOf('request');
  const known = Object.keys(STEPS).filter((step) => callsOf(step) > 0 && requests > 0);
  const usual = (/** @type {string} */ step) =>
    medianOf(late.filter((row) => row[key] === step).map((row) => Number(row[p50])));
  return Object.fromEntries(known.map((step) => [step, (usual(step) / 1000) * (callsOf(step) / requests)]));
}
