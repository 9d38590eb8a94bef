/*
 * Publishes messages that contain their send time, through the server's admin port, so that drones can measure
 * delivery.
 */
import { Agent, request } from 'node:http';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';

const ANSWER_MS = 5000;
/** Most publications without an answer. More than that count as failed, so that a slow server isn't flooded. */
const MOST_PENDING = 64;

export class ChannelPublisher {
  /**
   * @param {object} options
   * @param {string} options.admin URL of the server's admin port
   * @param {string} options.channel
   * @param {number} options.everyMs
   * @param {number} options.streams that listen to the channel
   */
  constructor({ admin, channel, everyMs, streams }) {
    this.url = new URL(`/publish?channel=${encodeURIComponent(channel)}`, admin);
    this.admin = admin;
    this.everyMs = everyMs;
    this.streams = streams;
    this.agent = new Agent({ keepAlive: true });
    this.sent = 0;
    this.failed = 0;
    this.problem = '';
    this.pending = 0;
    /** @type {NodeJS.Timeout | null} */
    this.timer = null;
  }

  /** @throws {HoldfastError} NO_ADMIN if nobody would take publications */
  async check() {
    const status = await this.ask('GET', new URL('/healthz', this.admin)).catch((error) => {
      throw this.noAdmin(codeOf(error) || messageOf(error));
    });
    if (status !== 200) throw this.noAdmin(`status ${status} at /healthz`);
  }

  /** @param {string} why */
  noAdmin(why) {
    const line = `--admin ${this.admin} is not the admin port of a server (${why}): the server prints it at its start; --admin-port 0 turns it off`;
    return new HoldfastError('NO_ADMIN', line);
  }

  start() {
    this.timer ??= setInterval(() => this.publish(), this.everyMs);
  }

  async publish() {
    if (this.pending >= MOST_PENDING) return this.fail(`${MOST_PENDING} publications have no answer yet`);
    this.pending++;
    try {
      const sentUs = Math.round((performance.timeOrigin + performance.now()) * 1000);
      const status = await this.ask('POST', this.url, `@${sentUs} holdfast`);
      if (status === 200 || status === 202) this.sent++;
      else this.fail(`status ${status}`);
    } catch (error) {
      this.fail(codeOf(error) || messageOf(error));
    }
    this.pending--;
  }

  /** @param {string} problem */
  fail(problem) {
    this.failed++;
    this.problem = problem;
  }

  /**
   * @param {'GET' | 'POST'} method @param {URL} url @param {string} [body]
   * @returns {Promise<number>} the status
   */
  ask(method, url, body) {
    return new Promise((resolve, reject) => {
      const signal = AbortSignal.timeout(ANSWER_MS);
      const question = request(url, { method, agent: this.agent, signal }, (response) => {
        response.on('error', reject);
        response.on('end', () => resolve(response.statusCode ?? 0));
        response.resume();
      });
      question.on('error', reject);
      question.end(body);
    });
  }

  stop() {
    if (this.timer) clearInterval(this.timer);
    this.timer = null;
  }

  async close() {
    this.stop();
    this.agent.destroy();
  }

  /** @param {import('../ask.js').Counts} counts of all drones @returns {boolean} whether nothing more will arrive */
  isDelivered({ messages }) {
    return this.pending === 0 && messages >= this.sent * this.streams;
  }

  /** @returns {{ sent: number, failed: number, problem: string }} */
  counts() {
    const { sent, failed, problem } = this;
    return { sent, failed, problem };
  }
}
