/*
 * What the figures of the comparison mean, in sentences computed from them. Pure.
 */
import { formatCount } from '../../../lib/format.js';
import { known, valueText } from '../text.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./start.js').Mode} Mode */

/** With this much of a core, wrk has no time left: it is one thread. */
const CLIENT_LIMIT_PERCENT = 90;
const US = 'cpuUs';
/** @type {Mode[]} */
const MODES = ['one', 'cores'];

/** @param {string} subject @param {Mode} mode @returns {string} the name of the run */
export function runOf(subject, mode) {
  return `${subject}-${mode}`;
}

/** @param {string} run @returns {{ subject: string, mode: Mode }} */
export function partsOf(run) {
  const [, subject, mode] = /** @type {RegExpExecArray} */ (/^(.+)-(one|cores)$/.exec(run));
  return { subject, mode: /** @type {Mode} */ (mode) };
}

/** @param {Findings} findings @param {string} run @returns {boolean} whether the client was the limit, not the server */
export function isClientLimited(findings, run) {
  const [client, server] = ['clientPercent', 'serverPercent'].map((name) => findings.of(name, run)?.median);
  if (client === undefined || server === undefined || client < CLIENT_LIMIT_PERCENT) return false;
  return partsOf(run).mode === 'cores' || server < CLIENT_LIMIT_PERCENT;
}

/** @param {Findings} findings @returns {string[]} */
export function sentencesOf(findings) {
  return [
    frameworks(findings),
    beyondHyper(findings),
    connections(findings),
    whereHoldIs(findings),
    perCore(findings),
    alone(findings),
    accepting(findings),
    clientLimits(findings),
    errors(findings),
  ].filter((sentence) => sentence !== '');
}

/** @param {Findings} findings */
function frameworks(findings) {
  const list = comparedUs(findings, ['fastify', 'velocy', 'express'], 'http');
  if (!list) return '';
  return `What a framework adds to node:http: one instance of node:http with a router needs ${knownUs(findings, 'http')} of CPU for a request; ${list}.`;
}

/** @param {Findings} findings */
function beyondHyper(findings) {
  const list = comparedUs(findings, ['axum', 'elysia', 'http'], 'hyper');
  if (!list) return '';
  return `Compared with the floor: hyper by itself needs ${knownUs(findings, 'hyper')} of CPU for a request; ${list}.`;
}

/** @param {Findings} findings */
function connections(findings) {
  const [close, keep] = ['http-close', 'http'].map((name) => us(findings, name));
  if (close === null || keep === null) return '';
  const perCore = findings.of(US, runOf('http-close', 'cores'))?.median;
  const handed =
    perCore === undefined
      ? ''
      : ` With one instance per core such a request costs ${valueText(perCore, 'µs')}: the primary of node:cluster accepts each connection and hands it to a worker.`;
  return `A connection for each request costs node:http ${valueText(close - keep, 'µs')} more than keep-alive (${valueText(close, 'µs')}, ${times(close / keep)}).${handed}`;
}

/** @param {Findings} findings */
function whereHoldIs(findings) {
  const [hold, pass, keep] = ['hold', 'hold-pass', 'http'].map((name) => us(findings, name));
  const parts = [];
  if (hold !== null && keep !== null)
    parts.push(
      `a policy that answers needs ${valueText(hold, 'µs')} for a request, ${times(hold / keep)} as much as node:http`,
    );
  if (pass !== null && keep !== null)
    parts.push(
      `what it passes on to node:http costs ${valueText(pass, 'µs')}, ${times(pass / keep)} as much as node:http without a Hold`,
    );
  return parts.length > 0 ? `Hold, CPU of one instance: ${parts.join('; ')}.` : '';
}

/** @param {Findings} findings */
function perCore(findings) {
  const parts = subjectsIn(findings).flatMap((subject) => {
    const [one, cores] = [runOf(subject, 'one'), runOf(subject, 'cores')].map(
      (run) => findings.of('perSecond', run)?.median,
    );
    const isLimited = MODES.some((mode) => isClientLimited(findings, runOf(subject, mode)));
    return one && cores ? [`${subject} ${times(cores / one)}${isLimited ? ' *' : ''}`] : [];
  });
  if (parts.length === 0) return '';
  const mark = parts.some((part) => part.endsWith('*')) ? ' (*: wrk was the limit in one of them)' : '';
  return `Requests per second of one instance per core (wrk shares the cores), as a multiple of those of one instance (wrk has a core of its own): ${parts.join(', ')}${mark}.`;
}

/** @param {Findings} findings */
function alone(findings) {
  const runs = ['hold', 'http'].map((subject) => runOf(subject, 'one'));
  const [hold, keep] = runs.map((run) => findings.of('aloneUs', run));
  if (!hold || !keep) return '';
  const [holdText, keepText] = runs.map((run) => known(findings, 'aloneUs', run));
  const why =
    hold.median > keep.median
      ? ': a Hold collects request heads for a while before it asks its policy about all of them, which saves CPU but takes time'
      : '';
  return `With one connection, a request takes ${holdText} with a policy that answers and ${keepText} with node:http${why}.`;
}

/** @param {Findings} findings */
function accepting(findings) {
  const list = findings.runs.flatMap((run) => {
    const waiting = findings.of('waiting', run)?.median;
    return waiting ? [`${run} ${formatCount(waiting)}`] : [];
  });
  if (list.length === 0) return '';
  return `Connections that were not accepted after a fifth of the time: ${list.join(', ')}. Their first requests wait, which raises p99 and max latency; with a longer \`--hold\` this counts less. Node accepts one connection in each turn of its event loop (libuv since 1.45), and on shared cores a server may not get to run.`;
}

/** @param {Findings} findings */
function clientLimits(findings) {
  const limited = findings.runs.filter((run) => isClientLimited(findings, run));
  if (limited.length === 0) return '';
  const list = limited.map((run) => `${run} (wrk ${known(findings, 'clientPercent', run)} of a core)`);
  return `The client was the limit in ${list.join(', ')}: requests per second and latency there are wrk's, and only CPU per request is the server's.`;
}

/** @param {Findings} findings */
function errors(findings) {
  const some = findings.runs.flatMap((run) => {
    const sum = findings.valuesOf('errors', run).reduce((one, other) => one + other, 0);
    return sum > 0 ? [`${run} ${sum}`] : [];
  });
  return some.length > 0 ? `Errors that wrk reported (connections and timeouts): ${some.join(', ')}.` : '';
}

/** @param {Findings} findings @returns {string[]} names, each once */
export function subjectsIn(findings) {
  return [...new Set(findings.runs.map((run) => partsOf(run).subject))];
}

/** @param {Findings} findings @param {string[]} subjects @param {string} base @returns {string} 'express 60.1 µs (2.5 times)' */
function comparedUs(findings, subjects, base) {
  const least = us(findings, base);
  const parts = subjects.flatMap((name) => {
    const own = us(findings, name);
    return own === null || least === null ? [] : [`${name} ${valueText(own, 'µs')} (${times(own / least)})`];
  });
  return parts.join(', ');
}

/** @param {Findings} findings @param {string} subject @returns {number | null} CPU of one instance */
function us(findings, subject) {
  return findings.of(US, runOf(subject, 'one'))?.median ?? null;
}

/** @param {Findings} findings @param {string} subject */
function knownUs(findings, subject) {
  return known(findings, US, runOf(subject, 'one'));
}

/** @param {number} ratio */
function times(ratio) {
  return `${ratio.toFixed(ratio < 2 ? 2 : 1)} times`;
}
