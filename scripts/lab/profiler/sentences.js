/*
 * What the figures mean, in sentences computed from them. Pure.
 */
import { comparedToFirst } from '../text.js';
import { SERVERS } from './attached.js';
import { NODES } from './nodes.js';

/** Less than this can't be told from the empty loop. */
const LEAST_NS = 0.5;
/** On a machine that does nothing else, it is less than this. */
const LOUD_PERCENT = 15;
/** What costs more than this much of the other one is a difference. */
const ALIKE = 1.05;

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('../findings.js').Summary} Summary */
/** @typedef {{ title: string, one: Summary, other: Summary }} Compared on a version of Node */

/** The first is compared with the second. @type {[one: string, other: string][]} */
const PAIRS = [
  ['clockHrtime', 'clockBigintNumber'],
  ['clockHrtime', 'clockPerformance'],
  ['answerCopy', 'answerString'],
  ['answerCopyLarge', 'answerStringLarge'],
  ['answerCopyLarge', 'answerConcatLarge'],
  ['writeConcat64', 'writeSeparate64'],
  ['writeCorked64', 'writeSeparate64'],
  ['writeConcat64', 'writeString64'],
  ['makeSlice', 'makeSubarray'],
  ['readLargeUtf8', 'readLargeLatin1'],
  ['writeLatin1Write', 'writeByHand'],
  ['compareString', 'compareEquals'],
  ['searchByte', 'searchText'],
  ['numberByHand', 'numberFromBytes'],
  ['tryThrow', 'tryNew'],
  ['newObject', 'newClosure'],
  ['lookupMap', 'lookupObject'],
  ['dispatchSwitch', 'dispatchTable'],
  ['eventCallback', 'eventEmit'],
  ['laterTick', 'laterMicrotask'],
  ['laterTick', 'laterImmediate'],
  ['laterCallback', 'laterAsync'],
];

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  return [...measuring(findings), ...attached(findings), ...pairs(findings), ...noise(findings)];
}

/** @param {Findings} findings @returns {string[]} */
function noise(findings) {
  const loud = nodesIn(findings).filter(
    ({ run }) => (findings.of('noisePercent', run)?.median ?? 0) > LOUD_PERCENT,
  );
  if (loud.length === 0) return [];
  const names = loud.map(({ title }) => title).join(', ');
  return [
    `The machine was busy (${names}: half of the cases vary by more than ${LOUD_PERCENT} %): be careful with small differences.`,
  ];
}

/** @param {Findings} findings @returns {string[]} */
function measuring(findings) {
  const names = ['measureAll', 'measure16', 'measureOff'];
  return nodesIn(findings).flatMap(({ run, title }) => {
    const [all, some, off] = names.map((name) => findings.of(name, run));
    if (!all || !some || !off) return [];
    const sampled = `${nsText(some)} per call with one call in 16`;
    return [
      `${title}: start and measure together take ${nsText(all)}, ${sampled}, and switched off with an if ${nsText(off)}.`,
    ];
  });
}

/** @param {Findings} findings @returns {string[]} */
function pairs(findings) {
  return PAIRS.flatMap(([one, other]) => {
    const all = nodesIn(findings).flatMap(({ run, title }) => {
      const [a, b] = [findings.of(one, run), findings.of(other, run)];
      return a && b ? [{ title, one: a, other: b }] : [];
    });
    if (all.length === 0) return [];
    const [first, second] = [one, other].map((name) => textIn(findings, name));
    return [`**${first}** instead of **${second}**: ${all.map(ratioText).join(', ')}.`];
  });
}

/** @param {Compared} compared @returns {string} '3.1 times cheaper on Node 20' */
function ratioText({ title, one, other }) {
  if (one.median < LEAST_NS || other.median < LEAST_NS) return `too little to compare on ${title}`;
  const ratio = other.median / one.median;
  const isApart = one.most < other.least || other.most < one.least;
  if (!isApart || Math.max(ratio, 1 / ratio) < ALIKE) return `no clear difference on ${title}`;
  const [times, word] = ratio > 1 ? [ratio, 'cheaper'] : [1 / ratio, 'more expensive'];
  return `${times < 10 ? times.toFixed(1) : Math.round(times)} times ${word} on ${title}`;
}

/** @param {Findings} findings @returns {string[]} */
function attached(findings) {
  if (!findings.of('openUs', Object.keys(SERVERS)[0])) return [];
  return comparedToFirst(onlyServers(findings), ['openUs'], Object.keys(SERVERS)[0]);
}

/** @param {Findings} findings @returns {Findings} */
function onlyServers(findings) {
  const servers = Object.create(findings);
  servers.runs = findings.runs.filter((run) => run in SERVERS);
  return servers;
}

/** @param {Findings} findings */
export function nodesIn(findings) {
  return NODES.filter(({ run }) => findings.runs.includes(run));
}

/** @param {Findings} findings @param {string} name @returns {string} what the case is */
export function textIn(findings, name) {
  return findings.figure(name).text.replace(/, ns$/, '');
}

/** @param {Pick<Summary, 'median'>} summary @returns {string} */
export function nsText({ median }) {
  if (median < LEAST_NS) return `too little to measure (< ${LEAST_NS} ns)`;
  if (median < 99.95) return `${median.toFixed(1)} ns`;
  return median < 9995 ? `${Math.round(median)} ns` : `${(median / 1000).toFixed(1)} µs`;
}
