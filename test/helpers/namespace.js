/*
 * A network namespace for one test, with its own limits, where packets can be dropped.
 */
import { spawnSync } from 'node:child_process';

let made = 0;

/** @param {string} command @param {string[]} args */
function tryRun(command, ...args) {
  const { error, status, stderr } = spawnSync(command, args, { encoding: 'utf8' });
  return error?.message ?? (status === 0 ? '' : stderr.trim() || `status ${status}`);
}

/**
 * @param {import('node:test').TestContext} t the namespace is removed after the test
 * @param {Record<string, string>} sysctls
 * @returns {{ problem: string, prefix: string[], run: (command: string, ...args: string[]) => string }} `problem`
 *   says why there is none; `prefix` runs a command in it
 */
export function makeNamespace(t, sysctls) {
  const name = `holdfast-${process.pid}-${++made}`;
  const prefix = ['ip', 'netns', 'exec', name];
  const run = (/** @type {string[]} */ ...args) => tryRun('ip', ...prefix.slice(1), ...args);
  let problem = tryRun('ip', 'netns', 'add', name);
  if (!problem) {
    t.after(() => tryRun('ip', 'netns', 'del', name));
    problem = run('ip', 'link', 'set', 'lo', 'up');
  }
  for (const [key, value] of Object.entries(sysctls)) problem ||= run('sysctl', '-qw', `${key}=${value}`);
  return { problem: problem && `no network namespace here: ${problem}`, prefix, run };
}
