/*
 * Reports each second how far `requests` is: a line on stderr, which is redrawn if that is a terminal.
 */
import { formatCount } from '../../lib/format.js';

const REPORT_MS = 1000;

/** @param {import('./load.js').Load} load */
export function watch({ tally, plan }) {
  const { isTTY } = process.stderr;
  let before = 0;
  const timer = setInterval(() => {
    const { complete } = tally;
    const of = Number.isFinite(plan.requests) ? ` of ${formatCount(plan.requests)}` : '';
    const counts = `${formatCount(complete)}${of} answered, ${formatCount(complete - before)} in the last second`;
    const line = `requests: ${counts}, failed ${formatCount(tally.failures())}`;
    process.stderr.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`);
    before = complete;
  }, REPORT_MS);
  return {
    close: () => {
      clearInterval(timer);
      if (isTTY) process.stderr.write('\r\x1b[K');
    },
  };
}
