/*
 * What signals do to the command.
 */
import { onSignals, SIGNAL_STATUS } from '../lib/signals.js';

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGTERM']);

/** A signal is an exit, so that what is to be undone at exit is undone. */
export function exitOnSignals() {
  onSignals(SIGNALS, (signal) => process.exit(SIGNAL_STATUS[signal]));
}

/**
 * The first signal aborts, the second is an exit at once.
 * @returns {{ signal: AbortSignal, status: () => number }} the status to exit with, 0 where none came
 */
export function abortOnSignals() {
  const controller = new AbortController();
  let status = 0;
  onSignals(SIGNALS, (signal) => {
    if (status !== 0) process.exit(SIGNAL_STATUS[signal]);
    status = SIGNAL_STATUS[signal];
    controller.abort();
  });
  return { signal: controller.signal, status: () => status };
}
