/*
 * A connection between the two processes of a handover: one JSON object per line. Both sides may ask; an answer has the id of
 * its question.
 */
import { HoldfastError } from '../lib/errors.js';

/** What two processes say to each other. One that does not know the version of the other refuses. */
export const PROTOCOL = 1;
/** Of every such error. */
const PREFIX = "the streams can't be handed over: ";

/** @typedef {{ type: string, [field: string]: any }} Message */
/** @typedef {{ resolve: (value: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout }} Question */

export class Link {
  /** @param {import('node:net').Socket} socket */
  constructor(socket) {
    this.socket = socket.setEncoding('utf8');
    /** @type {Map<number, Question>} by id */
    this.questions = new Map();
    this.lastId = 0;
    socket.on('error', () => {}); // 'close' follows
    socket.on('close', () => this.failAll());
  }

  get isOpen() {
    return !this.socket.destroyed && this.socket.writable;
  }

  /** Bytes that the other side has not read yet. */
  get waitingBytes() {
    return this.socket.writableLength;
  }

  /** @param {Message} message lost if the other side is gone */
  send(message) {
    if (this.isOpen) this.socket.write(`${JSON.stringify(message)}\n`);
  }

  /**
   * @param {string} step @param {Record<string, unknown>} fields @param {number} deadlineMs
   * @returns {Promise<any>} the answer
   * @throws {HoldfastError} HANDOVER if there is none in time, or it is a problem
   */
  ask(step, fields, deadlineMs) {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      const late = () =>
        this.settle({ type: 'handedOver', id, problem: `no answer within ${deadlineMs} ms` });
      this.questions.set(id, {
        resolve,
        reject: (error) => reject(failed(`at '${step}', ${error.message.replace(PREFIX, '')}`)),
        timer: setTimeout(late, deadlineMs),
      });
      if (!this.isOpen) return this.failAll();
      this.send({ type: 'handover', id, step, ...fields });
    });
  }

  /** @param {Message} answer */
  settle({ id, value, problem }) {
    const question = this.questions.get(id);
    if (!question) return;
    this.questions.delete(id);
    clearTimeout(question.timer);
    if (problem === undefined) question.resolve(value);
    else question.reject(new Error(problem));
  }

  failAll() {
    for (const id of this.questions.keys())
      this.settle({
        type: 'handedOver',
        id,
        problem: 'the other process has ended, or closed the connection',
      });
  }

  /**
   * What the other side says, until it leaves; answers go to who asked. The next message is read when the one before was handled.
   * @returns {AsyncGenerator<Message>}
   */
  async *messages() {
    try {
      for await (const line of this.lines()) {
        const message = parsed(line);
        if (message === null) return;
        if (message.type === 'handedOver') this.settle(message);
        else yield message;
      }
    } finally {
      this.close();
    }
  }

  /** @returns {AsyncGenerator<string>} */
  async *lines() {
    /** @type {string[]} */
    let parts = [];
    try {
      for await (const chunk of this.socket) {
        const [first, ...others] = String(chunk).split('\n');
        parts.push(first);
        for (const next of others) {
          yield parts.join('');
          parts = [next];
        }
      }
    } catch {
      // The connection broke: as if it was closed.
    }
  }

  /** What was sent before still arrives. */
  end() {
    this.socket.end();
  }

  close() {
    this.socket.destroy();
  }

  /** From now on, it does not keep the process alive. */
  unref() {
    this.socket.unref();
  }
}

/** @param {string} line @returns {Message | null} null if it is none */
function parsed(line) {
  try {
    const message = JSON.parse(line);
    return typeof message?.type === 'string' ? message : null;
  } catch {
    return null;
  }
}

/** @param {string} why @returns {HoldfastError} */
export function failed(why) {
  return new HoldfastError('HANDOVER', `${PREFIX}${why}`);
}
