/*
 * One stream held in JS: a response of node:http, node:https or HTTP/2 that does not end.
 */
import { FORMATS, isOfUpdates } from '../native/protocol.js';
import { framedBytes } from './encodings.js';

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./adopt.js').HandledResponse} HandledResponse */
/** @typedef {import('./adopt.js').HandledSocket} HandledSocket */

/** A response whose writes go straight to its connection. */
export class Stream {
  /**
   * @param {number} id
   * @param {import('node:http').ServerResponse} response
   * @param {Format} format
   * @param {Set<string>} channels
   */
  constructor(id, response, format, channels) {
    this.id = id;
    this.response = /** @type {HandledResponse} */ (response);
    this.encoding = FORMATS[format].encoding;
    this.isOfUpdates = isOfUpdates(format);
    this.channels = channels;
    /** Its connection was not accepted by our own server (door.js). */
    this.isAdopted = false;
    /** Its place in the ping wheel. */
    this.slot = -1;
    this.place = 0;
    /** For measuring backlogs (backlogs.js). */
    this.isWritten = false;
    this.isBehind = false;
    /** @type {CloseReason | null} null until it ends */
    this.reason = null;
  }

  /** @returns {number} bytes that the connection has not taken */
  get backlogBytes() {
    return this.response.writableLength;
  }

  /** The application has ended the response itself: writing to it now would be an error. */
  get isEnded() {
    return this.response.writableEnded;
  }

  /** @param {Buffer} payload @returns {number} bytes on the wire */
  write(payload) {
    this.response.write(payload);
    return framedBytes(payload.length, this.response.chunkedEncoding);
  }

  /** Ends it once everything written has been sent. */
  end() {
    this.response.once('finish', onFinish);
    this.response.end();
  }

  /** Ends it at once. */
  destroy() {
    this.response.destroy();
  }
}

/** Its connection ends with it, except on HTTP/2, where other streams share it. @this {HandledResponse} */
function onFinish() {
  if (!this.stream) /** @type {HandledSocket} */ (this.req.socket).destroySoon?.();
}

/** A response behind compression middleware, which buffers: it is flushed after each write. */
export class CompressedStream extends Stream {
  /** @param {ConstructorParameters<typeof Stream>} given */
  constructor(...given) {
    super(...given);
    /** Bytes written since the compressor last took everything. */
    this.waitingBytes = 0;
    // Not `once`: such middleware can't remove those listeners.
    this.response.on('drain', () => this.onDrain());
  }

  /** A busy compressor is not a backlog: a client is slow only if its connection has not taken everything. */
  get backlogBytes() {
    const { writableLength } = this.response;
    return writableLength === 0 ? 0 : writableLength + this.waitingBytes;
  }

  /** @param {Buffer} payload @returns {number} bytes before compression */
  write(payload) {
    const isTaken = this.response.write(payload);
    if (isTaken && this.waitingBytes === 0) this.response.flush?.();
    else this.waitingBytes += payload.length;
    return payload.length;
  }

  onDrain() {
    this.waitingBytes = 0;
    this.response.flush?.();
  }
}
