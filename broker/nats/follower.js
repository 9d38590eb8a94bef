/*
 * Follows the stream with one consumer at a time: messages in the order of the stream, each once, none missing. It is a push
 * consumer, because nothing has to be asked for then, and its flow control slows the server down if this node is slow.
 *
 * Whenever that can't be trusted any more (a message is missing, nothing was heard, the connection was lost), it ends. The
 * caller looks at the stream again before it starts another one: the stream may be another by then.
 */
import { AckPolicy, DeliverPolicy, ReplayPolicy } from '@nats-io/jetstream';
import { createInbox } from '@nats-io/transport-node';
import { endOfTurn } from '../parts.js';

const NS = 1_000_000;
/** How often the server says that nothing has happened, and how long it may be silent. */
const HEARTBEAT_MS = 500;
const SILENCE_MS = 2500;
/** How long a consumer without a node is kept. */
const INACTIVE_MS = 10_000;
const STATUS_PATTERN = /^\$JS\.ACK\./;

/** @typedef {import('@nats-io/transport-node').Msg} Msg */
/** @typedef {{ sequence: number, data: Uint8Array }} Message */

export class Follower {
  /**
   * @param {object} options
   * @param {import('@nats-io/transport-node').NatsConnection} options.nc
   * @param {import('@nats-io/jetstream').JetStreamManager} options.manager
   * @param {string} options.stream its name
   * @param {(messages: Message[]) => Promise<void>} options.onMessages the next ones. While it is pending, the others wait
   */
  constructor({ nc, manager, stream, onMessages }) {
    this.nc = nc;
    this.manager = manager;
    this.stream = stream;
    this.onMessages = onMessages;
    /** @type {Msg[]} */
    this.waiting = [];
    /** @type {Promise<void> | null} until everything that has come is passed on */
    this.working = null;
    /** Messages that were received. */
    this.received = 0;
    this.heardMs = 0;
    this.end = (/** @type {string} */ _reason) => {};
  }

  /**
   * @param {number} after a sequence
   * @param {() => void} onStart called when messages are about to come
   * @returns {Promise<string>} why it has ended. Nothing is passed on after that
   */
  async follow(after, onStart) {
    const { nc } = this;
    const inbox = createInbox();
    const ended = new Promise((resolve) => {
      this.end = resolve;
    });
    this.waiting = [];
    this.received = 0;
    this.heardMs = performance.now();
    const subscription = nc.subscribe(inbox, {
      callback: (error, message) => (error ? this.end(error.message) : this.take(message)),
    });
    const timer = setInterval(() => this.checkSilence(), HEARTBEAT_MS);
    let name = '';
    try {
      ({ name } = await this.manager.consumers.add(this.stream, configOf(inbox, after)));
      onStart();
      return await ended;
    } finally {
      clearInterval(timer);
      subscription.unsubscribe();
      this.end = () => {};
      this.waiting = [];
      await this.working;
      if (name) this.manager.consumers.delete(this.stream, name).catch(() => {}); // the server does it later
    }
  }

  /** Whether everything that has come is passed on. */
  get isIdle() {
    return this.working === null;
  }

  checkSilence() {
    if (performance.now() - this.heardMs > SILENCE_MS) this.end(`nothing was heard for ${SILENCE_MS} ms`);
  }

  /** @param {Msg} message */
  take(message) {
    this.heardMs = performance.now();
    if (isStatus(message)) this.compare(message);
    else if (infoIn(message).delivery !== ++this.received) return this.end('a message is missing');
    this.waiting.push(message);
    this.working ??= this.work();
  }

  /** A heartbeat says how many messages were sent. @param {Msg} message */
  compare({ headers }) {
    const sent = headers?.get('Nats-Last-Consumer');
    if (sent && Number(sent) > this.received) this.end('a message is missing');
  }

  /** Passes on what has come, until nothing is left. */
  async work() {
    try {
      await endOfTurn();
      while (this.waiting.length > 0) {
        const messages = this.waiting;
        this.waiting = [];
        const data = messages.filter((message) => !isStatus(message));
        if (data.length > 0) await this.onMessages(data.map(messageOf));
        for (const message of messages) this.continue(message);
      }
    } catch (error) {
      this.end(String(error));
    } finally {
      this.working = null;
    }
  }

  /** The server may send more, if it has asked that. @param {Msg} message */
  continue(message) {
    if (!isStatus(message)) return;
    const subject = message.reply || message.headers?.get('Nats-Consumer-Stalled');
    if (subject) this.nc.publish(subject);
  }
}

/** @param {string} inbox @param {number} after */
function configOf(inbox, after) {
  return {
    deliver_subject: inbox,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: after + 1,
    ack_policy: AckPolicy.None,
    replay_policy: ReplayPolicy.Instant,
    flow_control: true,
    idle_heartbeat: HEARTBEAT_MS * NS,
    inactive_threshold: INACTIVE_MS * NS,
    mem_storage: true,
    num_replicas: 1,
    max_deliver: 1,
  };
}

/** @param {Msg} message @returns {boolean} whether it is a heartbeat or about flow control */
function isStatus({ reply = '' }) {
  return !STATUS_PATTERN.test(reply);
}

/** @param {Msg} message @returns {Message} */
function messageOf(message) {
  return { sequence: infoIn(message).sequence, data: message.data };
}

/**
 * ADR-15 of NATS: the reply is $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<delivery>.<time>.<pending>, and newer servers
 * have <domain>.<account> before the stream.
 * @param {Msg} message
 * @returns {{ sequence: number, delivery: number }} `delivery` counts the messages of the consumer from 1
 */
function infoIn({ reply = '' }) {
  const tokens = reply.split('.');
  const at = tokens.length > 9 ? 7 : 5;
  return { sequence: Number(tokens[at]), delivery: Number(tokens[at + 1]) };
}
