/*
 * status: the drones and their totals, live in a terminal, once elsewhere.
 */
import { setTimeout as after } from 'node:timers/promises';
import { FLAG, option } from '../../lib/options.js';
import { askAll } from '../ask.js';
import { JSON_OPTION, PLACE_OPTIONS } from '../flags.js';
import { merge } from '../merge.js';
import { kindOf, openPlace } from '../places.js';
import { isScreen, Screen } from '../show/screen.js';
import { rowsOf, stateOf, tableLines } from '../show/table.js';
import { exitOnSignals } from '../signals.js';

const REFRESH_MS = 1000;
/** How long the list of drones is reused: EC2 throttles clients that ask every second. */
const LIST_MS = { local: 0, hosts: 0, ec2: 15_000 };
/** How long after the first reading the second is made, for rates. */
const RATE_MS = 500;
const KEYS = 'q: quit';
const NONE = "no drones: start some with 'start'; the drones of a 'run' are not listed";

/** @typedef {import('../ask.js').Answer} Answer */
/** @typedef {import('../places.js').Place} Place */
/** @typedef {() => Promise<Answer[]>} Look */

/** @type {import('../cli.js').Command} */
export const status = {
  name: 'status',
  words: '',
  mostWords: 0,
  summary: 'show the drones and their totals, live in a terminal',
  help: `
Errors are shown by cause: streams that failed did not open, streams that were lost were open before. 'ping late' is how
late pings arrived at the clients. Percentiles of the total are those of all streams together. A drone that does not
answer within a second is late.

  node fleet/cli.js status | cat        once, without colours
  node fleet/cli.js status --watch      a table each second
`,
  options: [
    option('watch', 'isWatch', FLAG, false, 'print a table each second, even in a terminal'),
    ...PLACE_OPTIONS,
    JSON_OPTION,
  ],
  act,
};

/** @param {string[]} _words @param {Record<string, any>} values @returns {Promise<number>} */
async function act(_words, values) {
  const look = lookAt(
    await openPlace(values, { say: (line) => void process.stderr.write(`${line}\n`) }),
    kindOf(values),
  );
  const { isWatch, isJson, on } = values;
  if (isWatch) await watch(look, isJson);
  else if (isJson) process.stdout.write(`${JSON.stringify(documentOf(await look()))}\n`);
  else if (isScreen(process.stdout) && process.stdin.isTTY) await live(look, on);
  else await once(look);
  return 0;
}

/**
 * @param {Place} place @param {import('../places.js').Kind} kind
 * @returns {() => Promise<Answer[]>} which asks all drones
 */
function lookAt(place, kind) {
  /** @type {import('../ask.js').Member[]} */
  let members = [];
  let nextMs = 0;
  return async () => {
    const nowMs = performance.now();
    if (nowMs >= nextMs) {
      nextMs = nowMs + LIST_MS[kind];
      members = await place.list();
    }
    return askAll(members);
  };
}

/** @param {Look} look */
async function once(look) {
  const before = await look();
  if (before.length === 0) return void process.stdout.write(`${NONE}\n`);
  await after(RATE_MS);
  process.stdout.write(`${tableLines(rowsOf(await look(), before)).join('\n')}\n`);
}

/** @param {Look} look @param {boolean} isJson @returns {Promise<never>} */
async function watch(look, isJson) {
  /** @type {Answer[]} */
  let before = [];
  for (;;) {
    const next = after(REFRESH_MS);
    const answers = await look();
    const lines = answers.length === 0 ? [NONE] : tableLines(rowsOf(answers, before));
    process.stdout.write(isJson ? `${JSON.stringify(documentOf(answers))}\n` : `${lines.join('\n')}\n\n`);
    before = answers;
    await next;
  }
}

/** @param {Look} look @param {string} on @returns {Promise<void>} when the reader quits */
async function live(look, on) {
  exitOnSignals();
  const over = new AbortController();
  /** @type {Answer[]} */
  let before = [];
  let frame = rowsOf([], []);
  const screen = new Screen(
    (size) => pageOf(frame, on, size),
    () => over.abort(),
  );
  while (!over.signal.aborted) {
    const next = after(REFRESH_MS, undefined, { signal: over.signal }).catch(() => {});
    const answers = await look();
    frame = rowsOf(answers, before);
    before = answers;
    if (!over.signal.aborted) screen.show();
    await next;
  }
  screen.close();
}

/** @param {ReturnType<typeof rowsOf>} frame @param {string} on @param {import('../show/screen.js').Size} size */
function pageOf(frame, on, size) {
  const title = `Holdfast fleet, ${on}: ${frame.total.state}`;
  const head = `${title.padEnd(size.width - KEYS.length - 1)} ${KEYS}`.slice(0, size.width);
  if (frame.rows.length === 0) return [head, '', NONE.slice(0, size.width)];
  return [head, '', ...tableLines(frame, { ...size, height: size.height - 2 })];
}

/** @param {Answer[]} answers @returns {object} for scripts */
function documentOf(answers) {
  const drones = answers.map(({ member, stats, problem }) => {
    const { name, place, url } = member;
    if (!stats) return { name, place, url, state: stateOf(member, problem), problem };
    const { drone, params, counts, percentiles, samples } = stats;
    return { name, place, url, ...drone, params, counts, percentiles, samples };
  });
  return { drones, total: merge(answers.flatMap(({ stats }) => stats ?? [])) };
}
