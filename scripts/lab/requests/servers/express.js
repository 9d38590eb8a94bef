/*
 * Express, as its documentation shows it. Takes port, processes, and the package.
 */
import { createServer } from 'node:http';
import { HEADERS, KEEP_ALIVE_MS, listening, onCores, startOf } from './cores.js';

const { port, cores, packages } = startOf();
const { default: express } = await import(packages[0]);

/** @type {import('express').Express} */
const app = express();
app.disable('etag'); // the others have none
app.get('/bench/:name', (request, response) => {
  response.set('x-powered-by', HEADERS['x-powered-by']);
  response.json({ name: request.params.name, id: request.query.id });
});

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, app);
await onCores(cores, () => listening(server, port));
