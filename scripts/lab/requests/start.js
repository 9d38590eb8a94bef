/*
 * Starts a server of the comparison.
 */
import { freePort } from '../../../lib/port.js';
import { coreCount, pinned } from '../cores.js';
import { startProgram } from '../starting.js';

export const HOST = '127.0.0.1';

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {'one' | 'cores'} Mode one instance pinned to a core beside the client; one per core, which the client shares */
/** @typedef {import('../starting.js').Program & { port: number }} Server */

/** @param {Lab} lab @param {import('./subjects.js').Subject} subject @param {Mode} mode @returns {Promise<Server>} once all its processes listen @throws {import('../../../lib/errors.js').HoldfastError} PEER */
export async function startSubject(lab, { name, command }, mode) {
  const port = await freePort(0, HOST);
  const words = mode === 'one' ? [...pinned('server'), ...command(port, 1)] : command(port, coreCount());
  const isReady = (/** @type {{ said: string }} */ { said }) => /^listening$/m.test(said);
  return { port, ...(await startProgram(lab, { name, words, env: { NODE_ENV: 'production' }, isReady })) };
}
