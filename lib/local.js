/*
 * Whether a request was made on this machine, as far as we can see: not through a proxy here, whose clients may be anywhere, and not
 * by a page on another site, which can make a browser here send requests, but only with the Host of that site.
 */
import { inRanges, LOOPBACK } from './addresses.js';

/** Headers that proxies add. */
export const PROXY_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'];

const LOCAL_HOST = /^(?:localhost|127\.[0-9.]+|\[::1\])(?::[0-9]+)?$/i;

const isLoopback = inRanges(LOOPBACK);

/** @param {string | undefined} host of a request @returns {boolean} whether it names this machine */
export function isLocalHost(host = '') {
  return LOCAL_HOST.test(host);
}

/** @param {{ address?: string, headers: Readonly<Record<string, string | undefined>> }} request @returns {boolean} */
export function isLocal({ address = '', headers }) {
  return (
    isLoopback(address) &&
    isLocalHost(headers.host) &&
    PROXY_HEADERS.every((name) => headers[name] === undefined)
  );
}
