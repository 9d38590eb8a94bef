/*
 * Dials with plain Node.js sockets, where the native core isn't available. A stream costs several KB here.
 */
import { createConnection } from 'node:net';
import { descriptorLimit, OWN_DESCRIPTORS } from '../../lib/descriptors.js';
import { causeOf, noCauses } from './causes.js';
import { COUNTS } from './counters.js';
import { emptyHistograms, MEASURES } from './histograms.js';
import { formats, tls, topics } from './optional.js';
import { NO_SUBSCRIBERS, pairOf, Stream } from './stream.js';

const MOST_SAMPLES = 8;
/** How often openings that take too long are looked for. */
const SWEEP_MS = 100;

const kStream = Symbol('stream');

/** @typedef {import('./dial.js').Target} Target */
/** @typedef {import('./causes.js').Cause} Cause */
/** @typedef {import('node:net').Socket & { [kStream]: Stream }} StreamSocket */

/** @returns {import('./dial.js').Dialer} */
export function create() {
  return new PlainDialer();
}

export class PlainDialer {
  /** @type {'plain'} */
  name = 'plain';
  most = descriptorLimit() - OWN_DESCRIPTORS;

  constructor() {
    /** @type {Target | null} */
    this.target = null;
    this.turn = 0;
    /** @type {Set<StreamSocket>} */
    this.dialling = new Set();
    /** @type {Set<StreamSocket>} */
    this.streams = new Set();
    this.counts = /** @type {import('./topics/subscriber.js').Counts} */ (
      Object.fromEntries(COUNTS.flatMap(({ name, kind }) => (kind === 'counter' ? [[name, 0]] : [])))
    );
    this.subscribers = topics ? new topics.Subscribers() : NO_SUBSCRIBERS;
    this.visits = this.subscribers.visits;
    this.failed = noCauses();
    this.lost = noCauses();
    /** @type {{ cause: Cause, text: string }[]} */
    this.samples = [];
    this.histograms = emptyHistograms();
    this.sweeper = setInterval(() => this.sweep(), SWEEP_MS).unref();
  }

  /** @param {Target} target */
  aim(target) {
    const before = this.target?.subscription;
    const isSame = before && JSON.stringify(before) === JSON.stringify(target.subscription);
    this.target = isSame ? { ...target, subscription: before } : target;
  }

  /** @param {number} from @param {string[]} tokens */
  setTokens(from, tokens) {
    this.subscribers.setTokens(from, tokens);
  }

  /** @param {number} count */
  open(count) {
    for (let i = 0; i < count; i++) this.dial();
  }

  dial() {
    const { target } = this;
    if (!target) return;
    const place = this.subscribers.take();
    const server = this.visits.next(target, place);
    const where = pairOf(target, server, this.turn++);
    const { security, servers } = target;
    const socket = security
      ? /** @type {NonNullable<typeof tls>} */ (tls).connectSecurely(this, where, servers[server], security)
      : createConnection(where);
    const stream = Object.assign(socket, { [kStream]: new Stream(this, target, place, server) });
    this.dialling.add(stream);
    socket.on('connect', onConnect);
    socket.on('data', onData);
    socket.on('error', onError);
    socket.on('close', onClose);
    const request = this.subscribers.requestFor(target, place);
    socket.write(formats?.begin(this, stream, stream[kStream], request) ?? request, 'latin1');
  }

  /** Ends openings that take too long. */
  sweep() {
    const nowMs = performance.now();
    for (const socket of this.dialling) {
      const { begunMs, target } = socket[kStream];
      if (nowMs - begunMs >= target.timeoutMs) this.end(socket, 'timeout');
    }
  }

  /** @param {number} count @param {boolean} [isCut] */
  close(count, isCut = false) {
    const last = [...this.streams].sort((one, other) => other[kStream].place - one[kStream].place);
    for (const socket of last.slice(0, count)) {
      const { place, target } = socket[kStream];
      if (isCut && !target.security) socket.resetAndDestroy(); // with TLS, Node can't
      this.closeStream(socket);
      if (!isCut) this.subscribers.forget(place);
    }
  }

  /** @param {number} count */
  churn(count) {
    const open = [...this.streams];
    for (let i = 0; i < count && open.length > 0 && this.target; i++) {
      const [socket] = open.splice(Math.floor(Math.random() * open.length), 1);
      this.counts.churned++;
      this.closeStream(socket);
      this.dial(); // in the place that was left last
    }
  }

  /** @param {StreamSocket} socket closed by us: neither failed nor lost */
  closeStream(socket) {
    const stream = socket[kStream];
    stream.hasEnded = true;
    if (stream.isOpen) {
      this.counts.closed++;
      this.visits.count(stream, 'closed');
    }
    this.free(socket);
  }

