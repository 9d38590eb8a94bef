/*
 * Kernel memory of a stream, measured in two ways: by sockstat and slab, and as memory in use that belongs to no process.
 */
import { figure, growth, kernelBytes, median, minus, of, per } from '../lab/figures.js';
import { upAndHold } from '../lab/steps.js';
import { capital, comparedToFirst, known } from '../lab/text.js';

const SOCKETS = growth('idle', 'held', 'tcpSockets');

/** Growth of processes from idle to the end of the hold. @param {'serverPssBytes' | 'dronesPssBytes'} name */
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
  question: 'How much kernel memory does a stream take, and do sockstat and slab account for all of it?',
  usual: { holdS: 30, repeats: 2 },
  how: [
    'Both ends of each stream are on this machine, so kernel memory is counted per socket: two per stream.',
  ],
  runs: () => [
    { name: 'text', text: 'a ping every 5 s' },
    { name: 'quiet', text: 'no pings', args: ['--ping-interval', '86400000'] },
  ],
  steps: upAndHold,
  figures: [
    figure('counted', 'kernel memory per socket, by sockstat and slab', 'bytes', kernelBytes('idle', 'held')),
    figure(
      'slab',
      'of which slab: sockets, inodes, dentries, files',
      'bytes',
      per(growth('idle', 'held', 'slabBytes'), SOCKETS),
    ),
    figure(
      'buffers',
      'of which socket buffers',
      'bytes',
      per(growth('idle', 'held', 'kernelSocketBytes'), SOCKETS),
    ),
    figure('missing', 'memory in use that belongs to no process, per socket', 'bytes', per(MISSING, SOCKETS)),
    figure(
      'usedBytes',
      'memory in use on the machine per stream, both ends',
      'bytes',
      per(growth('idle', 'held', 'memoryUsedBytes'), growth('idle', 'held', 'streams')),
    ),
    figure(
      'userBytes',
      'memory of the server per stream (PSS)',
      'bytes',
      per(grown('serverPssBytes'), growth('idle', 'held', 'streams')),
    ),
    figure(
      'droneBytes',
      'memory of the clients per stream (PSS)',
      'bytes',
      per(grown('dronesPssBytes'), growth('idle', 'held', 'streams')),
    ),
    figure('sockets', 'sockets per stream', 'count', per(SOCKETS, growth('idle', 'held', 'streams'))),
    figure('sysPercent', 'kernel CPU of the machine while held', '%', median('held', 'cpuSysPercent')),
  ],
  read: (findings) => [
    ...findings.runs.map((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const sum = `${value('slab')} of slab and ${value('buffers')} of buffers make ${value('counted')} per socket`;
      return `${capital(run)}: ${sum}; by the memory of the machine ${value('missing')} (${gapText(findings, run)}).`;
    }),
    ...comparedToFirst(findings, ['counted', 'userBytes']),
  ],
};

/** @param {import('../lab/findings.js').Findings} findings @param {string} run */
function gapText(findings, run) {
  const [counted, missing] = [findings.of('counted', run), findings.of('missing', run)];
  if (!counted || !missing || counted.median <= 0) return 'no comparison possible';
  const gap = missing.median / counted.median - 1;
  if (Math.abs(gap) < 0.05) return 'they agree within 5 %';
  if (Math.abs(gap) > 0.5)
    return 'no comparison possible: other programs allocated or freed memory meanwhile';
  return `${Math.abs(gap * 100).toFixed(0)} % ${gap > 0 ? 'more: page tables and kernel caches are not counted' : 'less: other programs freed memory meanwhile'}`;
}
