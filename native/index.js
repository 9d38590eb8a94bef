/*
 * Loads the native core, unless HOLDFAST_NATIVE=off: first the one that `node native/build.js` built here, so that a clone
 * uses what it has just built, then the prebuilt one for this kind of machine. One that was built from another version of
 * this code is passed over.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { causeOf, fileOf, machineHere, TARGETS, targetOf } from './prebuilt.js';
import { PROTOCOL } from './protocol.js';

export const ADDON = fileURLToPath(new URL('holdfast.node', import.meta.url));

/** @typedef {import('./types.js').Native} Native */
/** `origin` is what was loaded: 'built', or a target such as 'linux-x64-gnu'. */
/** @typedef {{ native: Native, origin: string, problem: '' }} Found */
/** `problem` is the reason, in one line, why there is no native core. */
/** @typedef {{ native: null, origin: '', problem: string }} Missing */

const REMEDY = 'with cargo in PATH, run HOLDFAST_BUILD=1 npm rebuild holdfast';
const SWITCH = process.env.HOLDFAST_NATIVE ?? '';

/** What is wrong with HOLDFAST_NATIVE, in one line; '' if nothing. */
export const mistake = ['', 'on', 'off'].includes(SWITCH)
  ? ''
  : `HOLDFAST_NATIVE=${SWITCH} is ignored: set it to off to hold all streams in JS, or leave it unset`;

/** @type {Found | Missing} */
const found = SWITCH === 'off' ? missing('HOLDFAST_NATIVE is off') : load();
export const { native, origin, problem } = found;

/** @returns {Found | Missing} */
function load() {
  const built = existsSync(ADDON) ? open(ADDON, 'built') : null;
  if (built?.native) return built;
  const prebuilt = loadPrebuilt();
  if (prebuilt.native || !built) return prebuilt;
  return missing(`the one built here ${built.problem}: run npm run build`);
}

/** @returns {Found | Missing} */
function loadPrebuilt() {
  const machine = machineHere();
  const target = targetOf(machine);
  if (!existsSync(fileOf(target))) return missing(absence(target));
  const prebuilt = open(fileOf(target), target);
  if (prebuilt.native) return prebuilt;
  return missing(`the prebuilt one for ${target} ${causeOf(machine, prebuilt.problem)}; ${REMEDY}`);
}

/** @param {string} target @returns {string} why there is no prebuilt core */
function absence(target) {
  if (!target.startsWith('linux-')) return `it needs Linux, and this is ${target}`;
  if (TARGETS.includes(target)) return 'it was not built: run npm install with cargo in PATH';
  return `none is prebuilt for ${target}: run npm install with cargo in PATH`;
}

/** @param {string} path @param {string} from @returns {Found | Missing} */
function open(path, from) {
  try {
    const addon = /** @type {Native} */ (createRequire(import.meta.url)(path));
    // Protocol 1 did not export its number.
    const number = addon.protocol?.().number ?? 1;
    if (number === PROTOCOL) return { native: addon, origin: from, problem: '' };
    return missing(`speaks protocol ${number} and this version needs ${PROTOCOL}`);
  } catch (error) {
    return missing(`does not load (${String(error).replace(/\s*\n\s*/g, ' ')})`);
  }
}

/** @param {string} why @returns {Missing} */
function missing(why) {
  return { native: null, origin: '', problem: why };
}
