/*
 * Compresses a response as the middleware `compression` of Express does: `write`, `end` and `on` of the response are
 * replaced, and `flush` is added.
 */
import { createGzip } from 'node:zlib';

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse & { flush?: () => void }} response of which nothing was sent
 */
export function compress(request, response) {
  if (!/\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) return;
  const gzip = createGzip();
  const { write, end, on } = response;
  gzip.on('data', (data) => {
    if (!write.call(response, data, 'utf8', () => {})) gzip.pause();
  });
  on.call(response, 'drain', () => void gzip.resume());
  gzip.on('end', () => end.call(response, undefined, 'utf8', () => {}));
  response.setHeader('Content-Encoding', 'gzip');
  Object.assign(response, {
    write: (/** @type {string | Buffer} */ data) => gzip.write(data),
    end: (/** @type {string | Buffer | undefined} */ data) => gzip.end(data),
    flush: () => gzip.flush(),
    on: (/** @type {string} */ event, /** @type {() => void} */ listener) => {
      (event === 'drain' ? gzip : response).addListener(event, listener);
      return response;
    },
  });
}
