/*
 * What was found, compared with the targets, and what it means in sentences. Pure.
 */
import { coreCount } from '../cores.js';
import { capital, known, markdownTable, valueText } from '../text.js';
import { BATCHES, cellText, keyCell, OPS } from './cells.js';
import { disturbedSentences, isClientLimited, limitSentences, medianOf } from './limits.js';
import { NAMES } from './subjects.js';

/** The original reached 35 to 40 %, and 70 % with a server that did nothing. */
const ONE_CORE = 0.6;
const STEP = /^step-/;

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./cells.js').Cell} Cell */

/**
 * A target and what was found.
 * @typedef {object} Judged
 * @property {string} what
 * @property {number} own requests per second
 * @property {number} other
 * @property {string} ratio '64 %'
 * @property {string} target
 * @property {'reached' | 'missed' | 'unclear'} verdict unclear: the client was the limit, so the ratio could be another one
 */

/** @param {Findings} findings @returns {Judged[]} of what was measured here */
export function judge(findings) {
  const { nodecached, memcached, nodecachedCores, memcachedFree } = NAMES;
  return OPS.flatMap((op) => [
    ...judged(findings, op, [nodecached, memcached], ONE_CORE, 'nodecached / memcached -t 1, one core each'),
    ...judged(findings, op, [nodecachedCores, memcachedFree], 1, 'nodecached on all cores / memcached -t 1'),
  ]);
}

/** @param {Findings} findings @param {'get' | 'set'} op @param {[own: string, other: string]} runs @param {number} least @param {string} text @returns {Judged[]} none if one of them was not measured */
function judged(findings, op, runs, least, text) {
  const cell = keyCell(op);
  const [own, other] = runs.map((run) => medianOf(findings, run, cell, 'rate'));
  if (own === null || !other) return [];
  const target = least === 1 ? 'more than 100 %' : `at least ${percent(least)}`;
  const isMet = least === 1 ? own > other : own / other >= least;
  const [isOwnLimited, isOtherLimited] = runs.map((run) => isClientLimited(findings, run, cell));
  const isUnclear = isMet ? isOtherLimited : isOwnLimited;
  const verdict = isUnclear ? 'unclear' : isMet ? 'reached' : 'missed';
  return [
    {
      what: `${text} (${cellText(cell)})`,
      own,
      other,
      ratio: ratioText(findings, runs, cell),
      target,
      verdict,
    },
  ];
}

const VERDICTS = {
  reached: 'reached',
  missed: '**missed**',
  unclear: 'not clear, the client was the limit',
};

/** @param {Findings} findings @returns {string} the targets in Markdown */
export function targetTable(findings) {
  const rows = judge(findings).map(({ what, own, other, ratio, target, verdict }) => [
    what,
    valueText(own, '1/s'),
    valueText(other, '1/s'),
    ratio,
    `${target}: ${VERDICTS[verdict]}`,
  ]);
  return markdownTable(['requests per second', 'nodecached', 'memcached', 'ratio', 'to reach'], rows);
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  return [
    targetSentence(judge(findings)),
    ...OPS.flatMap((op) => boundSentence(findings, op)),
    ...OPS.flatMap((op) => restSentence(findings, op)),
    ...OPS.flatMap((op) => profileSentence(findings, op)),
    ...OPS.flatMap((op) => roomSentence(findings, op)),
    ...OPS.flatMap((op) => gainSentence(findings, op)),
    ...batchSentences(findings),
    ...memorySentences(findings),
    ...limitSentences(findings),
    ...disturbedSentences(findings),
  ];
}

/** @param {Judged[]} all @returns {string} */
function targetSentence(all) {
  if (all.length === 0) return 'No target could be checked: nodecached or memcached was not measured.';
  const open = all.filter(({ verdict }) => verdict !== 'reached');
  if (open.length === 0) return 'Every target that was measured was reached.';
  const texts = open.map(
    ({ what, ratio, target, verdict }) =>
      `${what}: ${ratio}, target ${target}${verdict === 'unclear' ? ` (${VERDICTS.unclear})` : ''}`,
  );
  return `Targets missed or not clear: ${texts.join('; ')}.`;
}

