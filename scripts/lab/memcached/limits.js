/*
 * What was the limit of a measurement: the server, the client, or something else. Pure.
 */
import { coreCount } from '../cores.js';
import { CELLS, cellText, KEY_CONNECTIONS, keyCell, nameOf, OPS } from './cells.js';
import { subjectOf } from './subjects.js';

/** The client was the limit if it used so much of a core, in %, while the server had clearly more left. */
const CLIENT_LIMIT = 90;
const ROOM = 5;
const CORE = 100;

/** @typedef {import('../findings.js').Findings} Findings */
/** @typedef {import('./cells.js').Cell} Cell */

/** @param {Findings} findings @param {string} run @param {Cell} cell @param {import('./cells.js').Part} part @returns {number | null} */
export function medianOf(findings, run, cell, part) {
  return findings.of(nameOf(cell, part), run)?.median ?? null;
}

/** @param {Findings} findings @param {string} run @param {Cell} cell @returns {boolean} whether the client was the limit, not the server */
export function isClientLimited(findings, run, cell) {
  const shares = sharesOf(findings, run, cell);
  if (!shares || shares.client < CLIENT_LIMIT) return false;
  const { isPinned, threads } = subjectOf(run);
  const left = isPinned ? CORE : coreCount() * CORE - shares.client;
  return shares.server < Math.min(threads * CORE, left) - ROOM;
}

/** @param {Findings} findings @returns {string[]} */
export function limitSentences(findings) {
  const all = findings.runs
    .flatMap((run) => CELLS.map((cell) => ({ run, cell })))
    .filter(({ run, cell }) => sharesOf(findings, run, cell));
  if (all.length === 0) return [];
  const limited = all.filter(({ run, cell }) => isClientLimited(findings, run, cell));
  if (limited.length === 0)
    return [
      `The client was never the limit: nowhere did it use ${CLIENT_LIMIT} % of a core while the server had room.`,
    ];
  const where = limited.map(({ run, cell }) => `${run} (${cellText(cell)})`);
  return [`The client was the limit, so the server could do more: ${where.join('; ')}.`];
}

/** @param {Findings} findings @returns {string[]} measurements on a core each in which neither side used it */
export function disturbedSentences(findings) {
  const all = findings.runs
    .filter((run) => subjectOf(run).isPinned)
    .flatMap((run) => OPS.flatMap((op) => sharesOf(findings, run, keyCell(op)) ?? []));
  const disturbed = all.filter(({ server, client }) => Math.max(server, client) < CLIENT_LIMIT).length;
  if (disturbed === 0) return [];
  return [
    `In ${disturbed} of ${all.length} comparisons with ${KEY_CONNECTIONS} connections neither the server nor the client got ${CLIENT_LIMIT} % of its core. Something else was the limit, most likely other programs on these cores: trust CPU per request there, not requests per second.`,
  ];
}

/** @param {Findings} findings @param {string} run @param {Cell} cell @returns {{ server: number, client: number } | null} % of a core */
function sharesOf(findings, run, cell) {
  const [server, client] = [medianOf(findings, run, cell, 'server'), medianOf(findings, run, cell, 'client')];
  return server === null || client === null ? null : { server, client };
}
