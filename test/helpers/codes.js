/*
 * What an error of ours is like.
 */

/**
 * @param {string} code @param {RegExp} [message]
 * @returns {(error: unknown) => boolean} whether an error has them, and its message is one line
 */
export const withCode =
  (code, message = /^.*$/) =>
  (error) =>
    error instanceof Error &&
    'code' in error &&
    error.code === code &&
    message.test(error.message) &&
    !error.message.includes('\n');
