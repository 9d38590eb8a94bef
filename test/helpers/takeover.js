/*
 * Programs that take over each other's streams (test/fixtures/handover.js), and their clients.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bodyOf, get, rawClient } from './client.js';
import { run, temporaryFolder } from './server.js';
import { until } from './until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/**
 * `port`: null for a Hold that does not listen. `pair`: files, for one that listens with TLS. `dieAt`, `dieAfter`: the number of the answer (1 connect, 2 sync, 3 go, 4 sync, …).
 * @typedef {{ path: string, port?: number | null, name?: string, shards?: number, dieAt?: number, dieAfter?: number, offers?: boolean, pingIntervalMs?: number, capacity?: number, maxBacklogBytes?: number, pair?: { cert: string, key: string } }} Options
 */

/** @param {TestContext} t @returns {string} of a socket, in a folder of its own */
export const newPath = (t) => join(temporaryFolder(t), 'streams.sock');

/**
 * @param {TestContext} t @param {Options} options
 * @returns a program, as soon as it runs
 */
export function startProgram(t, { port = 0, name = 'a', ...options }) {
  const args = ['test/fixtures/handover.js', JSON.stringify({ port, name, ...options })];
  const program = run(t, process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe', 'ipc'] });
  /** @type {any[]} */
  const answers = [];
  program.child.on('message', (answer) => void answers.push(answer));
  const untilAnswer = async (/** @type {string} */ what) => {
    const found = await until(
      () =>
        answers.find(({ answer }) => answer === what) ?? (program.child.exitCode !== null && { answer: '' }),
      () => `${what} of ${name}: ${JSON.stringify(answers)} ${program.output.stderr}`,
    );
    if (found.answer === '') throw new Error(`${name} has ended: ${program.output.stderr}`);
    answers.splice(answers.indexOf(found), 1);
    return found;
  };
  return {
    ...program,
    untilAnswer,
    /** @param {string} what @param {object} [fields] */
    ask: async (what, fields = {}) => {
      program.child.send({ ask: what, ...fields });
      return (await untilAnswer(what)).value;
    },
  };
}

/** @typedef {ReturnType<typeof startProgram>} Program */
/** @typedef {Program & { port: number, adopted: { id: number, tag: string, channels: string[] }[] }} Ready */

/**
 * @param {TestContext} t @param {Options} options
 * @returns {Promise<Ready>} once it has taken over, and listens
 */
export async function startReady(t, options) {
  const program = startProgram(t, options);
  const { value, problem } = await program.untilAnswer('ready');
  if (problem) throw new Error(problem);
  return { ...program, ...value };
}

/**
 * @param {TestContext} t @param {number} port @param {string} target such as '/held/TAG,CHANNEL'
 * @returns a client that has read its welcome
 */
export async function openStream(t, port, target) {
  const client = rawClient(port, get().replace('/ HTTP', `${target} HTTP`));
  t.after(client.close);
  await client.untilRead(/Welcome!/);
  return Object.assign(client, { body: () => bodyOf(client.received) });
}

/** @param {number} pid @returns {number} descriptors in all tables of a process */
export function descriptorsOf(pid) {
  const tasks = readdirSync(`/proc/${pid}/task`);
  return tasks.reduce((all, task) => all + readdirSync(`/proc/${pid}/task/${task}/fd`).length, 0);
}

/** @param {number} pid @returns {number} kB of memory */
export function residentKb(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}
