/*
 * Streams held in JS: all of them without the native core, and with it those that it can't adopt. The states of a stream:
 *
 *     held --close(reason)--> ending --everything written was sent--> gone
 *        \---destroy(reason)-------------------------------------------^
 */
import { Backlogs } from './backlogs.js';
import { Channels } from './channels.js';
import { Encoded } from './encodings.js';
import { closeEvenly, closeInTurns } from './evenly.js';
import { LabelTable } from './labels.js';
import { Openings } from './openings.js';
import { Pinger } from './pinger.js';
import { Pings } from './pings.js';
import { Poll, Polls } from './poll.js';

/** Ids of streams held in JS have a shard number (the top 8 of 53 bits) that no native shard has. */
const FIRST_ID = 255 * 2 ** 45;

/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./heldstream.js').HeldStream} HeldStream */

/** @param {number} id of a stream @returns {boolean} whether that stream is held in JS */
export function isInJs(id) {
  return id >= FIRST_ID;
}

export class Streams {
  /**
   * @param {Pick<import('./options.js').Settings, 'ping' | 'pingIntervalMs' | 'idlePings' | 'maxBacklogBytes' | 'maxMessageBytes' | 'takesMessages'>} settings
   * @param {{ capacity: number, maxChannelBytes: number }} limits
   * @param {import('./tally.js').Tally} tally updated here
   * @param {{ onClose: (id: number, reason: CloseReason) => void, onMessage: (id: number, data: string) => void }} listener
   */
  constructor(settings, { capacity, maxChannelBytes }, tally, { onClose, onMessage }) {
    const { ping, pingIntervalMs, idlePings, maxBacklogBytes, maxMessageBytes, takesMessages } = settings;
    this.capacity = capacity;
    this.tally = tally;
    this.onClose = onClose;
    this.onMessage = onMessage;
    this.idlePings = idlePings;
    /** Whether clients of WebSockets may say something. */
    this.takesMessages = takesMessages;
    this.openings = new Openings(this, maxMessageBytes);
    this.polls = new Polls((poll) => this.close(poll, 'answered'));
    this.pings = new Pings(ping);
    /** @type {Map<number, HeldStream>} held and ending streams */
    this.byId = new Map();
    /** @type {Channels<HeldStream>} */
    this.channels = new Channels(maxChannelBytes);
    /** @type {Pinger<HeldStream>} */
    this.pinger = new Pinger(pingIntervalMs, (stream, lateMs) => this.ping(stream, lateMs));
    /** @type {Backlogs<HeldStream>} */
    this.backlogs = new Backlogs(maxBacklogBytes);
    /** @type {LabelTable<HeldStream>} */
    this.labels = new LabelTable((streams) => this.closeAll(streams, 'expired'));
    this.lastId = FIRST_ID - 1;
    this.isDraining = false;
    this.onEmpty = () => {};
  }

  /** @returns {number} an id for a request that may become a stream */
  nextId() {
    return ++this.lastId;
  }

  get isFull() {
    return this.isDraining || this.byId.size >= this.capacity;
  }

  /** @param {HeldStream} stream on a connection that somebody else has accepted */
  markAdopted(stream) {
    stream.isAdopted = true;
    this.tally.counts.connections++;
  }

  /**
   * Counts and reports a stream that has ended before it could be held.
   * @param {CloseReason} reason
   * @returns {number} its id; the application gets it before `onClose` is called
   */
  miss(reason) {
    const id = this.nextId();
    this.tally.counts.opened++;
    this.tally.closed[reason]++;
    setImmediate(this.onClose, id, reason);
    return id;
  }

  /** @param {HeldStream} stream @param {readonly string[]} channels @param {import('./labels.js').Labels} [labels] */
  add(stream, channels, labels) {
    stream.owner = this;
    stream.watch();
    this.byId.set(stream.id, stream);
    for (const channel of channels) this.channels.subscribe(stream, channel);
    if (labels) this.labels.set(stream, labels);
    if (stream instanceof Poll) this.polls.add(stream);
    else this.pinger.add(stream);
    this.tally.counts.streams++;
    if (stream.isOfUpdates) this.tally.counts.updates++;
    this.tally.counts.inJs++;
    this.tally.counts.opened++;
  }

