/*
 * Velocy, written as in the original comparison: its `json` would set another content type. Takes port, processes, and the
 * package.
 */
import { HEADERS, KEEP_ALIVE_MS, listening, onCores, startOf } from './cores.js';

const { port, cores, packages } = startOf();
const { default: velocy } = await import(packages[0]);

const router = new velocy.Router();
router.get('/bench/:name', (/** @type {any} */ request, /** @type {any} */ response) => {
  const id = request.queryParams.get('id') ?? undefined;
  const body = JSON.stringify({ name: request.params.name, id });
  response.writeHead(200, { ...HEADERS, 'content-length': Buffer.byteLength(body) });
  response.end(body);
});

const server = velocy.createServer(router);
server.keepAliveTimeout = KEEP_ALIVE_MS;
await onCores(cores, () => listening(server, port));
