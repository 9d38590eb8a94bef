/*
 * The options of all servers in this folder, their help, and how a server starts and ends.
 */
import { parseArgs } from 'node:util';
import { MOST_PAGES } from './layout.js';

/**
 * @typedef {object} Options
 * @property {number} port 0: the system chooses one
 * @property {string} address
 * @property {number} connections at most, in all threads
 * @property {number} threads
 * @property {number} memory for items, in MB
 * @property {boolean} profile
 * @property {number} every measures one call in so many
 * @property {Record<string, number>} budgets in nanoseconds
 * @property {string} csv a file, or ''
 */

/** The memcached whose answers these are. Clients need a number, and nothing behind it. */
export const VERSION = '1.6.18';

/** @typedef {{ short?: string, word?: string, default: string, range?: [number, number], help: string, repeats?: boolean }} Row */

/** @type {Record<string, Row>} */
const ROWS = {
  port: { short: 'p', word: 'N', default: '11211', range: [0, 65535], help: 'TCP port; 0 picks one' },
  listen: { short: 'l', word: 'ADDRESS', default: '127.0.0.1', help: 'address to listen on' },
  connections: { short: 'c', word: 'N', default: '1024', range: [1, 1_000_000], help: 'most connections' },
  threads: { short: 't', word: 'N', default: '1', range: [1, 64], help: 'threads that share the items' },
  'memory-limit': {
    short: 'm',
    word: 'MB',
    default: '64',
    range: [1, 64 * MOST_PAGES],
    help: `memory for items; 1 to ${MOST_PAGES} per thread`,
  },
  profile: { default: '', help: 'measure the steps of requests of the main thread' },
  every: { word: 'N', default: '1', range: [1, 1e9], help: 'with --profile: measure one request in N' },
  budget: { word: 'STEP=TIME', default: '', repeats: true, help: 'with --profile: parse=4us marks overruns' },
  'profile-csv': { word: 'FILE', default: '', help: 'with --profile: append the figures to FILE' },
  help: { short: 'h', default: '', help: 'print this' },
  version: { short: 'V', default: '', help: 'print the version' },
};

/** @param {string} message */
class OptionError extends Error {}

/** @param {string} name of the server @param {string[]} without options it doesn't have @returns {string} */
function helpText(name, without) {
  const rows = Object.entries(ROWS).filter(([flag]) => !without.includes(flag));
  const lines = rows.map(([flag, { short, word, help, default: value }]) => {
    const left = `${short ? `-${short}, ` : '    '}--${flag}${word ? ` ${word}` : ''}`;
    return `  ${left.padEnd(26)}${help}${value && ` (default ${value})`}`;
  });
  return `Usage: node ${name} [options]\n\n${lines.join('\n')}\n`;
}

/** @param {string} flag @param {string} given @returns {number} */
function numberOf(flag, given) {
  const [min, max] = /** @type {[number, number]} */ (ROWS[flag].range);
  const value = /^\d+$/.test(given) ? Number(given) : Number.NaN;
  if (value >= min && value <= max) return value;
  throw new OptionError(`--${flag}: got '${given}', expected a whole number from ${min} to ${max}`);
}

/** @type {Record<string, number>} nanoseconds */
const UNITS = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6 };

/** @param {string[]} given such as parse=4us @returns {Record<string, number>} */
function budgetsOf(given) {
  return Object.fromEntries(
    given.map((text) => {
      const [, step, figure, unit] = /^(\w+)=([\d.]+)(ns|us|µs|ms)$/.exec(text) ?? [];
      if (!step || !(Number(figure) > 0))
        throw new OptionError(`--budget: got '${text}', expected a step and a time such as parse=4us`);
      return [step, Number(figure) * UNITS[unit]];
    }),
  );
}

/** @param {string[]} args @param {string[]} without @returns {Record<string, any>} */
function valuesOf(args, without) {
  const rows = Object.entries(ROWS).filter(([flag]) => !without.includes(flag));
  const options = rows.map(([flag, { short, word, repeats }]) => [
    flag,
    { type: word ? 'string' : 'boolean', ...(short && { short }), ...(repeats && { multiple: true }) },
  ]);
  try {
    return parseArgs({ args, options: Object.fromEntries(options), strict: true }).values;
  } catch (error) {
    throw new OptionError(error instanceof Error ? error.message : String(error));
  }
}

/** @param {Options} options @returns {Options} */
function checked(options) {
  const { memory, threads, address } = options;
  if (address === '') throw new OptionError(`--listen: got '', expected an address such as 127.0.0.1`);
  if (memory < threads)
    throw new OptionError(`--memory-limit: got ${memory}, expected at least 1 per thread`);
  if (Math.floor(memory / threads) > MOST_PAGES)
    throw new OptionError(`--memory-limit: got ${memory}, expected at most ${MOST_PAGES} per thread`);
  return options;
}

/** @param {Record<string, any>} values @returns {Options} */
function optionsOf(values) {
  const number = (/** @type {string} */ flag) => numberOf(flag, values[flag] ?? ROWS[flag].default);
  const options = {
    port: number('port'),
    address: values.listen ?? ROWS.listen.default,
    connections: number('connections'),
    threads: number('threads'),
    memory: number('memory-limit'),
    profile: values.profile === true,
    every: number('every'),
    budgets: budgetsOf(values.budget ?? []),
    csv: values['profile-csv'] ?? '',
  };
  return checked(options);
}

/** What only server.js has. */
export const ONLY_FINAL = ['threads', 'profile', 'every', 'budget', 'profile-csv'];

/**
 * Reads the command line. Prints help, the version or an error itself, and ends the process then.
 * @param {string} name of the server, for the help
 * @param {string[]} [without] options that it doesn't have
 * @returns {Options}
 */
export function readOptions(name, without = []) {
  try {
    const values = valuesOf(process.argv.slice(2), without);
    if (values.help || values.version) {
      process.stdout.write(
        values.help ? helpText(name, without) : `nodecached, which answers as memcached ${VERSION} does\n`,
      );
      process.exit(0);
    }
    return optionsOf(values);
  } catch (error) {
    if (!(error instanceof OptionError)) throw error;
    process.stderr.write(`${name}: ${error.message}\nSee node ${name} --help\n`);
    process.exit(1);
  }
}

/** Ends the process gently, with status 0. */
export function endOnSignals() {
  for (const signal of /** @type {const} */ (['SIGTERM', 'SIGINT']))
    process.on(signal, () => process.exit(0));
}

/**
 * Says where it listens, or why it can't.
 * @param {import('node:net').Server} server
 * @param {Options} options
 * @param {string} name
 */
export function listen(server, { port, address }, name) {
  endOnSignals();
  server.on('error', (error) => {
    process.stderr.write(`${name}: can't listen on ${address}:${port}: ${error.message}\n`);
    process.exit(1);
  });
  server.listen({ port, host: address, backlog: 1024 }, () => announce(server));
}

/** @param {import('node:net').Server} server */
export function announce(server) {
  const { address, port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  console.log(`listening on ${address}:${port}`);
}
