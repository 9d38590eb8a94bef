/*
 * Times cases that take nanoseconds. This is easy to get wrong, so:
 *
 *   - what a case returns is checked, so it can't be optimised away;
 *   - each case is warmed up until it is compiled, and then the cases take turns, so that changes of the machine affect all alike;
 *   - the median of the turns counts, and the distance between the quartiles is its noise;
 *   - the empty loop is a case, and is subtracted. What is not clearly more than that is not compared.
 */

const WARM_UP_MS = 25;
/** How long a case runs each time it is its turn. */
const TURN_MS = 4;
const LEAST_CALLS = 16;

/**
 * @typedef {object} Case
 * @property {string} name
 * @property {string} text
 * @property {(n: number) => number | Promise<number>} run n calls, and something that depends on all of them
 * @property {(n: number) => number} expected what that must be
 * @property {() => void} [end] afterwards
 *
 * @typedef {{ name: string, ns: number, noiseNs: number }} Timed ns of a call
 */

/** @type {Case} */
const EMPTY = {
  name: 'empty',
  text: 'the empty loop',
  run: (n) => {
    let sum = 0;
    for (let i = 0; i < n; i++) sum += i & 1;
    return sum;
  },
  expected: (n) => Math.floor(n / 2),
};

/**
 * @param {readonly Case[]} cases @param {number} turns
 * @returns {Promise<{ floor: Timed, timed: Timed[] }>} the empty loop is subtracted from `timed`
 */
export async function timeAll(cases, turns) {
  const all = [EMPTY, ...cases];
  const counts = [];
  for (const one of all) counts.push(await warmedUp(one));
  /** @type {number[][]} */
  const values = all.map(() => []);
  for (let turn = 0; turn < turns; turn++)
    for (const [i, one] of all.entries()) values[i].push((await timeOf(one, counts[i])) / counts[i]);
  for (const { end } of all) end?.();
  const [floor, ...rest] = all.map(({ name }, i) => ({ name, ...quartilesOf(values[i]) }));
  return { floor, timed: rest.map((one) => ({ ...one, ns: one.ns - floor.ns })) };
}

/** @param {Case} one @returns {Promise<number>} calls that take about TURN_MS */
async function warmedUp(one) {
  let count = LEAST_CALLS;
  const endMs = performance.now() + WARM_UP_MS;
  let ns = 0;
  for (;;) {
    ns = await timeOf(one, count);
    if (performance.now() > endMs && ns > TURN_MS * 1e5) break;
    if (ns < TURN_MS * 1e6) count *= 2;
  }
  return Math.max(LEAST_CALLS, Math.round((count * TURN_MS * 1e6) / ns));
}

/** @param {Case} one @param {number} count @returns {Promise<number>} ns */
async function timeOf({ name, run, expected }, count) {
  const begun = process.hrtime.bigint();
  const given = run(count);
  const result = typeof given === 'number' ? given : await given;
  const ns = Number(process.hrtime.bigint() - begun);
  if (result !== expected(count))
    throw new Error(`${name}: ${count} calls gave ${result}, not ${expected(count)}`);
  return ns;
}

/** @param {number[]} values */
function quartilesOf(values) {
  const sorted = values.toSorted((one, other) => one - other);
  const at = (/** @type {number} */ share) => sorted[Math.round(share * (sorted.length - 1))];
  return { ns: at(0.5), noiseNs: at(0.75) - at(0.25) };
}
