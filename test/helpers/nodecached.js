/*
 * nodecached as a child process, and connections to it.
 */
import { spawnSync } from 'node:child_process';
import { EventEmitter, once } from 'node:events';
import { connect } from 'node:net';
import { run } from './server.js';
import { until } from './until.js';

/** @typedef {import('./server.js').Scope} Scope */

/** @param {string} program @returns {string} why it can't be used, or '' */
export const missing = (program) =>
  spawnSync(program, ['--help']).error ? `${program} is not installed` : '';

/**
 * @param {Scope} t
 * @param {string[]} [args]
 * @param {string} [file] in examples/nodecached
 * @returns {Promise<ReturnType<typeof run> & { port: number }>}
 */
export async function startCached(t, args = [], file = 'server.js') {
  const program = run(t, process.execPath, [`examples/nodecached/${file}`, '-p', '0', ...args]);
  const { child, output } = program;
  const found = await until(
    () => {
      if (child.exitCode !== null) throw new Error(`it ended: ${output.stderr}`);
      return /listening on (\S+):(\d+)/.exec(output.stdout);
    },
    () => `it listens: ${output.stderr}`,
  );
  return { ...program, port: Number(found[2]) };
}

const DEADLINE_MS = 60_000;
/** A command whose answer no other has, to know when everything is answered. */
const LAST = 'stats detail\r\n';
const LAST_ANSWER = 'CLIENT_ERROR usage: stats detail on|off|dump\r\n';

/** A connection that keeps what it is told. @typedef {{ socket: import('node:net').Socket, text: () => string, isClosed: () => boolean, until: (end: string) => Promise<string> }} Talk */

/** @param {number} port @returns {Promise<Talk>} `until` waits for the end of an answer, and takes everything up to there */
export async function open(port) {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  const changed = new EventEmitter();
  let text = '';
  let isClosed = false;
  socket.setEncoding('latin1');
  socket.on('data', (data) => {
    text += data;
    changed.emit('change');
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    isClosed = true;
    changed.emit('change');
  });
  await once(socket, 'connect');
  const waitFor = async (/** @type {string} */ end) => {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    while (!text.endsWith(end) && !isClosed)
      await once(changed, 'change', { signal }).catch(() => {
        throw new Error(`no ${JSON.stringify(end)} after ${JSON.stringify(text.slice(-200))}`);
      });
    const all = text;
    text = '';
    return all;
  };
  return { socket, text: () => text, isClosed: () => isClosed, until: waitFor };
}

/**
 * Sends commands one after the other. memcached answers some differently when they arrive together: a value that is still being sent isn't
 * changed in place, and a get with a key that is too long takes the answers before it along.
 * @param {number} port
 * @param {string[]} commands
 * @returns {Promise<string>}
 */
export async function talkInTurn(port, commands) {
  const { socket, until: waitFor } = await open(port);
  let all = '';
  for (const command of commands) {
    socket.write(`${command}${LAST}`, 'latin1');
    all += (await waitFor(LAST_ANSWER)).slice(0, -LAST_ANSWER.length);
  }
  socket.destroy();
  return all;
}

/**
 * Sends some commands, and waits for all answers: until that to one more command, or until the other side closes.
 * @param {number} port
 * @param {string} text latin1
 * @param {(text: string) => string[]} [split] into what is sent at a time
 * @returns {Promise<string>}
 */
export async function talk(port, text, split = (whole) => [whole]) {
  const { socket, until: waitFor } = await open(port);
  for (const part of split(text)) {
    socket.write(part, 'latin1');
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.write(LAST);
  const all = await waitFor(LAST_ANSWER);
  socket.destroy();
  return all.endsWith(LAST_ANSWER) ? all.slice(0, -LAST_ANSWER.length) : all;
}
