/*
 * A switch for tests: HOLDFAST_FAIL_AT=STEP kills this process at a step of a handover, as `kill -9` would.
 */

/**
 * Where the new server can be killed, in order: in its primary, or in a worker.
 * @type {readonly { step: string, where: 'primary' | 'worker' }[]}
 */
// biome-ignore format: a table reads best with one row per line
export const FAIL_STEPS = [
  { step: 'accepted', where: 'primary' },
  { step: 'ready', where: 'primary' },
  { step: 'connect', where: 'worker' },
  { step: 'sync', where: 'worker' },
  { step: 'synced', where: 'primary' },
  { step: 'go', where: 'worker' },
  { step: 'gone', where: 'primary' },
  { step: 'moved', where: 'primary' },
  { step: 'serving', where: 'primary' },
  { step: 'drained', where: 'primary' },
  { step: 'switched', where: 'primary' },
];

/** @param {string} step that begins now */
export function failAt(step) {
  if (process.env.HOLDFAST_FAIL_AT === step) process.kill(process.pid, 'SIGKILL');
}
