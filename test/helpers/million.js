/*
 * Small runs of `npm run million`.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { familyOf } from '../../scripts/lab/processes.js';
import { run, temporaryFolder } from './server.js';

/** @param {import('node:test').TestContext} t @param {...string} words */
export function startMillion(t, ...words) {
  const out = temporaryFolder(t);
  const places = ['--own-network', 'off', '--out', out, '--dashboard', 'off'];
  const { exit, output, pid } = run(t, process.execPath, ['scripts/million.js', ...words, ...places]);
  /** Its report.json, and the text of the report, once it has succeeded. */
  const report = async () => {
    assert.deepEqual(await exit, { code: 0, signal: null }, output.stderr);
    const read = (/** @type {string} */ name) => readFileSync(join(out, readdirSync(out)[0], name), 'utf8');
    return { ...JSON.parse(read('report.json')), text: read('report.md') };
  };
  return { output, pid, report };
}

/** @param {number} pid of a run @returns {number[]} its server's workers */
export function workersOf(pid) {
  return familyOf(pid).filter((one) => commandOf(one).includes('worker.js'));
}

/** @param {number} pid */
function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return ''; // it has ended
  }
}
