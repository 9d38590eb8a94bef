/*
 * What an error of ours is like.
 */

/** @param {string} code @returns {(error: unknown) => boolean} whether an error has it, and a message of one line */
export const withCode = (code) => (error) =>
  error instanceof Error && 'code' in error && error.code === code && !error.message.includes('\n');
