/*
 * The help of a table of options: apart from reading them, because drones on EC2 have no room for it.
 */
import { FLAG } from './options.js';

/** @typedef {import('./options.js').Option} Option */

const HELP = [{ left: '--help, --version', right: 'print this, or the version' }];
/** In fewer columns than this, nothing is wrapped: the terminal does it. */
const LEAST_COLUMNS = 20;

/**
 * The lines of `--help` that list the options, wrapped to the width of the terminal if there is one.
 * @param {Option[]} options
 * @param {{ left: string, right: string }[]} [more] rows after them
 * @param {number} [columns]
 * @returns {string}
 */
export function optionLines(
  options,
  more = HELP,
  columns = process.stdout.columns ?? Number.POSITIVE_INFINITY,
) {
  const rows = options.map((one) => ({
    left: one.kind === FLAG ? namesOf(one) : `${namesOf(one)} ${one.kind.word}`,
    right: one.kind === FLAG || String(one.default) === '' ? one.help : `${one.help} (${one.default})`,
  }));
  const all = [...rows, ...more];
  const width = Math.max(...all.map(({ left }) => left.length)) + 2;
  return all
    .map(({ left, right }) => {
      const lines = wrap(right, columns - 2 - width);
      return `  ${left.padEnd(width)}${lines.join(`\n${' '.repeat(2 + width)}`)}`;
    })
    .join('\n');
}

/** @param {string} text @param {number} columns @returns {string[]} its lines, broken at spaces */
function wrap(text, columns) {
  if (columns < LEAST_COLUMNS) return [text];
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines[lines.length - 1];
    if (line && line.length + 1 + word.length > columns) lines.push(word);
    else lines[lines.length - 1] = line ? `${line} ${word}` : word;
  }
  return lines;
}

/** @param {Option} option @returns {string} '-c, --concurrency' */
function namesOf({ flag, short }) {
  if (!short) return `--${flag}`;
  return short === flag ? `-${short}` : `-${short}, --${flag}`;
}
