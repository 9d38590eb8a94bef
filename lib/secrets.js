/*
 * Values that must not be seen: keys and passwords. They may be in a file, so that they are neither in the list of processes
 * nor in a script.
 */
import { readFileSync } from 'node:fs';
import { codeOf, HoldfastError } from './errors.js';

const MOST_BYTES = 262_144;

/**
 * @param {string} given the secret itself, or '@' and the path of a file; a line break at the end of the file is left out
 * @returns {string}
 * @throws {HoldfastError} BAD_OPTION, without the contents
 */
export function readSecret(given) {
  if (!given.startsWith('@')) return given;
  const path = given.slice(1);
  const text = contentsOf(path).replace(/\r?\n$/, '');
  if (text === '') throw new HoldfastError('BAD_OPTION', `${path} is empty`);
  if (text.length > MOST_BYTES)
    throw new HoldfastError('BAD_OPTION', `${path} is too large: expected ${MOST_BYTES} bytes at most`);
  return text;
}

/** @param {string} path @returns {string} */
function contentsOf(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new HoldfastError('BAD_OPTION', `can't read ${path} (${codeOf(error)})`);
  }
}
