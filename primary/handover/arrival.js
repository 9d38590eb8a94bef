/*
 * The new server of a takeover. It is fed by the old one, as a worker is by its primary, until it has everything.
 *
 *     connect --accepted--> workers start --ready--> rounds --moved--> serving --drained--> the broker moves --> done
 */
import { RemoteBroker } from '../../broker/remote.js';
import { dispatch } from '../../lib/dispatch.js';
import { codeOf, HoldfastError, messageOf } from '../../lib/errors.js';
import { failAt } from '../../lib/failat.js';
import { connectTo } from './control.js';
import { PROTOCOL, Turns } from './protocol.js';

/** How long the old server may take to answer a question about publications. */
const ANSWER_MS = 4000;
/** The old server drains, and closes its store: it may be silent for longer. */
const DRAIN_SILENT_MS = 30_000;

/** @typedef {import('./lines.js').Lines} Lines */
/** @typedef {import('./newside.js').NewSide} NewSide */
/** @typedef {import('./protocol.js').Accepted} Accepted */
/** @typedef {import('./protocol.js').Moved} Moved */
/** @typedef {import('./protocol.js').Question} Question */
/** @typedef {import('./protocol.js').TakeOver} TakeOver */
/** @typedef {import('./protocol.js').ToNew} ToNew */
/** @typedef {import('../workers.js').Workers} Workers */

export class Arrival {
  /** @param {Lines} lines @param {number} maxQueueBytes */
  constructor(lines, maxQueueBytes) {
    this.lines = lines;
    this.maxQueueBytes = maxQueueBytes;
    this.turns = new Turns(lines);
    /** @type {RemoteBroker | null} */
    this.broker = null;
    /** @type {Workers | null} */
    this.workers = null;
    /** @type {NewSide | null} */
    this.side = null;
    this.isOver = false;
    this.onLost = (/** @type {HoldfastError} */ _error) => {};
    lines.onMessage = (message) => dispatch(this.handlers, /** @type {ToNew} */ (message));
    lines.onClose = () => this.lost();
  }

  /**
   * @param {string} path @param {Omit<TakeOver, 'type' | 'protocol' | 'pid'>} request @param {number} maxQueueBytes
   * @returns {Promise<{ arrival: Arrival, accepted: Accepted, broker: RemoteBroker }>}
   * @throws {HoldfastError} CONTROL: nobody answers; HANDOVER: why it was refused
   */
  static async open(path, request, maxQueueBytes) {
    const arrival = new Arrival(await connectTo(path), maxQueueBytes);
    const { lines } = arrival;
    lines.send({ type: 'takeOver', protocol: PROTOCOL, pid: process.pid, ...request });
    const accepted = /** @type {Accepted} */ (await arrival.turns.until('accepted'));
    failAt('accepted');
    if (!arrival.broker) throw new HoldfastError('HANDOVER', 'the old server has no broker');
    return { arrival, accepted, broker: arrival.broker };
  }

  get handlers() {
    const { turns, lines } = this;
    const came = (/** @type {import('./lines.js').Message} */ message) => turns.came(message);
    return {
      /** @param {{ problem: string }} message */
      refused: ({ problem }) => turns.fail(`not taken over: ${problem}`),
      /** The feed comes right after it. @param {Accepted} message */
      accepted: (message) => {
        this.broker = new RemoteBroker({
          place: message.place,
          send: (line) => lines.send(line),
          maxQueueBytes: this.maxQueueBytes,
          answerMs: ANSWER_MS,
        });
        came(message);
      },
      alive: () => {},
      /** @param {import('../../broker/messages.js').Feed} message */
      feed: (message) => this.broker?.feed(message),
      /** @param {import('../../broker/messages.js').Answer} message */
      answer: (message) => this.broker?.answer(message),
      /** @param {import('../../broker/messages.js').Reset} message */
      reset: (message) => this.broker?.reset(message),
      /** @param {import('../messages.js').Publish} message */
      publish: (message) => void this.publish(message),
      /** @param {import('../messages.js').Revoke} message */
      revoke: (message) => void this.revoke(message),
      /** @param {Question} message */
      handover: (message) => void this.step(message),
      moved: came,
      drained: came,
      closed: came,
    };
  }

  /** @param {import('../messages.js').Publish} message */
  async publish({ id, channel, message }) {
    const outcome = await this.workers?.publish(channel, message).then(
      ({ listeners }) => ({ listeners }),
      (error) => problemOf(error),
    );
    this.lines.send({ type: 'published', id, ...outcome });
  }

  /** @param {import('../messages.js').Revoke} message */
  async revoke({ id, list }) {
    await this.workers?.revocations.revoke(list);
    this.lines.send({ type: 'revoked', id });
  }

  /** @param {Question} question */
  async step(question) {
    const { id } = question;
    try {
      const value = await this.take(question);
      this.lines.send({ type: 'handedOver', id, value });
    } catch (error) {
      this.lines.send({ type: 'handedOver', id, problem: messageOf(error) });
    }
  }

  /** @param {Question} question @returns {Promise<unknown>} its answer */
  async take({ step, links = [], notes = [], presence = [] }) {
    const { side } = this;
    if (!side) throw new HoldfastError('HANDOVER', 'the new server is not ready');
    if (step === 'connect') return side.connect(links);
    if (step === 'sync') return side.sync().then(() => failAt('synced'));
    if (step === 'learn') return side.learn(notes);
    if (step === 'drop') return side.drop();
    if (step !== 'go') throw new HoldfastError('HANDOVER', `unknown step ${step}`);
    if (this.workers) this.workers.isArriving = false; // one that dies now is replaced
    const streams = await side.go(presence);
    failAt('gone');
    return streams;
  }

  /**
   * The workers have started: the streams can come.
   * @param {Workers} workers @param {NewSide} side
   * @returns {Promise<Moved>} when all have come
   * @throws {HoldfastError} HANDOVER
   */
  async receive(workers, side) {
    this.workers = workers;
    this.side = side;
    failAt('ready');
    this.lines.send({ type: 'ready' });
    const moved = await this.turns.until('moved');
    failAt('moved');
    return moved;
  }

  /**
   * This server has everything that people can see.
   * @returns {Promise<import('../../lib/counts.js').Counts>} of the old one, when it has ended its last streams
   */
  async serve() {
    failAt('serving');
    this.lines.send({ type: 'serving' });
    const { counts } = await this.turns.until('drained', DRAIN_SILENT_MS);
    failAt('drained');
    return counts;
  }

  /** @returns {Promise<import('../hub.js').NodeState | null>} what its node on NATS was, when others can open the store of the old server */
  async closeOther() {
    this.lines.send({ type: 'close' });
    const { node } = await this.turns.until('closed', DRAIN_SILENT_MS);
    return node;
  }

  /** The old server is no longer needed. */
  finish() {
    failAt('switched');
    this.isOver = true;
    this.turns.stop();
    this.lines.send({ type: 'done' });
    this.lines.end();
  }

  lost() {
    if (this.isOver) return;
    const { problem } = this.lines;
    const what = problem ? `said what can't be understood (${problem})` : 'has ended';
    const line = `the old server ${what} before this one had taken over`;
    this.turns.fail(line);
    this.onLost(new HoldfastError('HANDOVER', line));
  }
}

/** @param {unknown} error of a publication */
function problemOf(error) {
  const code = codeOf(error);
  if (code === 'BUSY') return { busy: true };
  return code === 'BAD_ARGUMENT' ? { problem: messageOf(error) } : {};
}
