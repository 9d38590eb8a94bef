/*
 * A client that opens streams and reads them at little cost, so that the server has the machine almost to itself.
 */
import { bareProgram } from './bare.js';
import { Program } from './program.js';

/** Streams being opened at the same time. */
const CONCURRENCY = 256;

export class Client extends Program {
  /**
   * @param {import('./lab.js').Lab} lab @param {number} port @param {string} [path] @param {string} [heads] a file of complete
   *   request heads, which the streams use in turn instead
   */
  constructor(lab, port, path = '/', heads = '') {
    super(lab, bareProgram('client'), [String(port), path, String(CONCURRENCY), heads]);
  }

  /** Opens streams until there are this many. @param {number} streams @returns {Promise<number>} ms it took */
  async open(streams) {
    return Number((await this.ask(`open ${streams}`))[2]);
  }

  async close() {
    await this.ask('close');
  }

  /** @returns {Promise<number>} bytes received after the welcomes */
  async read() {
    return Number((await this.ask('read'))[1]);
  }
}
