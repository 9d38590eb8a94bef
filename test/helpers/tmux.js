/*
 * A terminal to type into and read from: tmux on its own socket.
 */
import { spawnSync } from 'node:child_process';
import { ROOT } from './server.js';
import { until } from './until.js';

let made = 0;

/** @returns {boolean} */
export function hasTmux() {
  return !spawnSync('tmux', ['-V']).error;
}

/**
 * @param {import('node:test').TestContext} t the terminal is closed after the test
 * @param {object} options
 * @param {number} options.columns
 * @param {number} options.rows
 * @param {string} options.command for the shell that runs in it
 * @param {string} [options.term] TERM of the command
 */
export function openTerminal(t, { columns, rows, command, term = 'screen-256color' }) {
  const tmux = (/** @type {string[]} */ ...args) =>
    spawnSync('tmux', ['-u', '-L', name, '-f', '/dev/null', ...args], { cwd: ROOT, encoding: 'utf8' });
  const name = `holdfast-${process.pid}-${++made}`;
  const size = ['-x', String(columns), '-y', String(rows)];
  tmux('new-session', '-d', '-s', 'test', ...size, 'env', 'PS1=$ ', 'sh');
  t.after(() => tmux('kill-server'));
  tmux('send-keys', '-t', 'test', `TERM=${term} ${command}; echo "status $?"`, 'Enter');
  const read = () => tmux('capture-pane', '-p', '-t', 'test').stdout;
  return {
    read,
    /** @param {string[]} keys */
    type: (...keys) => tmux('send-keys', '-t', 'test', ...keys),
    /** @param {number} width @param {number} height */
    resize: (width, height) => tmux('resize-window', '-t', 'test', '-x', String(width), '-y', String(height)),
    /** Its programs get SIGHUP. */
    close: () => tmux('kill-server'),
    /** @param {RegExp} pattern */
    untilShown: (pattern) =>
      until(
        () => {
          const screen = read();
          return pattern.test(screen) && screen;
        },
        () => `${pattern} on the screen:\n${read()}`,
      ),
  };
}
