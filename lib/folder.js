/*
 * A folder, with those above it. (Node's own `mkdir` with `recursive` goes round for ever where a file system has no
 * room for folders and says ENOENT, as /proc does.)
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf } from './errors.js';

/**
 * @param {string} path it may be there already
 * @param {number} [mode] of those that are made
 * @throws {NodeJS.ErrnoException} EEXIST where it is a file
 */
export function makeFolder(path, mode) {
  const missing = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const one of missing) {
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error; // another made it meanwhile
    }
  }
  if (!statSync(path).isDirectory()) mkdirSync(path);
}
