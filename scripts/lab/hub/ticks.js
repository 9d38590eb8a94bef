/*
 * The ticks of a server while something happens: the worst second, as each frame tells.
 */

const ASK_EVERY_MS = 100;

export class TickWatch {
  /** @param {import('../lab.js').Lab} lab @param {import('../server.js').LabServer} server */
  constructor(lab, server) {
    this.lab = lab;
    this.server = server;
    this.elapsedMs = -1;
    this.isStopped = false;
    this.worst = { p99Ms: 0, maxMs: 0 };
    /** @type {Promise<void>} */
    this.watching = Promise.resolve();
  }

  /** @returns {Promise<this>} with the next frame */
  async start() {
    this.elapsedMs = await this.server.nextRow();
    this.watching = this.watch();
    this.watching.catch(() => {}); // `stop` tells
    return this;
  }

  async watch() {
    while (!this.isStopped) {
      await this.see();
      await this.lab.sleep(ASK_EVERY_MS);
    }
  }

  async see() {
    const totals = await this.server.totals();
    if (!totals || totals.elapsedMs <= this.elapsedMs) return;
    this.elapsedMs = totals.elapsedMs;
    this.worst.p99Ms = Math.max(this.worst.p99Ms, totals.tickP99Ms ?? 0);
    this.worst.maxMs = Math.max(this.worst.maxMs, totals.tickMaxMs ?? 0);
  }

  /** @returns {Promise<{ p99Ms: number, maxMs: number }>} until the next frame, which tells about what has just happened */
  async stop() {
    this.isStopped = true;
    await this.watching;
    await this.server.nextRow();
    await this.see();
    return this.worst;
  }
}
