/*
 * One WebSocket held in JS, by the package ws. Heartbeats and close codes are those of the native core
 * (native/core/src/shard/websocket.rs).
 */
import { createRequire } from 'node:module';
import { reasonOfError } from './failures.js';
import { HeldStream } from './heldstream.js';

/** After so many heartbeats without a word, a client is asked whether it is there, and after as many again it is not. */
const MOST_BEATS = 4;
/** How long a client may take to close after we did. */
const CLOSE_MS = 1000;
/** What a client is told when its WebSocket ends, unless it is 1011 (RFC 6455, section 7.4.1). @type {Readonly<Partial<Record<CloseReason, number>>>} */
const CODES = {
  'client-gone': 1000,
  drain: 1001,
  'bad-request': 1002,
  slow: 1008,
  expired: 1008,
  revoked: 1008,
  restarted: 1012,
  'over-capacity': 1013,
};
const FAILED = 1011;
const UNSUPPORTED = 1003;
const LINE_END = 0x0a;
const HEAD_BYTES = 2;

const kStream = Symbol('stream');

/** @typedef {import('../native/protocol.js').Format} Format */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('node:http').IncomingMessage} IncomingMessage */
/**
 * A request with a valid handshake, its connection, and what the client has sent after it.
 * @typedef {{ request: IncomingMessage, socket: import('node:net').Socket, rest: Buffer }} Upgrade
 */
/** @typedef {import('ws').WebSocket & { [kStream]?: WebSocketStream }} MarkedSocket */

export class WebSocketStream extends HeldStream {
  /**
   * @param {number} id @param {MarkedSocket} socket @param {Format} format
   * @param {import('node:net').Socket} connection
   */
  constructor(id, socket, format, connection) {
    super(id, format);
    this.socket = socket;
    this.connection = connection;
    /** Heartbeats since the client has said anything. */
    this.beats = 0;
    this.bytesRead = connection.bytesRead;
  }

  get backlogBytes() {
    return this.socket.bufferedAmount;
  }

  watch() {
    this.socket[kStream] = this;
    this.socket.on('message', onMessage);
    this.socket.on('error', onError);
    this.socket.on('close', onClose);
  }

  /** Of JSON, each line is a message. @param {Buffer} payload @returns {number} bytes on the wire */
  write(payload) {
    if (payload.length === 0) return 0;
    if (this.encoding === 'text') return this.say(payload);
    let bytes = 0;
    for (const line of linesOf(payload)) bytes += this.say(line);
    return bytes;
  }

  /** @param {import('./encodings.js').Encoded} message */
  deliver(message) {
    const payload = message.in(this.encoding);
    return this.say(this.encoding === 'text' ? payload : payload.subarray(0, -1));
  }

  /** @param {Buffer} text @returns {number} bytes on the wire */
  say(text) {
    if (this.socket.readyState !== this.socket.OPEN) return 0;
    this.socket.send(text, { binary: false });
    return framedBytes(text.length);
  }

  /** They find dead peers. */
  get needsPings() {
    return true;
  }

  /** Most heartbeats are pongs that nobody answers: it costs less. @returns {number} bytes on the wire; -1 if nobody is there */
  ping() {
    if (this.socket.readyState !== this.socket.OPEN) return 0;
    const { bytesRead } = this.connection;
    this.beats = bytesRead === this.bytesRead ? this.beats + 1 : 1;
    this.bytesRead = bytesRead;
    if (this.beats >= 2 * MOST_BEATS) return -1;
    if (this.beats === MOST_BEATS) this.socket.ping('', false);
    else this.socket.pong('', false);
    return HEAD_BYTES;
  }

  end() {
    const reason = this.reason ?? 'drain';
    this.socket.close(CODES[reason] ?? FAILED, reason);
  }

  destroy() {
    this.socket.terminate();
  }
}

/** @param {Buffer} payload @returns {Buffer[]} the lines that are not empty, without their ends */
function linesOf(payload) {
  const lines = [];
  for (let begin = 0; begin < payload.length; ) {
    const end = payload.indexOf(LINE_END, begin);
    const until = end < 0 ? payload.length : end;
    if (until > begin) lines.push(payload.subarray(begin, until));
    begin = until + 1;
  }
  return lines;
}

/** @param {number} bytes of a message @returns {number} bytes of its frame */
function framedBytes(bytes) {
  if (bytes < 126) return bytes + 2;
  return bytes + (bytes < 65_536 ? 4 : 10);
}

/** @this {MarkedSocket} @param {Buffer} data @param {boolean} isBinary */
function onMessage(data, isBinary) {
  const { [kStream]: stream } = this;
  const owner = stream?.owner;
  if (!stream || !owner || stream.reason) return;
  if (!isBinary && (owner.takesMessages || stream.isOfUpdates))
    return owner.onMessage(stream.id, data.toString());
  owner.release(stream, 'bad-request');
  this.close(UNSUPPORTED, stream.reason ?? undefined);
}

/** Its client has sent something that is no valid frame: ws closes it. @this {MarkedSocket} */
function onError() {
  const { [kStream]: stream } = this;
  if (stream && !stream.reason) stream.owner?.release(stream, 'bad-request');
}

/** @this {MarkedSocket} */
function onClose() {
  const { [kStream]: stream } = this;
  const { errored } = /** @type {{ errored?: NodeJS.ErrnoException | null }} */ (stream?.connection ?? {});
  if (stream) stream.owner?.forget(stream, errored ? reasonOfError(errored.code ?? '') : 'client-gone');
}

/** Makes WebSockets of requests. */
export class Upgrades {
  /** @param {number} maxMessageBytes */
  constructor(maxMessageBytes) {
    this.maxMessageBytes = maxMessageBytes;
    /** Loaded for the first WebSocket: most servers with the native core need none. @type {import('ws').WebSocketServer | undefined} */
    this.server = undefined;
  }

  /**
   * Writes the head of the response.
   * @param {Upgrade} upgrade
   * @param {Record<string, string>} headers of the response, besides those of the handshake
   * @returns {MarkedSocket | undefined} undefined if the client has left
   */
  open({ request, socket, rest }, headers) {
    this.server ??= openServer(this.maxMessageBytes);
    const { server } = this;
    /** @type {MarkedSocket | undefined} */
    let opened;
    server.once('headers', (lines) => {
      for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
      lines.push(`Date: ${new Date().toUTCString()}`);
    });
    // ws checks once more what was checked, and less exactly.
    const { 'sec-websocket-key': key } = request.headers;
    const asked = {
      method: 'GET',
      headers: { upgrade: 'websocket', 'sec-websocket-version': '13', 'sec-websocket-key': key },
    };
    server.handleUpgrade(
      /** @type {IncomingMessage} */ (/** @type {unknown} */ (asked)),
      socket,
      rest,
      (one) => {
        opened = one;
      },
    );
    server.removeAllListeners('headers');
    return opened;
  }
}

/** @param {number} maxPayload */
function openServer(maxPayload) {
  const require = createRequire(import.meta.url);
  const { WebSocket, WebSocketServer } = /** @type {typeof import('ws')} */ (require('ws'));
  /** ws itself gives no reason when it closes because of an error. */
  class HeldWebSocket extends WebSocket {
    /** @param {number} [code] @param {string | Buffer} [why] */
    close(code, why) {
      super.close(code, why ?? (code === undefined ? undefined : 'bad-request'));
    }
  }
  const options = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    closeTimeout: CLOSE_MS,
    maxPayload,
    WebSocket: HeldWebSocket,
  };
  return new WebSocketServer({ ...options, handleProtocols: () => false });
}
