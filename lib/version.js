/*
 * The version of this package.
 */
import { readFileSync } from 'node:fs';

/** @returns {string} '1.2.3' */
export function readVersion() {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version;
}
