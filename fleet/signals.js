/*
 * What signals do to a command of the fleet.
 */
import { onSignals, SIGNAL_STATUS } from '../lib/signals.js';

const SIGNALS = /** @type {const} */ (['SIGHUP', 'SIGINT', 'SIGTERM']);

/** Turns a signal into an exit, so that exit handlers run. */
export function exitOnSignals() {
  onSignals(SIGNALS, (signal) => process.exit(SIGNAL_STATUS[signal]));
}

/**
 * The first signal aborts, the second exits at once.
 * @returns {{ signal: AbortSignal, status: () => number }} the exit status, 0 if no signal came
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
