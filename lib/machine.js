/*
 * The context of a measurement: which machine, which Node, which commit.
 */
import { execFileSync } from 'node:child_process';
import { cpus, release, totalmem, type } from 'node:os';
import { fileURLToPath } from 'node:url';
import { formatBytes } from './format.js';

/** @returns {string} one line, to go with figures in a document */
export function machineLine() {
  const cores = cpus();
  const model = cores[0]?.model.trim() ?? 'unknown CPU';
  const machine = `${cores.length} x ${model}, ${formatBytes(totalmem())}, ${type()} ${release()}`;
  return `${machine}, Node ${process.version}, commit ${commitOf()}`;
}

/** @returns {string} with a + if there are uncommitted changes; 'unknown' outside a clone */
function commitOf() {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, {
      cwd: fileURLToPath(new URL('..', import.meta.url)),
      encoding: 'utf8',
      stdio: 'pipe',
    }).trim();
  try {
    const changed = git('status', '--porcelain', '--untracked-files=no') !== '';
    return `${git('rev-parse', '--short=10', 'HEAD')}${changed ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}
