/*
 * How much of a worker's resident memory is not JS heap, and whether it is freed.
 */
import { figure, last, median, minus, per, times } from '../lab/figures.js';
import { down, hold, rest, up } from '../lab/steps.js';
import { capital, known } from '../lab/text.js';
import { noHold } from '../lab/transports.js';

const TAKEN = minus(median('held', 'nativeBytes'), median('idle', 'nativeBytes'));
const GIVEN = minus(median('held', 'nativeBytes'), last('after', 'nativeBytes'));
const HEAP_TAKEN = minus(median('held', 'heapPhysicalBytes'), median('idle', 'heapPhysicalBytes'));
const HEAP_GIVEN = minus(median('held', 'heapPhysicalBytes'), last('after', 'heapPhysicalBytes'));
/** Less memory than this is too little to judge whether it is freed. */
const SOME_BYTES = 500_000;
/** % that may be chance. */
const HARDLY = 3;

/** @type {Omit<import('../lab/experiment.js').Experiment, 'name'>} */
export default {
  question: 'How much of the resident memory is not JS heap, and is it freed when the streams are closed?',
  usual: { holdS: 20, repeats: 1 },
  runs: () => [
    { name: 'http', args: ['--transport', 'http'] },
    {
      name: 'http-gc',
      text: 'garbage collection every 2 s',
      args: ['--transport', 'http', '--gc-interval', '2000'],
      nodeFlags: ['--expose-gc'],
    },
    { name: 'hold', args: ['--transport', 'hold'], skip: noHold() },
  ],
  steps: (plan) => [
    rest('idle', plan.idleS),
    up('up', plan),
    hold('held', plan.holdS),
    down('down', plan),
    rest('after', plan.holdS),
  ],
  figures: [
    figure('idleBytes', 'native memory of the workers, idle', 'bytes', median('idle', 'nativeBytes')),
    figure('heldBytes', 'native memory, held', 'bytes', median('held', 'nativeBytes')),
    figure(
      'afterBytes',
      'native memory, after all streams were closed',
      'bytes',
      last('after', 'nativeBytes'),
    ),
    figure('streamBytes', 'native memory per stream, held', 'bytes', per(TAKEN, median('held', 'streams'))),
    figure('externalBytes', 'of which owned by JS objects, held', 'bytes', median('held', 'externalBytes')),
    figure('takenBytes', 'native memory of the streams', 'bytes', TAKEN),
    figure('back', 'of which freed', '%', times(per(GIVEN, TAKEN), 100)),
    figure('heapTakenBytes', 'JS heap of the streams', 'bytes', HEAP_TAKEN),
    figure('heapBack', 'of which freed', '%', times(per(HEAP_GIVEN, HEAP_TAKEN), 100)),
  ],
  read: (findings) =>
    findings.runs.flatMap((run) => {
      const value = (/** @type {string} */ name) => known(findings, name, run);
      const native = isSome(findings, 'takenBytes', run)
        ? `streams took ${value('takenBytes')} of native memory (${value('streamBytes')} each), of which ${backText(findings, 'back', run)} was freed`
        : `streams took hardly any native memory (${value('takenBytes')} in total)`;
      const heap = isSome(findings, 'heapTakenBytes', run)
        ? `they took ${value('heapTakenBytes')} of JS heap, of which ${backText(findings, 'heapBack', run)} was freed`
        : `they took hardly any JS heap (${value('heapTakenBytes')})`;
      return [`${capital(run)}: ${native}; ${heap}.`];
    }),
};

/** @param {import('../lab/findings.js').Findings} findings @param {string} figure @param {string} run */
function isSome(findings, figure, run) {
  return (findings.of(figure, run)?.median ?? 0) > SOME_BYTES;
}

/** @param {import('../lab/findings.js').Findings} findings @param {string} figure @param {string} run */
function backText(findings, figure, run) {
  return (findings.of(figure, run)?.median ?? 0) < HARDLY ? 'nothing' : known(findings, figure, run);
}
