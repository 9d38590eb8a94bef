/*
 * Signals: their exit statuses, and ignoring the copies that npm sends.
 */
import { performance } from 'node:perf_hooks';

/** The exit status a shell would show: 128 plus the number of the signal. */
export const SIGNAL_STATUS = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 };
/** npm forwards Ctrl-C to its child, which already got it from the terminal. Nobody presses it twice that fast. */
const ECHO_MS = 200;

/** @typedef {keyof typeof SIGNAL_STATUS} Signal */

/**
 * @param {readonly Signal[]} signals
 * @param {(signal: Signal) => void} act called once for a signal and its copy
 */
export function onSignals(signals, act) {
  let lastSignal = '';
  let lastMs = 0;
  for (const signal of signals) {
    process.on(signal, () => {
      const nowMs = performance.now();
      if (signal === lastSignal && nowMs < lastMs + ECHO_MS) return;
      lastSignal = signal;
      lastMs = nowMs;
      act(signal);
    });
  }
}
