/*
 * What the figures of the comparison mean, in sentences computed from them. Pure.
 */
import { known, valueText } from '../text.js';

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./start.js').Mode} Mode */

/** With this much of a core, wrk has no time left: it is one thread. */
const CLIENT_LIMIT_PERCENT = 90;
const US = 'cpuUs';

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
    beyondRust(findings),
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
  return `What a framework costs beyond node:http: one instance of node:http with a router needs ${knownUs(findings, 'http')} of CPU for a request; ${list}.`;
}

/** @param {Findings} findings */
function beyondRust(findings) {
  const list = comparedUs(findings, ['axum', 'elysia', 'http'], 'hyper');
  if (!list) return '';
  return `What Node costs beyond Rust: hyper by itself needs ${knownUs(findings, 'hyper')} of CPU for a request; ${list}.`;
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
  const [hold, close, pass, keep] = ['hold', 'http-close', 'hold-pass', 'http'].map((name) =>
    us(findings, name),
  );
  const parts = [];
  if (hold !== null && close !== null)
    parts.push(
      `a policy that answers needs ${valueText(hold, 'µs')} for a request and its connection, ${times(hold / close)} as much as node:http, which also ends it`,
    );
  if (pass !== null && keep !== null)
    parts.push(
      `what it passes on to node:http costs ${valueText(pass, 'µs')} with keep-alive, ${times(pass / keep)} as much as node:http without a Hold`,
    );
  return parts.length > 0 ? `Hold, CPU of one instance: ${parts.join('; ')}.` : '';
}

/** @param {Findings} findings */
function perCore(findings) {
  const parts = subjectsIn(findings).flatMap((subject) => {
    const [one, cores] = [runOf(subject, 'one'), runOf(subject, 'cores')].map(
      (run) => findings.of('perSecond', run)?.median,
    );
    return one && cores ? [`${subject} ${times(cores / one)}`] : [];
  });
  if (parts.length === 0) return '';
  return `Requests per second with one instance per core, which share the cores with wrk, relative to one instance with wrk on another core: ${parts.join(', ')}.`;
}

/** @param {Findings} findings */
function alone(findings) {
  const [hold, close] = ['hold', 'http-close'].map((subject) =>
    known(findings, 'aloneUs', runOf(subject, 'one')),
  );
  if (!findings.of('aloneUs', runOf('hold', 'one'))) return '';
  return `A single request at a time takes ${hold} with a policy that answers and ${close} with node:http that ends the connection: a Hold collects the heads of several milliseconds before it asks its policy, which is cheap, but not quick.`;
}

/** Those that had not accepted all connections by then. @param {Findings} findings */
function accepting(findings) {
  const counts = findings.runs.flatMap((run) => {
    const accepted = findings.of('accepted', run)?.median;
    return accepted === undefined ? [] : [{ run, accepted }];
  });
  const most = Math.max(0, ...counts.map(({ accepted }) => accepted));
  const late = counts.filter(({ accepted }) => accepted < most);
  if (late.length === 0) return '';
  const list = late.map(({ run, accepted }) => `${run} ${accepted}`).join(', ');
  return `Connections accepted after a fifth of the time, where not all were (${most}): ${list}. Node accepts one in each turn of its event loop (libuv since 1.45), so the first requests of the others wait: that is most of its p99 and max latency here, and with a longer \`--hold\` it counts less.`;
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
