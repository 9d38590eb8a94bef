/*
 * Elysia on Bun, as its documentation shows it. Takes port, processes, and the folder of the package. The last two headers are
 * those that Node writes by itself.
 */
import { HEADERS, HOST, KEEP_ALIVE_MS, onCores, startOf } from './cores.js';

const { port, cores, packages } = startOf();
/** @type {any} */
const { Bun } = globalThis;
const { Elysia } = await import(Bun.resolveSync('elysia', packages[0]));
const headers = { ...HEADERS, connection: 'keep-alive', 'keep-alive': `timeout=${KEEP_ALIVE_MS / 1000}` };

const app = new Elysia().get('/bench/:name', (/** @type {any} */ { params, query, set }) => {
  Object.assign(set.headers, headers);
  return { name: params.name, id: query.id };
});

await onCores(cores, () => app.listen({ port, hostname: HOST, reusePort: cores > 1 }));