  /** A ping that is overdue counts as late. @param {StreamSocket} socket that has ended */
  free(socket) {
    const overdueMs = socket[kStream].pings.overdueMs(performance.now());
    if (overdueMs > 0) this.record('lateness', overdueMs);
    this.dialling.delete(socket);
    this.streams.delete(socket);
    this.subscribers.leave(socket[kStream].place);
    socket.destroy();
  }

  /** @param {import('./counters.js').Measure} name @param {number} ms */
  record(name, ms) {
    this.histograms[name].record(ms * 1000);
  }

  /** @returns {import('./dial.js').Counters} */
  take() {
    const nowMs = performance.now();
    let overdue = 0;
    for (const socket of this.streams) if (socket[kStream].pings.overdueMs(nowMs) > 0) overdue++;
    const taken = Object.fromEntries(MEASURES.map((name) => [name, this.histograms[name].take()]));
    return {
      .../** @type {import('./dial.js').Counters} */ (/** @type {unknown} */ (taken)),
      ...this.counts,
      inFlight: this.dialling.size,
      open: this.streams.size,
      overdue,
      failed: { ...this.failed },
      lost: { ...this.lost },
      servers: this.visits.counts(this.target),
      samples: this.samples.splice(0),
    };
  }

  async stop() {
    clearInterval(this.sweeper);
    this.target = null;
    for (const socket of [...this.dialling, ...this.streams]) this.closeStream(socket);
  }

  /** @param {StreamSocket} socket @param {import('./answer.js').Event} event */
  note(socket, event) {
    const stream = socket[kStream];
    if (event.what === 'open') this.welcome(socket, stream);
    else if (event.what === 'ping') this.notePing(stream);
    else if (event.what === 'message') this.noteMessage(stream, event.sentUs);
    else if (event.what === 'gap') this.subscribers.at(stream.place)?.expectGap(this.counts);
    else if (event.what === 'block') this.noteBlock(stream, event.block);
    else if (event.what === 'end') this.end(socket, 'closed');
    else if (event.what === 'wrong') this.end(socket, event.cause, event.sample);
    else formats?.note(this, socket, stream, event);
  }

  /** @param {StreamSocket} socket @param {Stream} stream */
  welcome(socket, stream) {
    stream.isOpen = true;
    this.subscribers.at(stream.place)?.welcome(this.counts);
    stream.pings.begin(performance.now());
    this.dialling.delete(socket);
    this.streams.add(socket);
    this.counts.opened++;
    if (this.visits.count(stream, 'opened')) this.counts.moved++;
  }

  /** @param {Stream} stream */
  notePing({ pings }) {
    this.counts.pings++;
    for (const lateMs of pings.note(performance.now())) this.record('lateness', lateMs);
  }

  /** @param {Stream} stream @param {number | null} sentUs */
  noteMessage(stream, sentUs) {
    this.countMessage(stream);
    if (sentUs === null) return;
    this.record('delivery', performance.timeOrigin + performance.now() - sentUs / 1000);
  }

  /** @param {Stream} stream @param {import('./topics/block.js').Block} block */
  noteBlock(stream, block) {
    if (block.data !== null) this.countMessage(stream);
    const ageMs = this.subscribers.at(stream.place)?.note(block, this.counts);
    if (typeof ageMs === 'number') this.record('delivery', ageMs);
  }

  /** @param {Stream} stream */
  countMessage(stream) {
    this.counts.messages++;
    for (const lateMs of formats?.noteMessage(stream) ?? []) this.record('lateness', lateMs);
  }

  /** The stream ended, and not by us. @param {StreamSocket} socket @param {Cause} cause @param {string} [sample] */
  end(socket, cause, sample = '') {
    const stream = socket[kStream];
    if (stream.hasEnded) return;
    stream.hasEnded = true;
    if (sample && this.samples.length < MOST_SAMPLES) this.samples.push({ cause, text: sample });
    const what = stream.isOpen ? 'lost' : 'failed';
    this[what][cause]++;
    this.visits.count(stream, what);
    this.free(socket);
  }
}

/** @this {StreamSocket} */
function onConnect() {
  const { dialer, begunMs } = this[kStream];
  dialer.record('connect', performance.now() - begunMs);
}

/** @this {StreamSocket} @param {Buffer} data */
function onData(data) {
  const stream = this[kStream];
  const { dialer, begunMs, answer } = stream;
  dialer.counts.bytes += data.length;
  if (!stream.hasFirstByte) {
    stream.hasFirstByte = true;
    dialer.record('firstByte', performance.now() - begunMs);
  }
  for (const event of answer.read(data.toString('latin1'))) {
    if (!stream.hasEnded) dialer.note(this, event);
  }
}

/** @this {StreamSocket} @param {NodeJS.ErrnoException} error */
function onError(error) {
  this[kStream].cause = (tls?.causeOf ?? causeOf)(error.code ?? '');
}

/** @this {StreamSocket} */
function onClose() {
  const stream = this[kStream];
  stream.dialer.end(this, stream.cause);
}
