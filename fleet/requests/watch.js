/*
 * Reports each second how far `requests` is: a line on stderr, which is redrawn if that is a terminal.
 */
import { formatCount } from '../../lib/format.js';

const REPORT_MS = 1000;

/** @param {import('./load.js').Load} load */
export function watch({ tally, plan }) {
  const progress = showProgress(plan.requests);
  const timer = setInterval(() => progress.show(tally.complete, tally.failures()), REPORT_MS);
  return {
    close: () => {
      clearInterval(timer);
      progress.close();
    },
  };
}

/** @param {number} requests planned; Infinity for no limit */
export function showProgress(requests) {
  const { isTTY } = process.stderr;
  const of = Number.isFinite(requests) ? ` of ${formatCount(requests)}` : '';
  let before = 0;
  return {
    /** Once a second. @param {number} complete @param {number} failed */
    show: (complete, failed) => {
      const counts = `${formatCount(complete)}${of} answered, ${formatCount(complete - before)} in the last second`;
      const line = `requests: ${counts}, failed ${formatCount(failed)}`;
      process.stderr.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`);
      before = complete;
    },
    close: () => {
      if (isTTY) process.stderr.write('\r\x1b[K');
    },
  };
}
