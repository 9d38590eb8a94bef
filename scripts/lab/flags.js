/*
 * Which flags this version of Node accepts.
 */
import { spawnSync } from 'node:child_process';

/** @type {Map<string, string>} */
const known = new Map();

/** @param {string} flag of node or V8 @returns {string} why it can't be used; '' if it can */
export function flagProblem(flag) {
  const found = known.get(flag);
  if (found !== undefined) return found;
  const { status } = spawnSync(process.execPath, [flag, '--eval', '0'], { stdio: 'ignore' });
  const problem = status === 0 ? '' : `Node ${process.version} does not accept ${flag}`;
  known.set(flag, problem);
  return problem;
}
