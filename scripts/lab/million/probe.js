/*
 * Asks the server for a stream every now and then and measures how long the answer takes. It should answer whatever else
 * it does.
 */
import { request } from 'node:http';
import { request as secureRequest } from 'node:https';

const EVERY_MS = 250;
/** A request that takes longer counts as unanswered. */
const DEADLINE_MS = 10_000;

export class Probe {
  /** @param {number} port @param {boolean} isTls @param {AbortSignal} signal */
  constructor(port, isTls, signal) {
    this.port = port;
    this.ask = isTls ? secureRequest : request;
    this.signal = signal;
    this.worstMs = 0;
    this.unanswered = 0;
    /** @type {NodeJS.Timeout | undefined} */
    this.timer = undefined;
  }

  start() {
    this.timer = setInterval(() => this.try(), EVERY_MS);
    this.signal.addEventListener('abort', () => this.stop(), { once: true });
  }

  stop() {
    clearInterval(this.timer);
  }

  async try() {
    const begunMs = performance.now();
    const isAnswered = await this.isAnswered();
    this.worstMs = Math.max(this.worstMs, performance.now() - begunMs);
    if (!isAnswered) this.unanswered++;
  }

  /** @returns {Promise<boolean>} whether a stream began */
  isAnswered() {
    return new Promise((resolve) => {
      const signal = AbortSignal.timeout(DEADLINE_MS);
      const how = { host: '127.0.0.1', port: this.port, agent: false, signal, rejectUnauthorized: false };
      const asked = this.ask(how, (response) => {
        response.once('data', () => {
          resolve(response.statusCode === 200);
          asked.destroy();
        });
      });
      asked.on('error', () => resolve(false));
      asked.end();
    });
  }
}
