/*
 * Kernel memory of a stream, in two ways: what sockstat and slab say, and what is missing from the memory of the
 * machine that no process has.
 */
import { figure, growth, kernelBytes, median, minus, of, per } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { capital, comparedToFirst, known } from '../lab/words.js';

const SOCKETS = growth('idle', 'held', 'tcpSockets');

/** What processes took more at the end of the hold than when idle. @param {'serverPssBytes' | 'dronesPssBytes'} name */
const grown = (name) =>
  minus(
    of('held', (phase) => phase[name]),
    of('idle', (phase) => phase[name]),
  );

const MISSING = minus(
  minus(growth('idle', 'held', 'memoryUsedBytes'), grown('serverPssBytes')),
  grown('dronesPssBytes'),
);

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question:
    'How many bytes of the kernel does a stream take, and does what sockstat and slab say account for all memory that is used?',
  usual: { holdS: 30, repeats: 2 },
  how: [
    'Both ends of each stream lie on this machine, so kernel memory is counted by the socket: two a stream.',
  ],
  runs: () => [
    { name: 'text', text: 'pinged each 5 s' },
    { name: 'quiet', text: 'not pinged meanwhile', args: ['--ping-interval', '86400000'] },
  ],
  steps: upAndHold,
  figures: [
    figure('counted', 'kernel memory a socket, by sockstat and slab', 'bytes', kernelBytes('idle', 'held')),
    figure(
      'slab',
      'of it slab: sockets, inodes, dentries, files',
      'bytes',
      per(growth('idle', 'held', 'slabBytes'), SOCKETS),
    ),
    figure(
      'buffers',
      'of it socket buffers',
      'bytes',
      per(growth('idle', 'held', 'kernelSocketBytes'), SOCKETS),
    ),
    figure(
      'missing',
      'memory used on the machine less that of the processes, a socket',
      'bytes',
      per(MISSING, SOCKETS),
    ),
    figure(
      'usedBytes',
      'memory used on the machine, both ends, a stream',
      'bytes',
      per(growth('idle', 'held', 'memoryUsedBytes'), growth('idle', 'held', 'streams')),
    ),
    figure(
      'userBytes',
      "server's own memory a stream (PSS)",
      'bytes',
      per(grown('serverPssBytes'), growth('idle', 'held', 'streams')),
    ),
    figure(
      'droneBytes',
      "clients' own memory a stream (PSS)",
      'bytes',
      per(grown('dronesPssBytes'), growth('idle', 'held', 'streams')),
    ),
    figure('sockets', 'sockets a stream', 'count', per(SOCKETS, growth('idle', 'held', 'streams'))),
    figure('sysPercent', 'CPU of the machine in the kernel while held', '%', median('held', 'cpuSysPercent')),
  ],
  read: (findings) => [
    ...findings.runs.map((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const sum = `${value('slab')} of slab and ${value('buffers')} of buffers make ${value('counted')} a socket`;
      return `${capital(run)}: ${sum}; by the memory of the machine it is ${value('missing')} (${gapText(findings, run)}).`;
    }),
    ...comparedToFirst(findings, ['counted', 'userBytes']),
  ],
};

/** @param {import('../lab/findings.js').Findings} findings @param {string} run */
function gapText(findings, run) {
  const [counted, missing] = [findings.of('counted', run), findings.of('missing', run)];
  if (!counted || !missing || counted.median <= 0) return 'not to be compared';
  const gap = missing.median / counted.median - 1;
  if (Math.abs(gap) < 0.05) return 'the two agree within 5 %';
  if (Math.abs(gap) > 0.5)
    return 'too far off to be compared: other programs took or gave back memory meanwhile';
  return `${Math.abs(gap * 100).toFixed(0)} % ${gap > 0 ? 'more: page tables and stocks of the kernel are in no count' : 'less: others gave back memory meanwhile'}`;
}
