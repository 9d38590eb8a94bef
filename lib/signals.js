/*
 * What signals mean to a command, and which of them came twice by themselves.
 */
import { performance } from 'node:perf_hooks';

/** As a shell has it: 128 and the number of the signal. */
export const SIGNAL_STATUS = { SIGHUP: 129, SIGINT: 130, SIGQUIT: 131, SIGTERM: 143 };
/** npm sends on to its child the Ctrl-C that the terminal has sent it already: no person is that quick. */
const ECHO_MS = 200;

/** @typedef {keyof typeof SIGNAL_STATUS} Signal */

/**
 * @param {readonly Signal[]} signals
 * @param {(signal: Signal) => void} act once for a signal and its echo
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
