/*
 * node:http with find-my-way. Takes port, processes, the package, and 'close' to end the connection after each answer.
 */
import { createServer } from 'node:http';
import { KEEP_ALIVE_MS, listening, onCores, startOf } from './cores.js';
import { radixListener } from './radix.js';

const { port, cores, packages } = startOf();
const [findMyWay, close] = packages;
const { default: router } = await import(findMyWay);
const listener = radixListener(router, close ? { connection: 'close' } : {});

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, listener);
await onCores(cores, () => listening(server, port));
