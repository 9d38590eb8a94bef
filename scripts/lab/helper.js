/*
 * A program of ours in a process of its own, which does what it is told by messages: its CPU is measured separately, and it has
 * an event loop for itself. The other side is helpers/orders.js.
 */
import { fileURLToPath } from 'node:url';
import { HoldfastError } from '../../lib/errors.js';
import { hasEnded } from './clean.js';
import { environment } from './server.js';

const FOLDER = new URL('helpers/', import.meta.url);

export class Helper {
  /** @param {import('./lab.js').Lab} lab @param {string} name of a file in helpers/, without .js */
  constructor(lab, name) {
    this.lab = lab;
    this.name = name;
    this.child = lab.clean.spawn(process.execPath, [fileURLToPath(new URL(`${name}.js`, FOLDER))], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: environment(),
    });
    this.lastId = 0;
    /** @type {Map<number, { resolve: (answer: any) => void, reject: (error: Error) => void }>} */
    this.questions = new Map();
    this.child.on('message', (message) => this.settle(/** @type {any} */ (message)));
    this.child.once('exit', () => this.fail());
  }

  pids() {
    return [this.child.pid ?? 0];
  }

  /**
   * @param {string} order @param {unknown} [argument]
   * @returns {Promise<any>} its answer
   * @throws {HoldfastError} HELPER: what went wrong there
   */
  ask(order, argument) {
    if (hasEnded(this.child)) return Promise.reject(this.endError());
    const id = ++this.lastId;
    const answer = new Promise((resolve, reject) => this.questions.set(id, { resolve, reject }));
    this.child.send({ id, order, argument });
    return this.lab.unlessAborted(answer);
  }

  /** @param {{ id: number, answer?: unknown, problem?: string }} message */
  settle({ id, answer, problem }) {
    const question = this.questions.get(id);
    this.questions.delete(id);
    if (problem === undefined) question?.resolve(answer);
    else question?.reject(new HoldfastError('HELPER', `the ${this.name}: ${problem}`));
  }

  fail() {
    for (const { reject } of this.questions.values()) reject(this.endError());
    this.questions.clear();
  }

  endError() {
    const { signalCode, exitCode } = this.child;
    return new HoldfastError('HELPER', `the ${this.name} ended (${signalCode ?? exitCode ?? 'not started'})`);
  }

  stop() {
    return this.lab.clean.end(this.child);
  }
}
