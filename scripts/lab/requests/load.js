/*
 * wrk, and what happens in the server meanwhile.
 */
import { HoldfastError } from '../../../lib/errors.js';
import { pinned } from '../cores.js';
import { cpuUs } from '../processes.js';
import { socketsOf } from '../sockets.js';
import { MEASURED } from './answers.js';
import { HOST } from './start.js';
import { parseWrk } from './wrk.js';

/** Shares of the time between which the CPU of client and server is compared: wrk's start and end are not typical. */
const WINDOW = [0.2, 0.8];
/** By then the server has closed the connections from before, which would delay the new ones. */
const REST_MS = 300;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('./start.js').Server} Server */
/** @typedef {import('./start.js').Mode} Mode */

/**
 * @typedef {object} Seen
 * @property {number} serverPercent of one core, in the middle of the time
 * @property {number} clientPercent
 * @property {number} waiting connections that wrk had opened after a fifth of the time, and the server had not accepted
 */

/**
 * @param {Lab} lab @param {Server} server @param {Mode} mode @param {{ connections: number, seconds: number }} how
 * @returns {Promise<{ figures: import('./wrk.js').WrkFigures, seen: Seen }>}
 * @throws {HoldfastError} WRK
 */
export async function runWrk(lab, server, mode, { connections, seconds }) {
  const url = `http://${HOST}:${server.port}${MEASURED}`;
  const words = ['wrk', '-t1', `-c${connections}`, `-d${seconds}s`, '--latency', url];
  const [program, ...args] = mode === 'one' ? [...pinned('client'), ...words] : words;
  await lab.sleep(REST_MS);
  const before = socketsOf(serving(server));
  const child = lab.clean.spawn(program, args);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (data) => {
      output += data;
    });
  }
  const closed = new Promise((resolve) => child.once('close', resolve));
  const seen = await watch(lab, server, child.pid ?? 0, seconds, before);
  await lab.unlessAborted(closed);
  if (child.exitCode !== 0) throw new HoldfastError('WRK', `wrk failed: ${output.trim()}`);
  return { figures: parseWrk(output), seen };
}

/** @param {Lab} lab @param {Server} server @param {number} client @param {number} seconds @param {number} before sockets @returns {Promise<Seen>} */
async function watch(lab, server, client, seconds, before) {
  const [start, end] = WINDOW.map((share) => share * seconds * 1000);
  await lab.sleep(start);
  const opened = socketsOf([client]);
  const waiting = Math.max(0, opened + before - socketsOf(serving(server)));
  const families = [server.pids(), [client]];
  const [had, begunMs] = [families.map(cpuUs), performance.now()];
  await lab.sleep(end - start);
  const us = (performance.now() - begunMs) * 1000;
  const [serverPercent, clientPercent] = families.map((pids, i) => (100 * (cpuUs(pids) - had[i])) / us);
  return { serverPercent, clientPercent, waiting };
}

/** @param {Server} server @returns {number[]} without the primary of a cluster, which only hands connections out */
function serving({ pids }) {
  const family = pids();
  return family.length > 1 ? family.slice(1) : family;
}
