/*
 * better-sse, as in its README. Takes the port, the ping interval (ms, 0 for none) and the path of the package.
 */
import { createServer } from 'node:http';

const [port, intervalMs] = process.argv.slice(2, 4).map(Number);
const { createSession } = await import(process.argv[4]);

createServer(async (request, response) => {
  if (request.url !== '/') return void response.writeHead(404).end();
  const session = await createSession(request, response, { keepAlive: intervalMs || null });
  session.push('Welcome!');
}).listen({ port, host: '127.0.0.1', backlog: 4096 });
