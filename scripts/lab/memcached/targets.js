/*
 * What was found beside the targets, and what it means in sentences. Pure.
 */
import { coreCount } from '../cores.js';
import { capital, known, markdownTable, valueText } from '../text.js';
import { BATCHES, CELLS, cellText, KEY_CONNECTIONS, keyCell, nameOf, OPS } from './cells.js';
import { NAMES, subjectOf } from './subjects.js';

/** The original reached 35 to 40 %, and 70 % with a server that did nothing. */
const ONE_CORE = 0.6;
/** The client was the limit if it used so much of a core, in %, while the server had clearly more left. */
const CLIENT_LIMIT = 90;
const ROOM = 5;
const CORE = 100;
const STEP = /^step-/;

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./cells.js').Cell} Cell */
/** @typedef {import('./cells.js').Part} Part */

/** @typedef {{ what: string, own: number | null, other: number | null, least: number, target: string, isMet: boolean }} Judged */

/** @param {Findings} findings @param {string} run @param {Cell} cell @param {Part} part @returns {number | null} */
export function medianOf(findings, run, cell, part) {
  return findings.of(nameOf(cell, part), run)?.median ?? null;
}

/** @param {Findings} findings @returns {Judged[]} of what was measured here */
export function judge(findings) {
  const { nodecached, memcached, nodecachedCores, memcachedFree } = NAMES;
  return OPS.flatMap((op) => [
    judged(findings, op, [nodecached, memcached], ONE_CORE, 'nodecached / memcached -t 1, one core each'),
    judged(findings, op, [nodecachedCores, memcachedFree], 1, 'nodecached on all cores / memcached -t 1'),
  ]).filter(({ own, other }) => own !== null && other !== null);
}

/** @param {Findings} findings @param {'get' | 'set'} op @param {string[]} runs @param {number} least @param {string} text @returns {Judged} */
function judged(findings, op, runs, least, text) {
  const cell = keyCell(op);
  const [own, other] = runs.map((run) => medianOf(findings, run, cell, 'rate'));
  const ratio = own && other ? own / other : 0;
  const target = least === 1 ? 'more than 100 %' : `at least ${percent(least)}`;
  const isMet = least === 1 ? ratio > least : ratio >= least;
  return { what: `${text} (${cellText(cell)})`, own, other, least, target, isMet };
}

/** @param {Findings} findings @returns {string} the targets in Markdown */
export function targetTable(findings) {
  const rows = judge(findings).map(({ what, own, other, target, isMet }) => [
    what,
    ...[own, other].map((value) => valueText(value ?? 0, '1/s')),
    percent((own ?? 0) / (other || 1)),
    `${target}: ${isMet ? 'reached' : '**missed**'}`,
  ]);
  return markdownTable(['requests per second', 'nodecached', 'memcached', 'ratio', 'to reach'], rows);
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  const missed = judge(findings).filter(({ isMet }) => !isMet);
  const ratio = (/** @type {Judged} */ { own, other }) => percent((own ?? 0) / (other || 1));
  return [
    missed.length === 0
      ? 'Every target was reached.'
      : `Targets missed: ${missed.map((one) => `${one.what}: ${ratio(one)}, target ${one.target}`).join('; ')}.`,
    ...OPS.flatMap((op) => boundSentence(findings, op)),
    ...OPS.flatMap((op) => restSentence(findings, op)),
    ...OPS.flatMap((op) => profileSentence(findings, op)),
    ...OPS.flatMap((op) => roomSentence(findings, op)),
    ...OPS.flatMap((op) => gainSentence(findings, op)),
    ...batchSentences(findings),
    ...memorySentences(findings),
    limitSentence(findings),
    ...disturbedSentences(findings),
  ];
}