  /** @param {HeldStream} stream @param {number} lateMs */
  ping(stream, lateMs) {
    const { wasTold } = stream;
    stream.wasTold = false;
    if ((this.idlePings && wasTold && !stream.needsPings) || !this.mayWrite(stream)) return;
    const bytes = stream.ping(this.pings.of(stream));
    if (bytes < 0) return this.destroy(stream, 'dead-peer');
    this.noteWrite(stream, bytes);
    this.tally.counts.pings++;
    this.tally.histograms.lateness.record(lateMs * 1000);
  }

  /**
   * @param {readonly string[]} channels @param {import('./encodings.js').Message | null} message null only moves the cursor
   * @param {string} [cursor]
   * @returns {number} the streams it was for
   */
  publish(channels, message, cursor) {
    if (cursor !== undefined) this.pings.moveTo(cursor);
    if (!message || this.channels.isEmpty) return 0;
    const encoded = new Encoded(message);
    let listeners = 0;
    for (const stream of this.channels.ofAny(channels)) {
      this.deliver(stream, encoded);
      listeners++;
    }
    return listeners;
  }

  /** @param {number} id @param {import('./encodings.js').Message} message */
  send(id, message) {
    const stream = this.find(id);
    if (stream) this.deliver(stream, new Encoded(message));
  }

  /** @param {number} id @param {import('./policy.js').Bytes} payload a replay, for example: it never makes the stream slow */
  writeTo(id, payload) {
    const stream = this.find(id);
    const bytes = Buffer.from(/** @type {Uint8Array} */ (payload));
    if (!stream || !this.mayWrite(stream)) return;
    this.noteWrite(stream, stream.write(bytes));
    this.backlogs.noteExemptWrite(stream, bytes.length);
  }

  /** @param {number} id @param {string} payload */
  reply(id, payload) {
    const stream = this.find(id);
    if (stream && this.mayWrite(stream)) this.noteWrite(stream, stream.write(Buffer.from(payload)));
  }

  /** @param {number} id @param {import('./labels.js').Labels} labels */
  label(id, labels) {
    const stream = this.find(id);
    if (stream) this.labels.set(stream, labels);
  }

  /** @param {string} channel @param {CloseReason} reason */
  endChannel(channel, reason) {
    this.closeAll([...this.channels.of(channel)], reason);
  }

  /** @param {import('../native/protocol.js').Label} kind @param {number} label @param {CloseReason} reason */
  endLabelled(kind, label, reason) {
    this.closeAll(this.labels.with(kind, label), reason);
  }

  /** They are released at once, so that they get nothing more. @param {CloseReason} reason */
  endUpdates(reason) {
    const isOpen = (/** @type {HeldStream} */ { isOfUpdates, reason: ended }) => isOfUpdates && !ended;
    const open = [...this.byId.values()].filter(isOpen);
    for (const stream of open) {
      if (stream instanceof Poll) this.close(stream, reason);
      else this.release(stream, reason);
    }
    const streams = open.filter((stream) => !(stream instanceof Poll));
    closeInTurns(streams, (stream) => {
      if (this.byId.has(stream.id)) stream.end();
    });
  }

  /** @param {readonly HeldStream[]} streams @param {CloseReason} reason */
  closeAll(streams, reason) {
    closeInTurns(streams, (stream) => this.close(stream, reason));
  }

  /** @param {HeldStream} stream @param {Encoded} message */
  deliver(stream, message) {
    if (!this.mayWrite(stream)) return;
    stream.wasTold = true;
    this.noteWrite(stream, stream.deliver(message));
    this.tally.counts.deliveries++;
  }

