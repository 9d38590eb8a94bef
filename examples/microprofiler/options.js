/*
 * The options of a profiler on a command line. A program of its own adds FLAGS to its `parseArgs`, and passes the values on.
 */

const UNITS = { ns: 1, us: 1000, µs: 1000, ms: 1_000_000, s: 1_000_000_000 };
const BUDGET = /^(.+)=(\d+(?:\.\d+)?)(ns|us|µs|ms|s)$/;
const MOST_EVERY = 1_000_000;

export const FLAGS = /** @type {const} */ ({
  budget: { type: 'string', multiple: true },
  every: { type: 'string' },
  csv: { type: 'string' },
});

export const HELP = `  --budget KEY=TIME[,…]  marks calls that take longer, such as parse=4us (ns, us, ms, s)
  --every N              measures one call in N, chosen at random (1)
  --csv FILE             writes a row for each key and second
`;

/** What was given can't be used: shown without a stack. */
export class UsageError extends Error {}

/**
 * @param {{ budget?: string[], every?: string, csv?: string }} values
 * @returns {{ every: number, budgets: Record<string, number>, csv: string }} `csv` is '' without one
 * @throws {UsageError}
 */
export function profilerOptions({ budget = [], every = '1', csv }) {
  if (csv === '') throw new UsageError('--csv needs the path of a file');
  return { every: everyIn(every), budgets: budgetsIn(budget), csv: csv ?? '' };
}

/** @param {string} text */
function everyIn(text) {
  const every = /^\d+$/.test(text) ? Number(text) : 0;
  if (every >= 1 && every <= MOST_EVERY) return every;
  throw new UsageError(`--every got '${text}': expected a whole number from 1 to ${MOST_EVERY}`);
}

/** @param {readonly string[]} texts 'parse=4us,store=10us' @returns {Record<string, number>} ns by key */
export function budgetsIn(texts) {
  return Object.fromEntries(texts.flatMap((text) => text.split(',')).map(budgetIn));
}

/** @param {string} text @returns {[string, number]} */
function budgetIn(text) {
  const [, key, number, unit] = BUDGET.exec(text.trim()) ?? [];
  const ns = Number(number) * UNITS[/** @type {keyof typeof UNITS} */ (unit)];
  if (ns > 0) return [key, ns];
  throw new UsageError(`--budget got '${text}': expected KEY=TIME, such as parse=4us (ns, us, ms or s)`);
}
