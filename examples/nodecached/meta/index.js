/*
 * The meta commands. They are rarer than get and set, so they are written to be short, not fast.
 */
import * as answers from '../answers.js';
import { metaArithmetic } from './arithmetic.js';
import { metaDebug } from './debug.js';
import { metaDelete } from './delete.js';
import { metaGet } from './get.js';
import { metaSet } from './set.js';

/** @typedef {import('../requests.js').Command} Command */

/** @type {[string, Command][]} */
const COMMANDS = [
  ['mg', metaGet],
  ['ms', metaSet],
  ['md', metaDelete],
  ['ma', metaArithmetic],
  ['me', metaDebug],
  ['mn', ({ output }) => output.put(answers.MN)],
];

export const META = new Map(COMMANDS);
