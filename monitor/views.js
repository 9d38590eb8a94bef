/*
 * Which view of frames the user gets: the dashboard, lines of text, or none.
 */
import { HoldfastError } from '../lib/errors.js';
import { Lines, Notes } from './lines.js';

/** @typedef {'tui' | 'lines' | 'off'} Dashboard */

/**
 * @param {Dashboard | 'auto'} wish auto is tui in a terminal and lines elsewhere
 * @returns {Dashboard}
 * @throws {HoldfastError} NO_TERMINAL
 */
export function chooseDashboard(wish) {
  if (wish === 'auto') return isTerminal() ? 'tui' : 'lines';
  if (wish === 'tui' && !isTerminal()) {
    throw new HoldfastError(
      'NO_TERMINAL',
      '--dashboard tui needs a terminal on stdin and stdout: use --dashboard lines or off',
    );
  }
  return wish;
}

function isTerminal() {
  const { stdout, stdin, env } = process;
  return stdout.isTTY && stdin.isTTY && stdout.columns > 0 && env.TERM !== 'dumb';
}

/**
 * @param {Dashboard} dashboard
 * @param {number} refreshMs between two frames
 * @returns {Promise<(commands: { quit: () => void, collectGarbage: () => void }) => import('./index.js').View>} makes the
 *   view; the modules it needs are loaded by then
 */
export async function loadView(dashboard, refreshMs) {
  const { stdout, stderr } = process;
  if (dashboard === 'lines') return () => new Lines(stdout, stderr);
  if (dashboard === 'off') return () => new Notes(stdout, stderr);
  const { Terminal } = await import('./terminal.js');
  return (commands) => new Terminal(commands, refreshMs);
}
