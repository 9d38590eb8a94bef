import { printable } from './format.js';

/**
 * An error that the user can act on: it is shown as one line, without a stack, and ends the program with status 1.
 * The message says what is wrong, what was given, what was expected, and what to do.
 */
export class HoldfastError extends Error {
  /**
   * @param {string} code a short constant, such as 'BAD_OPTION' or 'EADDRINUSE'
   * @param {string} message one line
   */
  constructor(code, message) {
    super(message);
    this.name = 'HoldfastError';
    this.code = code;
  }
}

/**
 * The `code` of a system error ('EADDRINUSE', 'ENOSPC'), or '' if it has none.
 * @param {unknown} error
 * @returns {string}
 */
export function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/**
 * @param {unknown} error
 * @returns {string} its message on one line
 */
export function messageOf(error) {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s*\n\s*/g, ' ');
}

/**
 * Ends a program that failed: one line for an error the user can act on, the stack for a bug.
 * @param {string} program the name at the start of the line
 * @param {unknown} error
 * @returns {never}
 */
export function exitWith(program, error) {
  const known = error instanceof HoldfastError;
  const text = known ? printable(messageOf(error)) : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${program}: ${text}\n`);
  process.exit(1);
}

/**
 * Turns an error of `listen` into a line that names the option to change.
 * @param {unknown} error
 * @param {string} flag the option that gave the port: 'port' or 'admin-port'
 * @param {number} port
 * @param {string} host '' for all addresses
 * @returns {HoldfastError}
 */
export function listenError(error, flag, port, host) {
  const code = codeOf(error);
  const where = host ? `${host}:${port}` : `port ${port}`;
  const line =
    code === 'EADDRINUSE'
      ? `${where} is in use: stop the other server, or use another --${flag}`
      : code === 'EACCES'
        ? `permission denied for ${where}: ports below 1024 need root; use another --${flag}`
        : code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND' || code === 'EAI_AGAIN'
          ? `'${host}' is not an address of this machine (${code}): use another --host`
          : `can't listen on ${where}: ${messageOf(error instanceof Error ? (error.cause ?? error) : error)}`;
  return new HoldfastError(code || 'LISTEN', line);
}
