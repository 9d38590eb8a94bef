/*
 * One of the compared servers while it runs.
 */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { freePort } from '../../../lib/port.js';
import { pinned } from '../cores.js';
import { cpuUs } from '../processes.js';
import { isListening } from '../sockets.js';
import { startProgram } from '../starting.js';

const HOST = '127.0.0.1';
const ANSWER_MS = 5000;

/** @typedef {import('../lab.js').Lab} Lab */
/** @typedef {import('./subjects.js').Subject} Subject */
/** @typedef {import('../starting.js').Program & { subject: Subject, port: number }} Server */

/** @param {Lab} lab @param {Subject} subject @returns {Promise<Server>} once it listens itself: its port may have been taken meanwhile @throws {import('../../../lib/errors.js').HoldfastError} PEER */
export async function startServer(lab, subject) {
  const port = await freePort(0, HOST);
  const words = [...(subject.isPinned ? pinned('server') : []), ...subject.command(port)];
  const isReady = (/** @type {{ pids: () => number[] }} */ { pids }) => isListening(pids(), port);
  return { subject, port, ...(await startProgram(lab, { name: subject.name, words, isReady })) };
}

/** @param {number[]} pids @returns {{ us: number, user: number, system: number }} run time; user and system in ticks of 10 ms */
export function cpuOf(pids) {
  const times = pids.map((pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
    return { user: Number(fields[11]), system: Number(fields[12]) };
  });
  const sum = (/** @type {'user' | 'system'} */ name) => times.reduce((all, one) => all + one[name], 0);
  return { us: cpuUs(pids), user: sum('user'), system: sum('system') };
}

/** @param {Server} server @returns {Promise<number | null>} bytes per item as the server counts them; null if it doesn't */
export async function countedBytes({ port, subject }) {
  const isRedis = subject.protocol === 'redis';
  const text = await ask(port, isRedis ? 'INFO\r\n' : 'stats\r\n', isRedis ? /db0:/ : /^(END|ERROR)\r\n/m);
  const [bytes, items] = isRedis
    ? [/^used_memory:(\d+)/m, /^db0:keys=(\d+)/m]
    : [/^STAT bytes (\d+)/m, /^STAT curr_items (\d+)/m];
  const [total, count] = [bytes, items].map((pattern) => Number(pattern.exec(text)?.[1] ?? 0));
  return total && count ? total / count : null;
}

/** @param {number} port @param {string} question @param {RegExp} end @returns {Promise<string>} what it has said when the end is there, or the time is up */
function ask(port, question, end) {
  return new Promise((resolve) => {
    const socket = connect(port, HOST, () => socket.write(question));
    let said = '';
    const finish = () => {
      clearTimeout(timer);
      socket.destroy();
      resolve(said);
    };
    const timer = setTimeout(finish, ANSWER_MS);
    socket.on('data', (data) => {
      said += data.toString('latin1');
      if (end.test(said)) finish();
    });
    socket.once('error', finish);
    socket.once('close', finish);
  });
}
