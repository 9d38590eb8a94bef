/*
 * A thread besides the main one.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { startThread } from './thread.js';

const { data, thread, how } = workerData;
startThread(data, thread).server.listen(how, () => parentPort?.postMessage('listening'));
