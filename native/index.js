/*
 * Loads the addon that `node native/build.js` built, unless HOLDFAST_NATIVE=off.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PROTOCOL } from './protocol.js';

export const ADDON = fileURLToPath(new URL('holdfast.node', import.meta.url));

/** @typedef {import('./types.js').Native} Native */

const SWITCH = process.env.HOLDFAST_NATIVE ?? '';

/** What is wrong with HOLDFAST_NATIVE, in one line; '' if nothing. */
export const mistake = ['', 'on', 'off'].includes(SWITCH)
  ? ''
  : `HOLDFAST_NATIVE=${SWITCH} is ignored: set it to off to hold all streams in JS, or leave it unset`;

/** `problem` is the reason, in one line, why there is no addon. */
/** @type {{ native: Native, problem: '' } | { native: null, problem: string }} */
export const { native, problem } = load();

/** @returns {{ native: Native, problem: '' } | { native: null, problem: string }} */
function load() {
  if (SWITCH === 'off') return missing('HOLDFAST_NATIVE is off');
  if (!existsSync(ADDON)) return missing('it was not built: run npm install with cargo in PATH');
  try {
    return checked(createRequire(import.meta.url)(ADDON));
  } catch (error) {
    return missing(`it does not load: ${String(error).replace(/\s*\n\s*/g, ' ')}`);
  }
}

/** @param {Native} addon which may have been built from another version of this code */
function checked(addon) {
  // Protocol 1 did not export its number.
  const number = addon.protocol?.().number ?? 1;
  if (number === PROTOCOL) return { native: addon, problem: /** @type {const} */ ('') };
  return missing(`it speaks protocol ${number} and this version needs ${PROTOCOL}: run npm run build`);
}

/** @param {string} why */
function missing(why) {
  return { native: null, problem: why };
}
