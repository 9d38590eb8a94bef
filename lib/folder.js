/*
 * Creates a folder and its parents. (Node's own `mkdir` with `recursive` loops forever on file systems that can't have
 * folders and answer ENOENT, such as /proc.)
 */
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { codeOf } from './errors.js';

/**
 * @param {string} path it may already exist
 * @param {number} [mode] of the folders it creates
 * @throws {NodeJS.ErrnoException} EEXIST if it is a file
 */
export function makeFolder(path, mode) {
  const missing = [];
  for (let at = resolve(path); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const one of missing) {
    try {
      mkdirSync(one, { mode });
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error; // another process has created it in the meantime
    }
  }
  if (!statSync(path).isDirectory()) mkdirSync(path);
}
