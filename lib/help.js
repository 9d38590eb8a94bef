/*
 * The help of a table of options: apart from reading them, because drones on EC2 have no room for it.
 */
import { FLAG } from './options.js';

/** @typedef {import('./options.js').Option} Option */

/**
 * The lines of `--help` that list the options.
 * @param {Option[]} options
 * @returns {string}
 */
export function optionLines(options) {
  const rows = options.map((one) => ({
    left: one.kind === FLAG ? namesOf(one) : `${namesOf(one)} ${one.kind.word}`,
    right: one.kind === FLAG || String(one.default) === '' ? one.help : `${one.help} (${one.default})`,
  }));
  rows.push({ left: '--help, --version', right: 'print this, or the version' });
  const width = Math.max(...rows.map(({ left }) => left.length)) + 2;
  return rows.map(({ left, right }) => `  ${left.padEnd(width)}${right}`).join('\n');
}

/** @param {Option} option @returns {string} '-c, --concurrency' */
function namesOf({ flag, short }) {
  if (!short) return `--${flag}`;
  return short === flag ? `-${short}` : `-${short}, --${flag}`;
}
