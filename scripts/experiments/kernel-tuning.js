/*
 * The settings that scripts/tune.js recommends for a million streams, one at a time, each restored after its run.
 */
import { userInfo } from 'node:os';
import { findLimits, SYSCTL_FILE } from '../../limits/index.js';
import { readMachine } from '../../limits/kernel.js';
import { cpuFigures, figure, kernelBytes, latenessFigures, of, tickFigures } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { readSysctl } from '../lab/sysctls.js';
import { comparedToFirst } from '../lab/text.js';

const MANY = 1_000_000;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'Which of the kernel settings that tune recommends makes a difference by itself?',
  usual: { holdS: 15, repeats: 1 },
  how: [
    `The settings are those for ${MANY.toLocaleString('en-US')} streams that differ from what this machine has.`,
  ],
  runs: () => [{ name: 'as-it-is' }, ...Object.entries(wanted()).map(tuned)],
  steps: upAndHold,
  figures: [
    figure(
      'openSeconds',
      'time until all were open',
      's',
      of('up', ({ tookMs }) => tookMs / 1000),
    ),
    figure(
      'firstByteMs',
      'first byte p99, at the client',
      'ms',
      of('up', ({ load }) => load.percentiles.firstByteMs.p99),
    ),
    figure('kernelBytes', 'kernel memory per socket', 'bytes', kernelBytes('idle', 'held')),
    ...cpuFigures(),
    ...tickFigures(),
    ...latenessFigures(),
  ],
  read: (findings) =>
    comparedToFirst(findings, ['openSeconds', 'firstByteMs', 'kernelBytes', 'tickMaxMs', 'latenessP99Ms']),
};

/** @returns {Record<string, string>} what tune would change */
function wanted() {
  const wish = /** @type {const} */ ({
    streams: MANY,
    transport: 'hold',
    pingIntervalMs: 20_000,
    openRate: 10_000,
    isFleetHere: true,
  });
  const lines = findLimits(readMachine(), wish).flatMap(({ fix }) =>
    fix.file === SYSCTL_FILE ? fix.line.split('\n') : [],
  );
  const settings = lines.map((line) => line.split(' = ')).filter(([, value]) => value !== undefined);
  return Object.fromEntries(
    settings.filter(([name, value]) => readSysctl(name) !== null && readSysctl(name) !== value),
  );
}

/** @param {[string, string]} setting @returns {import('../lab/experiment.js').Run} */
function tuned([name, value]) {
  const skip = userInfo().uid === 0 ? '' : 'only root can change it';
  return {
    name: name.replace(/[._]/g, '-'),
    text: `was \`${readSysctl(name)}\``,
    sysctls: { [name]: value },
    skip,
  };
}