/**
 * Requests per second of one run as a share of another's. If the client was the limit in one of them, that one could do more.
 * @param {Findings} findings @param {string[]} runs own and other @param {Cell} cell @returns {string} '64 %', 'at most 64 %'
 */
function ratioText(findings, runs, cell) {
  const [own, other] = runs.map((run) => medianOf(findings, run, cell, 'rate') ?? 0);
  const [isOwnLimited, isOtherLimited] = runs.map((run) => isClientLimited(findings, run, cell));
  const text = percent(own / (other || 1));
  if (isOwnLimited && isOtherLimited) return `${text} (the client was the limit for both)`;
  if (isOwnLimited || isOtherLimited) return `${isOwnLimited ? 'at least' : 'at most'} ${text}`;
  return text;
}

/** @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function boundSentence(findings, op) {
  const cell = keyCell(op);
  const [nothing, own, memcached] = [NAMES.nothing, NAMES.nodecached, NAMES.memcached].map((run) =>
    medianOf(findings, run, cell, 'rate'),
  );
  if (!nothing || !own || !memcached) return [];
  const [ofMemcached, ownShare, ofBound] = [
    [NAMES.nothing, NAMES.memcached],
    [NAMES.nodecached, NAMES.memcached],
    [NAMES.nodecached, NAMES.nothing],
  ].map((runs) => ratioText(findings, runs, cell));
  const bound = `a server in Node that does nothing but read and answer reaches ${ofMemcached} of memcached -t 1`;
  return [
    `${capital(cellText(cell))}: ${bound}, and nodecached ${ownShare}, which is ${ofBound} of that bound.`,
  ];
}

/** Where the time goes: kernel, Node, our code. @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function restSentence(findings, op) {
  const [own, nothing, memcached] = [NAMES.nodecached, NAMES.nothing, NAMES.memcached].map((run) =>
    splitOf(findings, run, keyCell(op)),
  );
  if (!own || !nothing || !memcached) return [];
  const us = (/** @type {number} */ value) => valueText(value, 'µs');
  const rest = own.user - nothing.user;
  const ours =
    rest > 0
      ? `and ${us(rest)} are the protocol and the store`
      : 'and the protocol and the store are too little to measure';
  return [
    `A ${op} takes nodecached ${us(own.all)} of CPU: ${us(own.kernel)} in the kernel, ${us(nothing.user)} in Node even if it does nothing else, ${ours}. memcached needs ${us(memcached.all)}, of which ${us(memcached.kernel)} in the kernel.`,
  ];
}

/** What the profiler of nodecached says. @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function profileSentence(findings, op) {
  const [chunk, request, write] = ['chunk', 'request', 'write'].map(
    (step) => findings.of(`${op}-step-${step}`, NAMES.nodecached)?.median,
  );
  const all = medianOf(findings, NAMES.nodecached, keyCell(op), 'us');
  if (!chunk || !request || !write || all === null) return [];
  const us = (/** @type {number} */ value) => valueText(value, 'µs');
  const before =
    all > chunk
      ? ` The other ${us(all - chunk)} of its CPU per request are spent outside: in the event loop, and on reading from the socket.`
      : '';
  return [
    `Measured inside nodecached with --profile, a ${op} usually takes ${us(chunk)} from the bytes that arrived to the answer that is sent: ${us(request)} for the request itself and ${us(write)} for the write, which is mostly the kernel.${before}`,
  ];
}