  /** @param {number} id @param {string} channel */
  subscribe(id, channel) {
    const stream = this.find(id);
    if (!stream || stream.channels.has(channel)) return;
    if (this.channels.hasRoomFor([channel])) this.channels.subscribe(stream, channel);
    else this.close(stream, 'over-capacity');
  }

  /** @param {number} id @param {string} channel */
  unsubscribe(id, channel) {
    const stream = this.find(id);
    if (stream) this.channels.unsubscribe(stream, channel);
  }

  /** Ends one stream gently. @param {number} id */
  end(id) {
    const stream = this.find(id);
    if (stream) this.close(stream, 'drain');
  }

  /** @param {number} id @returns {HeldStream | undefined} undefined if it is ending or gone */
  find(id) {
    const stream = this.byId.get(id);
    return stream?.reason === null ? stream : undefined;
  }

  /** @param {HeldStream} stream @returns {boolean} false if it has ended, or ends now because the client is too slow */
  mayWrite(stream) {
    if (stream.isEnded) {
      this.close(stream, 'drain');
      return false;
    }
    if (this.backlogs.isSlow(stream)) {
      this.destroy(stream, 'slow');
      return false;
    }
    return true;
  }

  /** @param {HeldStream} stream @param {number} bytes on the wire */
  noteWrite(stream, bytes) {
    this.tally.counts.bytesWritten += bytes;
    this.backlogs.noteWrite(stream);
  }

  /** @returns {number} bytes waiting in all streams */
  backlogBytes() {
    return this.backlogs.totalBytes();
  }

  /**
   * Ends a stream gently: everything written is still sent. Does nothing if it is ending already.
   * @param {HeldStream} stream @param {CloseReason} reason
   */
  close(stream, reason) {
    if (stream.reason) return;
    if (stream instanceof Poll) return this.answer(stream, stream.messages.length > 0 ? 'answered' : reason);
    this.release(stream, reason);
    stream.end();
  }

  /** @param {Poll} poll @param {CloseReason} reason */
  answer(poll, reason) {
    const cursor = this.pings.cursorOf(poll);
    this.release(poll, reason);
    this.tally.counts.bytesWritten += poll.answer(cursor, reason === 'answered' && !this.isDraining);
  }

  /** Ends a stream at once. @param {HeldStream} stream @param {CloseReason} reason */
  destroy(stream, reason) {
    if (!stream.reason) this.release(stream, reason);
    stream.destroy();
  }

  /** @param {HeldStream} stream @param {CloseReason} reason */
  release(stream, reason) {
    stream.reason = reason;
    if (stream instanceof Poll) this.polls.delete(stream);
    else this.pinger.remove(stream);
    this.channels.leave(stream);
    this.labels.delete(stream);
  }

  /** @param {HeldStream} stream that is gone @param {CloseReason} reason used if it has none yet */
  forget(stream, reason) {
    if (!this.byId.delete(stream.id)) return;
    if (!stream.reason) this.release(stream, reason);
    this.backlogs.delete(stream);
    this.tally.counts.streams--;
    if (stream.isOfUpdates) this.tally.counts.updates--;
    this.tally.counts.inJs--;
    if (stream.isAdopted) this.tally.counts.connections--;
    this.tally.closed[stream.reason ?? reason]++;
    this.onClose(stream.id, stream.reason ?? reason);
    if (this.byId.size === 0) this.onEmpty();
  }

  /**
   * Accepts no more streams, and closes the existing ones evenly over the period.
   * @param {number} periodMs
   * @returns {Promise<void>} resolves when the last one is gone
   */
  async drain(periodMs) {
    this.isDraining = true;
    const streams = [...this.byId.values()];
    if (streams.length === 0) return;
    const gone = new Promise((resolve) => {
      this.onEmpty = () => resolve(undefined);
    });
    const stop = closeEvenly(
      streams,
      periodMs,
      (stream) => this.close(stream, 'drain'),
      (stream) => this.destroy(stream, 'drain'),
    );
    await gone;
    stop();
  }
}
