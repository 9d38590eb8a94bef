/*
 * What everything that is held in JS has: responses that don't end (stream.js), polls (poll.js) and WebSockets (websocket.js).
 */
import { FORMATS, isOfUpdates } from '../native/protocol.js';
import { NONE } from './channels.js';

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */

/** @abstract */
export class HeldStream {
  /** @param {number} id @param {Format} format */
  constructor(id, format) {
    this.id = id;
    this.encoding = FORMATS[format].encoding;
    this.isOfUpdates = isOfUpdates(format);
    /** @type {Set<string>} */
    this.channels = NONE;
    /** Told what happens to it, once it is held. @type {import('./streams.js').Streams | null} */
    this.owner = null;
    /** Its connection was not accepted by our own server (door.js). */
    this.isAdopted = false;
    /** Its place in the ping wheel. */
    this.slot = -1;
    this.place = 0;
    /** It has got a message since its last ping was due. */
    this.wasTold = false;
    /** For measuring backlogs (backlogs.js). */
    this.isWritten = false;
    this.isBehind = false;
    /** @type {CloseReason | null} null until it ends */
    this.reason = null;
  }

  /** @returns {number} bytes that the connection has not taken */
  get backlogBytes() {
    return 0;
  }

  /** The application has ended it by itself: writing to it now would be an error. */
  get isEnded() {
    return false;
  }

  /** Whether a message can't take the place of a ping. */
  get needsPings() {
    return false;
  }

  /** Has `owner` told when it is gone. */
  watch() {}

  /** @param {Buffer} _payload as it is @returns {number} bytes on the wire */
  write(_payload) {
    return 0;
  }

  /** @param {import('./encodings.js').Encoded} message @returns {number} bytes on the wire */
  deliver(message) {
    return this.write(message.in(this.encoding));
  }

  /** @param {Buffer} payload of its encoding @returns {number} bytes on the wire; -1 if nobody is there */
  ping(payload) {
    return this.write(payload);
  }

  /** Ends it once everything written has been sent. */
  end() {}

  /** Ends it at once. */
  destroy() {}
}
