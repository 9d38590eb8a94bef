/*
 * How a server tells the process that started it that it is ready: one message on the IPC channel, if there is one
 * (spawned with 'ipc' in its stdio), so that nobody has to parse log lines.
 */
import { HoldfastError } from './errors.js';

const DEADLINE_MS = 60_000;

/**
 * What server.js says. A drone says `{ type: 'listening', url }`.
 * @typedef {object} ServerListening
 * @property {'listening'} type
 * @property {string} host as given, '' for every address of the machine
 * @property {number} port
 * @property {number} adminPort 0 if there is none
 * @property {string} dashboard its URL, '' if there is none
 * @property {string} csvPath '' if there is none
 * @property {number[]} workers their pids
 */

/** @param {{ type: 'listening' } & Record<string, unknown>} message sent to the parent, if it listens */
export function tellParent(message) {
  if (process.connected) process.send?.(message, undefined, {}, () => {}); // errors don't matter: the parent is gone
}

/**
 * Waits for the message of `tellParent`.
 * @template {{ type: 'listening' }} [Message=ServerListening]
 * @param {import('node:child_process').ChildProcess} child spawned with an IPC channel
 * @param {number} [deadlineMs]
 * @returns {Promise<Message>}
 * @throws {HoldfastError} NOT_LISTENING if it ends first or takes too long
 */
export function untilListening(child, deadlineMs = DEADLINE_MS) {
  return new Promise((resolve, reject) => {
    /** @param {string} why */
    const fail = (why) => settle(() => reject(new HoldfastError('NOT_LISTENING', why)));
    const onMessage = (/** @type {any} */ message) =>
      message?.type === 'listening' && settle(() => resolve(message));
    const onExit = () => fail(`it exited (${child.signalCode ?? child.exitCode}) before it was listening`);
    const onError = (/** @type {Error} */ error) => fail(`it could not be started: ${error.message}`);
    const timer = setTimeout(() => fail(`it was not listening within ${deadlineMs} ms`), deadlineMs);
    /** @param {() => void} act */
    const settle = (act) => {
      clearTimeout(timer);
      child.off('message', onMessage).off('exit', onExit).off('error', onError);
      act();
    };
    child.on('message', onMessage).on('exit', onExit).on('error', onError);
    if (child.exitCode !== null || child.signalCode !== null) onExit();
  });
}
