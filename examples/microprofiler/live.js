/*
 * A profiler for a program of one process: with a live table, and a CSV.
 *
 *     const { profiler, stop } = startProfiler({ every: 16, budgets: { parse: 4000 }, csv: 'parse.csv' });
 */
import { now } from './clock.js';
import { CsvFile } from './csv.js';
import { Frame } from './frame.js';
import { Profiler } from './profiler.js';
import { Screen } from './screen.js';
import { tableText } from './table.js';

const SECOND_MS = 1000;

/**
 * @param {object} [options]
 * @param {number} [options.every]
 * @param {Record<string, number>} [options.budgets] ns by key
 * @param {string} [options.csv] a file; '' for none
 * @param {NodeJS.WritableStream & { isTTY?: boolean, rows?: number, columns?: number }} [options.stream] for the table: on a terminal it is drawn every
 *   second, otherwise only at the end
 * @returns {{ profiler: Profiler, stop: () => void }} `stop` writes the table of the whole time. It is called when the process exits
 */
export function startProfiler({ every = 1, budgets = {}, csv = '', stream = process.stderr } = {}) {
  const profiler = new Profiler({ every, budgets });
  const file = csv ? new CsvFile(csv) : null;
  const screen = new Screen(stream);
  const whole = new Frame(budgets);
  const begunNs = now();
  const takeSecond = () => {
    const report = profiler.take();
    whole.add(report);
    const second = new Frame(budgets);
    second.add(report);
    const rows = second.rows(report.ns);
    file?.write(rows);
    return rows;
  };
  const timer = setInterval(() => {
    const rows = takeSecond();
    if (screen.isLive) screen.draw(tableText(rows, screen.style));
  }, SECOND_MS).unref();
  let isStopped = false;
  const stop = () => {
    if (isStopped) return;
    isStopped = true;
    clearInterval(timer);
    takeSecond();
    file?.close();
    screen.end(tableText(whole.rows(now() - begunNs), screen.style));
  };
  process.once('exit', stop);
  return { profiler, stop };
}
