/*
 * All answers that are always the same, worded as memcached does.
 */
/** @param {string} text */
const line = (text) => Buffer.from(`${text}\r\n`, 'latin1');

export const STORED = line('STORED');
export const NOT_STORED = line('NOT_STORED');
export const EXISTS = line('EXISTS');
export const NOT_FOUND = line('NOT_FOUND');
export const DELETED = line('DELETED');
export const TOUCHED = line('TOUCHED');
export const END = line('END');
export const OK = line('OK');
export const MN = line('MN');
export const RESET = line('RESET');
export const ERROR = line('ERROR');
export const BAD_FORMAT = line('CLIENT_ERROR bad command line format');
export const BAD_CHUNK = line('CLIENT_ERROR bad data chunk');
export const BAD_EXPTIME = line('CLIENT_ERROR invalid exptime argument');
export const BAD_DELTA = line('CLIENT_ERROR invalid numeric delta argument');
export const BAD_DELETE = line('CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]');
export const NON_NUMERIC = line('CLIENT_ERROR cannot increment or decrement non-numeric value');
export const DETAIL_USAGE = line('CLIENT_ERROR usage: stats detail on|off|dump');
export const TOO_LARGE = line('SERVER_ERROR object too large for cache');
export const NO_MEMORY = line('SERVER_ERROR out of memory storing object');
export const NO_MEMORY_DELTA = line('SERVER_ERROR out of memory');
export const TOO_MANY = line('ERROR Too many open connections');
