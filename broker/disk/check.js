/*
 * Reads a store, in a process of its own: LMDB maps the file into memory, so reading a damaged one can end the process. Started by
 * disk.js with the folder, which has a store. It prints what is damaged; all other problems are left to the server.
 */
import { messageOf } from '../../lib/errors.js';
import { openEnvironment } from './environment.js';
import { BLOCK_HEAD, framesOf, timeOf } from './frames.js';

/** Enough for some GB. The rest is not read. */
const MOST_MS = 3000;

/** @param {import('./environment.js').Environment} environment */
function readAll({ meta, log, kept, pins, ids }) {
  const endMs = performance.now() + MOST_MS;
  for (const blocks of [kept, log].filter(Boolean))
    for (const { value } of blocks.getRange()) {
      if (performance.now() > endMs) break;
      timeOf(value);
      for (const _ of framesOf(value, BLOCK_HEAD));
    }
  for (const entries of [meta, pins, ids].filter(Boolean))
    for (const _ of entries.getRange()) if (performance.now() > endMs) break;
}

const [, , folder] = process.argv;
const environment = await openEnvironment(folder, { readOnly: true }).catch(() => null);
try {
  if (environment) readAll(environment);
} catch (error) {
  process.stdout.write(messageOf(error));
}
await environment?.root.close();
