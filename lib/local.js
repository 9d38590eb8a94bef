/*
 * Whether a request was made on this machine, and not through a proxy here, whose clients may be anywhere.
 */
import { inRanges, LOOPBACK } from './addresses.js';

/** Headers that proxies add. */
export const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for'];

const isLoopback = inRanges(LOOPBACK);

/** @param {{ address?: string, headers: Readonly<Record<string, string | undefined>> }} request @returns {boolean} */
export function isLocal({ address = '', headers }) {
  return isLoopback(address) && PROXY_HEADERS.every((name) => headers[name] === undefined);
}
