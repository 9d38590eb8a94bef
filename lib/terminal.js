/*
 * Whether this process belongs to a terminal. When a terminal is closed, its processes get SIGHUP, and lose it.
 */
import { closeSync, openSync } from 'node:fs';

/** @returns {boolean} */
export function hasTerminal() {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
