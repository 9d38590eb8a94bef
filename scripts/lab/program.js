/*
 * A program that reads commands from its input and answers each with one line.
 */
import { createInterface } from 'node:readline';
import { HoldfastError } from '../../lib/errors.js';
import { hasEnded } from './clean.js';

export class Program {
  /** @param {import('./lab.js').Lab} lab @param {string} command @param {string[]} args */
  constructor(lab, command, args) {
    this.lab = lab;
    this.child = lab.clean.spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.child.stdin?.on('error', () => {}); // it has ended: the next answer says so
    const output = /** @type {import('node:stream').Readable} */ (this.child.stdout);
    this.lines = createInterface(output)[Symbol.asyncIterator]();
  }

  get pid() {
    return this.child.pid ?? 0;
  }

  /** @returns {Promise<string[]>} the words of its next line @throws {HoldfastError} PROGRAM when it has ended */
  async answer() {
    const { value, done } = await this.lab.unlessAborted(this.lines.next());
    if (done) throw this.endError();
    return value.split(' ');
  }

  /** @param {string} order */
  ask(order) {
    this.child.stdin?.write(`${order}\n`);
    return this.answer();
  }

  /** @throws {HoldfastError} PROGRAM when it has ended */
  check() {
    if (hasEnded(this.child)) throw this.endError();
  }

  endError() {
    const { spawnfile, signalCode, exitCode } = this.child;
    return new HoldfastError('PROGRAM', `${spawnfile} ended (${signalCode ?? exitCode ?? 'not started'})`);
  }

  /** Ends it by closing its input. */
  async stop() {
    this.child.stdin?.end();
    while (!hasEnded(this.child)) await this.lab.sleep(10);
  }
}
