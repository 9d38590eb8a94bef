/*
 * Loads what `node native/build.js` built. HOLDFAST_NATIVE=off does without it.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

export const ADDON = fileURLToPath(new URL('holdfast.node', import.meta.url));

/** @typedef {import('./types.js').Native} Native */

/** @type {{ native: Native, problem: '' } | { native: null, problem: string }} */
export const { native, problem } = load();

/** @returns {{ native: Native, problem: '' } | { native: null, problem: string }} why it is not here, on one line */
function load() {
  if (process.env.HOLDFAST_NATIVE === 'off') return { native: null, problem: 'HOLDFAST_NATIVE is off' };
  if (!existsSync(ADDON))
    return { native: null, problem: 'it was not built: run npm install with cargo in PATH' };
  try {
    return { native: createRequire(import.meta.url)(ADDON), problem: '' };
  } catch (error) {
    return { native: null, problem: `it does not load: ${String(error).replace(/\s*\n\s*/g, ' ')}` };
  }
}
