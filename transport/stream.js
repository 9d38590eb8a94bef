/*
 * One stream held in JS: a response of node:http, node:https or HTTP/2 that does not end.
 */
import { framedBytes } from './encodings.js';
import { reasonOfEnd } from './failures.js';
import { HeldStream } from './heldstream.js';

const kStream = Symbol('stream');

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('./adopt.js').HandledSocket} HandledSocket */
/** Our mark on a response, instead of a closure for each. @typedef {import('./adopt.js').HandledResponse & { [kStream]?: HeldStream }} HandledResponse */

/** A response whose writes go straight to its connection. */
export class Stream extends HeldStream {
  /**
   * @param {number} id
   * @param {import('node:http').ServerResponse} response
   * @param {Format} format
   */
  constructor(id, response, format) {
    super(id, format);
    this.response = /** @type {HandledResponse} */ (response);
  }

  get backlogBytes() {
    return this.response.writableLength;
  }

  get isEnded() {
    return this.response.writableEnded;
  }

  watch() {
    watchResponse(this, this.response);
  }

  /** @param {Buffer} payload @returns {number} bytes on the wire */
  write(payload) {
    if (payload.length === 0) return 0;
    this.response.write(payload);
    return framedBytes(payload.length, this.response.chunkedEncoding);
  }

  end() {
    closeAfter(this.response);
    this.response.end();
  }

  destroy() {
    this.response.destroy();
  }
}

/** Has the owner of a stream told when its response is gone. @param {HeldStream} stream @param {HandledResponse} response */
export function watchResponse(stream, response) {
  response[kStream] = stream;
  response.on('close', onResponseClose);
}

/** @this {HandledResponse} */
function onResponseClose() {
  const { [kStream]: stream } = this;
  if (stream) stream.owner?.forget(stream, reasonOfEnd(this));
}

/** @param {HandledResponse} response after which its connection is to end */
export function closeAfter(response) {
  response.once('finish', onFinish);
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
    if (payload.length === 0) return 0;
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