/** How many requests all cores have room for: the client needs some of them. @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function roomSentence(findings, op) {
  const [cell, run] = [keyCell(op), NAMES.nodecachedCores];
  const [us, clientUs] = [medianOf(findings, run, cell, 'us'), medianOf(findings, run, cell, 'clientUs')];
  const other = medianOf(findings, NAMES.memcachedFree, cell, 'rate');
  if (!us || !clientUs || !other) return [];
  const room = (coreCount() * 1e6) / (us + clientUs);
  const verdict = room > other ? 'more than' : 'no more than';
  return [
    `${capital(cellText(cell))}, all cores: a request takes ${valueText(us, 'µs')} of nodecached and ${valueText(clientUs, 'µs')} of the client, so ${coreCount()} cores have room for ${valueText(room, '1/s')} at most, which is ${verdict} memcached -t 1 answers (${valueText(other, '1/s')}). Without the client on the same cores it would be ${valueText((coreCount() * 1e6) / us, '1/s')} (computed, not measured).`,
  ];
}

/** @param {Findings} findings @param {string} run @param {Cell} cell @returns {{ all: number, kernel: number, user: number } | null} µs per request */
export function splitOf(findings, run, cell) {
  const [all, kernel] = [medianOf(findings, run, cell, 'us'), medianOf(findings, run, cell, 'kernelUs')];
  return all === null || kernel === null ? null : { all, kernel, user: all - kernel };
}

/** @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function gainSentence(findings, op) {
  const gains = gainsOf(findings, keyCell(op));
  const [first, last] = [gains[0], gains.at(-1)];
  if (!first || !last || first === last) return [];
  const steps = gains.slice(1).map(({ run, gain }) => `${run} ${signed(gain)}`);
  const far = `from ${valueText(first.rate, '1/s')} to ${valueText(last.rate, '1/s')}`;
  return [
    `The optimisations took ${cellText(keyCell(op))}, ${far} (${signed(last.rate / first.rate - 1)}); each compared with the one before: ${steps.join(', ')}.`,
  ];
}

/**
 * What each step gained in requests per second, compared with the one before.
 * @param {Findings} findings @param {Cell} cell @returns {{ run: string, rate: number, gain: number }[]}
 */
export function gainsOf(findings, cell) {
  const runs = findings.runs.filter((run) => STEP.test(run) || run === NAMES.nodecached);
  const rates = runs.flatMap((run) => {
    const rate = medianOf(findings, run, cell, 'rate');
    return rate ? [{ run, rate }] : [];
  });
  return rates.map((one, i) => ({ ...one, gain: i === 0 ? 0 : one.rate / rates[i - 1].rate - 1 }));
}

/** @param {Findings} findings @returns {string[]} */
function batchSentences(findings) {
  return OPS.flatMap((op) => {
    const cell = { ...keyCell(op), batch: BATCHES[1] };
    const [own, memcached, redis] = [NAMES.nodecached, NAMES.memcached, NAMES.redis].map((run) =>
      medianOf(findings, run, cell, 'rate'),
    );
    if (!own || !memcached) return [];
    const also = redis ? `; redis ${valueText(redis, '1/s')}` : '';
    return [
      `${capital(cellText(cell))}: nodecached ${valueText(own, '1/s')}, ${ratioText(findings, [NAMES.nodecached, NAMES.memcached], cell)} of memcached -t 1 (${valueText(memcached, '1/s')})${also}.`,
    ];
  });
}

/** @param {Findings} findings @returns {string[]} */
function memorySentences(findings) {
  const runs = findings.runs.filter((run) => findings.of('itemBytes', run));
  if (runs.length === 0) return [];
  return [`Memory per item: ${runs.map((run) => `${run} ${known(findings, 'itemBytes', run)}`).join(', ')}.`];
}

/** @param {number} ratio @returns {string} '64 %' */
function percent(ratio) {
  return `${(ratio * 100).toFixed(0)} %`;
}

/** @param {number} gain @returns {string} '+ 12 %' */
export function signed(gain) {
  return `${gain < 0 ? '-' : '+'} ${(Math.abs(gain) * 100).toFixed(0)} %`;
}
