/*
 * Plots the CSV of a run, or compares several:
 *
 *     node scripts/plot.js logs/*.csv [--out DIR] [--format svg|png|html]
 */
import { parseArgs } from 'node:util';
import { exitWith, HoldfastError, messageOf } from '../lib/errors.js';
import { readVersion } from '../lib/version.js';
import { FORMATS, plot } from './plot/index.js';

const HELP = `Usage: node scripts/plot.js FILE.csv… [options]

Plots the CSVs that the server writes to logs/: memory, CPU, ticks and streams. The dashed line in each chart is the number
of open streams. Several files are compared: each chart has a line per file, and a table shows the differences.

  --out DIR               folder for the charts (default: that of the first CSV)
  --format svg|png|html   output formats; repeat it or separate them by commas (default: svg,html)
  --help, --version       print this help, or the version

svg and png: four files per run, NAME.memory.svg and so on. html: one self-contained page with zoom and a table.
A file NAME.json beside NAME.csv can name the machine: {"machine": "8 x Xeon, 32 GB, Linux 6.1"}
`;

/** @typedef {{ help: boolean, version: boolean, paths: string[], out?: string, formats: import('./plot/index.js').Format[] }} Wish */

/** @param {string[]} args @returns {Wish} @throws {HoldfastError} BAD_OPTION */
export function readArgs(args) {
  const { values, positionals } = parse(args);
  const formats = (values.format ?? ['svg', 'html']).flatMap((given) => given.split(','));
  const unknown = formats.find((format) => !FORMATS.some((known) => known === format));
  if (unknown !== undefined) throw badOption(`--format got '${unknown}': expected ${FORMATS.join(', ')}`);
  if (values.out === '') throw badOption("--out got '': expected a folder");
  if (positionals.length === 0 && !values.help && !values.version)
    throw badOption('no CSV given: node scripts/plot.js logs/NAME.csv');
  return {
    help: values.help ?? false,
    version: values.version ?? false,
    paths: positionals,
    out: values.out,
    formats: /** @type {import('./plot/index.js').Format[]} */ (formats),
  };
}

/** @param {string[]} args */
function parse(args) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        out: { type: 'string' },
        format: { type: 'string', multiple: true },
        help: { type: 'boolean', short: 'h' },
        version: { type: 'boolean' },
      },
    });
  } catch (error) {
    throw badOption(messageOf(error).replace(/\. .*/, ''));
  }
}

/** @param {string} what */
function badOption(what) {
  return new HoldfastError('BAD_OPTION', `${what}; see --help`);
}

async function main() {
  const { help, version, paths, out, formats } = readArgs(process.argv.slice(2));
  if (help) return void process.stdout.write(HELP);
  if (version) return void process.stdout.write(`${readVersion()}\n`);
  const { written, notes, table } = await plot(paths, { out, formats });
  for (const note of notes) process.stderr.write(`plot: ${note}\n`);
  process.stdout.write(`${table}\n`);
  for (const path of written) process.stdout.write(`wrote ${path}\n`);
}

if (process.argv[1]?.endsWith('plot.js')) main().catch((error) => exitWith('plot', error));
