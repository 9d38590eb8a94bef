/*
 * How each server of the comparison starts: in one process, or in one per core with node:cluster, which Bun has too.
 */
import cluster from 'node:cluster';

/** What every answer has; the rest of the headers belongs to the server. */
export const HEADERS = Object.freeze({
  'x-powered-by': 'benchmark',
  'content-type': 'application/json; charset=utf-8',
});
/** Without it, some versions of Node and Fastify would announce another time. */
export const KEEP_ALIVE_MS = 5000;
export const HOST = '127.0.0.1';

/**
 * The arguments of every server: the port, how many processes, and the packages it imports, as URLs.
 * @returns {{ port: number, cores: number, packages: string[] }}
 */
export function startOf() {
  const [port, cores, ...packages] = process.argv.slice(2);
  return { port: Number(port), cores: Number(cores), packages };
}

/** Says 'listening' once all processes do. @param {number} cores @param {() => unknown} listen may return a promise */
export async function onCores(cores, listen) {
  if (cores > 1 && cluster.isPrimary) return forkAll(cores);
  await listen();
  if (cluster.isPrimary) process.stdout.write('listening\n');
  else process.send?.('listening');
}

/** @param {number} cores */
function forkAll(cores) {
  let missing = cores;
  cluster.on('message', () => {
    if (--missing === 0) process.stdout.write('listening\n');
  });
  for (let i = 0; i < cores; i++) cluster.fork();
}

/** @param {import('node:http').Server} server @param {number} port @returns {Promise<void>} */
export function listening(server, port) {
  return new Promise((resolve) => server.listen({ port, host: HOST, backlog: 4096 }, resolve));
}
