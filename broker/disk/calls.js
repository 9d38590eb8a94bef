/*
 * Calls of the thread of a disk broker (thread.js), each answered by id.
 */
import { Worker } from 'node:worker_threads';
import { HoldfastError } from '../../lib/errors.js';

const THREAD = new URL('./thread.js', import.meta.url);

/** @typedef {import('./thread.js').Call} Call */
/** @typedef {import('./thread.js').Reply} Reply */

export class Calls {
  /** @param {import('./store.js').Options} options */
  constructor(options) {
    /** @type {Map<number, { resolve: (result: any) => void, reject: (error: Error) => void }>} by id */
    this.calls = new Map();
    this.lastId = 0;
    /** @type {HoldfastError | null} why it has ended */
    this.problem = null;
    this.worker = new Worker(THREAD, { workerData: options, execArgv: [] });
    this.worker.on('message', (/** @type {Reply} */ reply) => this.replied(reply));
    this.worker.on('error', (error) => this.ended(`its thread failed: ${error.message}`));
    this.worker.on('exit', () => this.ended('its thread has ended'));
  }

  /**
   * @param {Call} call @param {ArrayBuffer[]} [moved] memory that is moved, not copied
   * @returns {Promise<any>}
   */
  call(call, moved = []) {
    if (this.problem) return Promise.reject(this.problem);
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.calls.set(id, { resolve, reject });
      this.worker.postMessage({ id, call }, moved);
    });
  }

  /** @param {Reply} reply */
  replied({ id, result, problem }) {
    const call = this.calls.get(id);
    this.calls.delete(id);
    if (problem) call?.reject(new HoldfastError(problem.code, problem.message));
    else call?.resolve(result);
  }

  /** @param {string} why */
  ended(why) {
    this.problem ??= new HoldfastError('STORE', `the store can't be used: ${why}`);
    for (const { reject } of this.calls.values()) reject(this.problem);
    this.calls.clear();
  }

  async end() {
    await this.worker.terminate();
  }
}
