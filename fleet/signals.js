/*
 * What signals do to the command.
 */

/** As a shell has it: 128 and the number of the signal. */
const STATUS = { SIGHUP: 129, SIGINT: 130, SIGTERM: 143 };
const SIGNALS = /** @type {(keyof typeof STATUS)[]} */ (Object.keys(STATUS));

/** A signal is an exit, so that what is to be undone at exit is undone. */
export function exitOnSignals() {
  for (const signal of SIGNALS) process.on(signal, () => process.exit(STATUS[signal]));
}

/**
 * The first signal aborts, the second is an exit at once.
 * @returns {{ signal: AbortSignal, status: () => number }} the status to exit with, 0 where none came
 */
export function abortOnSignals() {
  const controller = new AbortController();
  let status = 0;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      if (status !== 0) process.exit(STATUS[signal]);
      status = STATUS[signal];
      controller.abort();
    });
  }
  return { signal: controller.signal, status: () => status };
}
