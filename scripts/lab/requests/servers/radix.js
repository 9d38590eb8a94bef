/*
 * What one would write with node:http and the router find-my-way.
 */
import { HEADERS } from './cores.js';

/** @typedef {import('node:http').IncomingMessage} Request */
/** @typedef {import('node:http').ServerResponse} Response */

/**
 * @param {any} findMyWay the package
 * @param {Record<string, string>} [headers] in addition
 * @returns {(request: Request, response: Response) => void}
 */
export function radixListener(findMyWay, headers = {}) {
  const defaultRoute = (/** @type {Request} */ _, /** @type {Response} */ response) =>
    void response.writeHead(404, headers).end();
  const router = findMyWay({ defaultRoute });
  const all = { ...HEADERS, ...headers };
  router.on('GET', '/bench/:name', respond);
  return (request, response) => router.lookup(request, response);

  /**
   * @param {Request} _request @param {Response} response @param {{ name: string }} params @param {unknown} _store
   * @param {{ id?: string }} query
   */
  function respond(_request, response, { name }, _store, { id }) {
    const body = JSON.stringify({ name, id });
    response.writeHead(200, { ...all, 'content-length': Buffer.byteLength(body) });
    response.end(body);
  }
}