/** @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
function boundSentence(findings, op) {
  const cell = keyCell(op);
  const [nothing, own, memcached] = [NAMES.nothing, NAMES.nodecached, NAMES.memcached].map((run) =>
    medianOf(findings, run, cell, 'rate'),
  );
  if (!nothing || !own || !memcached) return [];
  const bound = `a server in Node that does nothing but read and answer reaches ${percent(nothing / memcached)} of memcached -t 1`;
  return [
    `${capital(cellText(cell))}: ${bound}, and nodecached ${percent(own / memcached)}, which is ${percent(own / nothing)} of that bound.`,
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
      ? ` The other ${us(all - chunk)} of its CPU pass outside: the event loop, and reading from the socket.`
      : '';
  return [
    `Measured inside nodecached with --profile, a ${op} usually takes ${us(chunk)} from the bytes that arrived to the answer that is sent: ${us(request)} for the request itself and ${us(write)} for the write, which is mostly the kernel.${before}`,
  ];
}

/** What all cores have room for, which the client shares. @param {Findings} findings @param {'get' | 'set'} op @returns {string[]} */
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
 * What each step gained in requests per second, beside the one before.
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
      `${capital(cellText(cell))}: nodecached ${valueText(own, '1/s')}, ${percent(own / memcached)} of memcached -t 1 (${valueText(memcached, '1/s')})${also}.`,
    ];
  });
}

/** @param {Findings} findings @returns {string[]} */
function memorySentences(findings) {
  const runs = findings.runs.filter((run) => findings.of('itemBytes', run));
  if (runs.length === 0) return [];
  return [`Memory per item: ${runs.map((run) => `${run} ${known(findings, 'itemBytes', run)}`).join(', ')}.`];
}

/** @param {Findings} findings @param {string} run @param {Cell} cell @returns {boolean} whether the client was the limit, not the server */
export function isClientLimited(findings, run, cell) {
  const [client, server] = [medianOf(findings, run, cell, 'client'), medianOf(findings, run, cell, 'server')];
  if (client === null || server === null || client < CLIENT_LIMIT) return false;
  const { isPinned, threads } = subjectOf(run);
  const left = isPinned ? CORE : coreCount() * CORE - client;
  return server < Math.min(threads * CORE, left) - ROOM;
}

/** @param {Findings} findings @returns {string} */
function limitSentence(findings) {
  const where = findings.runs.flatMap((run) =>
    CELLS.filter((cell) => isClientLimited(findings, run, cell)).map((cell) => `${run} (${cellText(cell)})`),
  );
  if (where.length === 0)
    return `The client was never the limit: nowhere did it use ${CLIENT_LIMIT} % of a core while the server had room.`;
  return `The client was the limit, so the server could do more: ${where.join('; ')}.`;
}

/** @param {Findings} findings @returns {string[]} measurements on a core each in which neither side used it, so somebody else did */
function disturbedSentences(findings) {
  const runs = findings.runs.filter((run) => subjectOf(run).isPinned);
  const all = runs
    .flatMap((run) => OPS.map((op) => sharesOf(findings, run, keyCell(op))))
    .filter((one) => one.length === 2);
  const disturbed = all.filter((shares) => Math.max(...shares) < CLIENT_LIMIT).length;
  if (disturbed === 0) return [];
  return [
    `Other programs used the cores: in ${disturbed} of ${all.length} comparisons with ${KEY_CONNECTIONS} connections neither the server nor the client got ${CLIENT_LIMIT} % of its core, so their requests per second say little, and CPU per request more.`,
  ];
}

/** @param {Findings} findings @param {string} run @param {Cell} cell @returns {number[]} % of a core that the server and the client used */
function sharesOf(findings, run, cell) {
  const shares = [medianOf(findings, run, cell, 'server'), medianOf(findings, run, cell, 'client')];
  return shares.flatMap((share) => (share === null ? [] : [share]));
}

/** @param {number} ratio @returns {string} '64 %' */
function percent(ratio) {
  return `${(ratio * 100).toFixed(0)} %`;
}

/** @param {number} gain @returns {string} '+ 12 %' */
export function signed(gain) {
  return `${gain < 0 ? '-' : '+'} ${(Math.abs(gain) * 100).toFixed(0)} %`;
}
