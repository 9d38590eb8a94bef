/*
 * The request headers of a load: those of the URL and those given with -H, one value for each name.
 */
import { HoldfastError } from '../../lib/errors.js';

/** Headers that belong to the connection or to the length of the body, which the HTTP client decides. */
const RESERVED = new Set(['content-length', 'expect', 'keep-alive', 'transfer-encoding', 'upgrade']);

/** 'Name: value' → [name, value] @type {import('../../lib/options.js').Kind} */
export const HEADER = {
  expected: "a header, as in 'Accept: text/html'",
  word: "'NAME: VALUE'",
  read: (given) => /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\u{10ffff}]*)$/u.exec(given)?.slice(1),
};

/**
 * Headers with the same name are joined; for Host and Authorization the last one counts.
 * @param {[string, string][]} headers
 * @returns {Record<string, string>} values as the bytes of UTF-8, a character each
 * @throws {HoldfastError} BAD_OPTION
 */
export function joinHeaders(headers) {
  /** @type {Map<string, [string, string]>} */
  const found = new Map();
  for (const [name, text] of headers) {
    const key = name.toLowerCase();
    if (RESERVED.has(key))
      throw new HoldfastError('BAD_OPTION', `-H got '${name}': the HTTP client sets this header itself`);
    const value = Buffer.from(text).toString('latin1');
    const before = key === 'host' || key === 'authorization' ? undefined : found.get(key)?.[1];
    const separator = key === 'cookie' ? '; ' : ', ';
    found.set(key, [name, before === undefined ? value : `${before}${separator}${value}`]);
  }
  return Object.fromEntries(found.values());
}
