/*
 * A Hold that passes requests on to node:http with find-my-way, as an application does whose other routes are not streams.
 * Takes port, processes, our package, and the router find-my-way.
 */
import { createServer } from 'node:http';
import { HOST, KEEP_ALIVE_MS, onCores, startOf } from './cores.js';
import { radixListener } from './radix.js';

const { port, cores, packages } = startOf();
const [{ Hold }, { default: findMyWay }] = await Promise.all(packages.map((one) => import(one)));

const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, radixListener(findMyWay));
const hold = new Hold({ server });
await onCores(cores, () => hold.listen(port, HOST));
