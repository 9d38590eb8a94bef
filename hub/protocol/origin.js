/*
 * Which pages may open a WebSocket. Browsers send it with the cookies of the hub, whatever page it is, and CORS does not apply to it
 * (RFC 6455, section 10.2). So the hub itself holds pages to the rules that they have for everything else.
 */
import { RequestError } from '../../lib/router.js';
import { originOf } from '../access/credentials.js';

/** @typedef {import('../access/index.js').Request} Request */

/**
 * @param {Request} request for a WebSocket
 * @param {{ cors: import('./cors.js').Cors, url: string, access: import('../access/index.js').Access }} hub
 * @returns {{ mayPublish: boolean }} whether it may publish, if its token does
 * @throws {RequestError} 403
 */
export function checkPage(request, { cors, url, access }) {
  const { origin, host = '' } = request.headers;
  const isAmbient = access.isAmbient(request);
  if (origin !== undefined && !isOwn(origin, host, url)) {
    const isListed = cors.isListed(origin) || access.isPublishOrigin(origin);
    if (!isListed && (isAmbient || !cors.isOpen))
      throw new RequestError(403, 'a page of this origin may not open a WebSocket here (cors-origins)');
  }
  return { mayPublish: !isAmbient || access.isPublishOrigin(originOf(request.headers)) };
}

/** @param {string} origin @param {string} host of the request @param {string} url of the hub, or its path */
function isOwn(origin, host, url) {
  if (!URL.canParse(origin)) return false;
  return new URL(origin).host === host.toLowerCase() || (URL.canParse(url) && new URL(url).origin === origin);
}
