/*
 * Fastify, as its documentation shows it, without a schema. Takes port, processes, and the package.
 */
import { HEADERS, HOST, KEEP_ALIVE_MS, onCores, startOf } from './cores.js';

const { port, cores, packages } = startOf();
const { default: fastify } = await import(packages[0]);

/** @type {import('fastify').FastifyInstance} */
const app = fastify({ keepAliveTimeout: KEEP_ALIVE_MS });
app.get('/bench/:name', (request, reply) => {
  const { name } = /** @type {{ name: string }} */ (request.params);
  const { id } = /** @type {{ id?: string }} */ (request.query);
  reply.header('x-powered-by', HEADERS['x-powered-by']);
  return { name, id };
});

await onCores(cores, () => app.listen({ port, host: HOST, backlog: 4096 }));
