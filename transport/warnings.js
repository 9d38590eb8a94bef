/*
 * Process warnings, for events that the application does not listen to.
 */
import { HoldfastError } from '../lib/errors.js';

const TYPE = 'HoldfastWarning';

/** Codes of errors that no callback threw. */
const OURS = ['SHARD_FAILED', 'DECISION_TIMEOUT'];

/** @type {Set<string>} codes of warnings that are given only once */
const given = new Set();

/** @param {{ code: string, message: string }} warning */
export function warnOnce({ code, message }) {
  if (given.has(code)) return;
  given.add(code);
  process.emitWarning(message, { type: TYPE, code });
}

/** @param {unknown} error for which there is no `onError` */
export function warn(error) {
  if (error instanceof HoldfastError && OURS.includes(error.code))
    return process.emitWarning(error.message, { type: TYPE, code: error.code });
  const text = error instanceof Error ? error.stack : String(error);
  process.emitWarning(`a callback of Hold threw, or returned something invalid: ${text}`, {
    type: TYPE,
    code: 'CALLBACK_THREW',
  });
}
