/*
 * Types of `import … from 'holdfast'`. test/fixtures/types/same.ts fails to compile if this file disagrees with transport/, hub/
 * or broker/.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';
import type { Duplex } from 'node:stream';

/**
 * What a stream is, and how messages are written to it:
 *
 * - `text`: only the data. `events`: Server-Sent Events.
 * - `ndjson`: a JSON object in each line, with id, type, topic and data, as far as the message has them. Pings are empty lines.
 * - `poll`: the request waits until there is something to say, and is then answered with `{ messages, cursor }`, JSON objects as above
 *   and the id of the last one; or, once its time is over, with 204. The stream has ended then, with the reason 'answered'. The connection
 *   can be used for the next request.
 * - `websocket`: each message is a text message that contains only the data. A request that does not ask for a WebSocket is refused with
 *   426, and one with a bad key with 400. Compression (permessage-deflate) is not offered: it takes more memory than the stream itself.
 *
 * Those of `updates` are for streams of a hub. `updates` are events whose pings contain the cursor (see `publish`): an event that has
 * only an id, so that clients send it as Last-Event-ID when they reconnect. As long as there is no cursor, the stream has no channels, or
 * something that was published waits for it, the ping is ':\n\n'. Messages of `websocketUpdates` are JSON objects.
 */
export type Encoding =
  | 'text'
  | 'events'
  | 'updates'
  | 'ndjson'
  | 'ndjsonUpdates'
  | 'poll'
  | 'pollUpdates'
  | 'websocket'
  | 'websocketUpdates';

/** The names of what you can hold, if you like constants better than strings: `{ hold: FORMATS.websocket }`. */
export declare const FORMATS: {
  readonly text: 'text';
  readonly events: 'events';
  readonly ndjson: 'ndjson';
  readonly poll: 'poll';
  readonly websocket: 'websocket';
};

/** A string is written as UTF-8. */
export type Bytes = string | Uint8Array;

/**
 * A message. Streams of events contain all of it, streams of text only the data. Bytes are text in UTF-8; what is not
 * valid becomes U+FFFD. An id or type must be one line without NUL. When clients of events reconnect, they send the last id
 * as Last-Event-ID, and wait for `retry` ms before, 1 to 2,147,483,647.
 */
export interface Message {
  id?: string;
  type?: string;
  retry?: number;
  /** What it is about. Only JSON contains it. One line without NUL. */
  topic?: string;
  data: Bytes;
}

/** The head of a request; frozen. */
export interface Head {
  method: string;
  /** As sent, such as '/news?channel=a'. */
  target: string;
  /** '1.1' or '1.0'. */
  version: string;
  /** Only those that the policy names. The values of a repeated header are joined by ', '. */
  headers: Readonly<Record<string, string | undefined>>;
  /**
   * The client's address, if the policy asks for it; behind a proxy that of the proxy. IPv4 is always written as such;
   * '' if it is unknown.
   */
  address?: string;
}

/** Why a stream ended. */
export type CloseReason =
  /** The client closed or reset the connection. */
  | 'client-gone'
  /** More than `maxBacklogBytes` were waiting for the client. */
  | 'slow'
  /** It was ended by `end` or `close`, the application ended its response, or its request was a HEAD. */
  | 'drain'
  /** The client no longer acknowledges anything. */
  | 'dead-peer'
  /** There was no room for it, or for another channel that it subscribed to; or it was to be held too late. */
  | 'over-capacity'
  /**
   * The client sent something on a connection that carries a stream; or it asked for a WebSocket in the wrong way, broke its rules, or
   * said something although there is no `onMessage`.
   */
  | 'bad-request'
  /** Any other error of the connection. */
  | 'error'
  /** Its shard failed. */
  | 'failed'
  /** The time of its label was over, or it was ended with this reason. */
  | 'expired'
  /** It was ended with this reason. */
  | 'revoked'
  /** What it followed has begun anew: a `Hub` ends its streams if the order of its broker does. Or it was ended with this reason. */
  | 'restarted'
  /** The client reported a failure of TLS. */
  | 'tls-alert'
  /** The client sent something that is not a valid TLS record. */
  | 'bad-record'
  /** It was a poll, and has got its answer, with messages or without. */
  | 'answered';

/** Reasons with which `endChannel`, `endLabelled` and `endUpdates` can end streams. */
export type EndReason = 'revoked' | 'expired' | 'restarted' | 'drain';

/**
 * Labels of a stream. What is left out it has none of.
 *
 * In the native core, labels take 12 bytes per stream, if any stream has some.
 */
export interface Labels {
  /** A number of 32 bits by which streams can be ended, for example a hash of the user; 0 is none. */
  subject?: number;
  /** The same, for example of a token. */
  token?: number;
  /** In ms since 1970: the stream ends with the reason 'expired' then, or less than a second later. Infinity is never. */
  expiresAtMs?: number;
}

/** Statuses that Holdfast itself refuses requests with. */
export type RefusalStatus = 400 | 404 | 405 | 408 | 426 | 431 | 503 | 505;

/** Opens a stream; a HEAD request gets only the head of the response. */
export interface HoldDecision {
  hold: Encoding;
  /** Channels that it listens to, at most 1024; `subscribe` can add more. Names must be well-formed Unicode. */
  channels?: readonly string[];
  /**
   * Headers of the response. They are added to the defaults, or replace them: Content-Type according to the encoding,
   * Cache-Control: no-store, X-Accel-Buffering: no, and for text X-Content-Type-Options: nosniff (without it, browsers
   * show nothing at first). Content-Length, Transfer-Encoding, Date, Connection and Trailer can't be set; nor can Content-Type and
   * Last-Event-ID of a poll, and Upgrade, Sec-WebSocket-Accept and Sec-WebSocket-Extensions of a WebSocket.
   */
  headers?: Record<string, string>;
  /**
   * Written right after the head, without encoding it as a message. A list has up to 1024 variants, used in turn, for
   * example to spread the `retry:` of events. A WebSocket gets it as a text message, one of `websocketUpdates` each line of it; a poll
   * can have none.
   */
  welcome?: Bytes | readonly Bytes[];
  /**
   * Promises that every request with the same method, target, version and headers (those that the policy names) gets
   * exactly this decision, no matter who sends it. The native core may then hold such requests without asking.
   */
  always?: boolean;
  /** As with `label`. Not together with `always`. */
  labels?: Labels;
  /**
   * What your application finds its own state of the stream by after another process took it over (`onAdopted`): at most 256
   * bytes. Not allowed together with `always`.
   */
  tag?: string;
  /** How many ms a poll waits before it is answered without a message; 25,000 by default. Only for polls. */
  waitMs?: number;
}

/**
 * A complete response. The connection is kept for another request, unless the client doesn't want that (Connection: close, HTTP/1.0
 * without keep-alive), or this one has a body.
 */
export interface Answer {
  /** 200 to 599; 200 by default. */
  status?: number;
  /** Content-Length, Transfer-Encoding, Date, Connection and Trailer can't be set. */
  headers?: Record<string, string>;
  body?: Bytes;
}

/** Refuses a request; like an answer, but it is counted in `counters().refused`. */
export interface Refusal {
  /** 400 to 599. */
  refuse: number;
  /**
   * They are added to the defaults, or replace them: Content-Type: text/plain; charset=utf-8, with 405 Allow: GET, HEAD,
   * and with 503 Retry-After: 5. Content-Length, Transfer-Encoding, Date, Connection and Trailer can't be set.
   */
  headers?: Record<string, string>;
  /** By default the status, its name, and for some statuses what it usually means. */
  body?: Bytes;
}

/**
 * What to do with a request: hold it as a stream, refuse it, answer it, or pass it on to `server`. `server` gets the
 * untouched connection; without the native core, it gets the parsed request as an event instead.
 */
export type Decision = HoldDecision | Refusal | { answer: Answer } | { pass: true };

export interface Policy {
  /** Lower-case names of the headers that `decide` reads. */
  headers?: readonly string[];
  /** Whether `decide` reads the client's address (`head.address`). An `always` decision must not depend on it. */
  address?: boolean;
  /**
   * Decides about a request, at once or with a promise. If it throws, rejects, or takes longer than `answerTimeoutMs`, the
   * request gets 503, and a later decision is ignored.
   *
   * The promise may resolve to a function that returns the decision. It is called when the decision takes effect: what it
   * sees (for example, what was published so far) is up to date, because nothing comes between it and the stream. It is not
   * called if the request was answered in the meantime.
   * @param id of the stream that this request becomes if it is held
   */
  decide: (head: Head, id: number) => Decision | Promise<Decision | (() => Decision)>;
}

export interface HoldOptions {
  /** Without it every request is passed on. */
  policy?: Policy;
  /** Takes the requests that are passed on; without it they get 404. */
  server?: Server;
  /**
   * Called for every stream that ends. Every decision to hold leads to exactly one call, even if there is no stream: with
   * 'over-capacity' if there was no room or the decision came too late, with 'client-gone' if the client has left before,
   * with 'drain' if the request was a HEAD, and with 'bad-request' if it was to become a WebSocket, but did not ask for one.
   */
  onClose?: (id: number, reason: CloseReason) => void;
  /**
   * Called with each text message of a WebSocket client. Without it, a client that sends one is closed with 1003, and the reason is
   * 'bad-request'. While messages wait for it, no more are read.
   */
  onMessage?: (id: number, data: string) => void;
  /**
   * Called with what `decide`, `onMessage` or `onClose` threw, with BAD_ARGUMENT for an invalid decision, with SHARD_FAILED, and with
   * DECISION_TIMEOUT if decisions took too long (at most once a second, with their number). Without it, these become
   * process warnings.
   */
  onError?: (error: unknown) => void;
  /** Payload of a ping for these encodings, not empty; by default 'ping' and ': ping\n\n'. */
  ping?: { text: string; events: string };
  /** ms between two pings to the same stream, 10 to 86,400,000; 20,000 by default. */
  pingIntervalMs?: number;
  /**
   * No ping for a stream that has got a message since the last one, so that it may be quiet for two intervals; false by default.
   * WebSockets always get theirs, which find dead peers.
   */
  idlePings?: boolean;
  /** Threads, 1 to 255, each with as many streams as a process may have descriptors; 1 by default. */
  shards?: number;
  /** Most streams per shard; further requests get 503. By default what the descriptor limit allows. */
  capacity?: number;
  /**
   * Most connections per shard, up to 2,097,152. When there are more, the oldest that waits for another request is cut, or else the
   * oldest that has not sent a complete request head; if there is none, they wait, or without the native core are cut. By default
   * what the descriptor limit allows.
   */
  connectionLimit?: number;
  /** Whether small writes wait for an acknowledgement (Nagle's algorithm); false by default. */
  nagle?: boolean;
  /** Most bytes of a request head, 64 to 1,048,576; a larger one gets 431. 8192 by default. */
  maxHeadBytes?: number;
  /** ms until a request head must be complete; after that 408. 10,000 by default. */
  headTimeoutMs?: number;
  /** ms that a connection is kept open for the next request after an answer. 5000 by default. */
  keepAliveTimeoutMs?: number;
  /** Most bytes of a message from a WebSocket client; a longer one closes the WebSocket with 1009. 65,536 by default. */
  maxMessageBytes?: number;
  /**
   * Most incomplete request heads per shard from one address (of IPv6: from a /64); with more, the oldest connection is cut.
   * 256 by default.
   */
  maxHeadsPerAddress?: number;
  /**
   * Addresses and ranges, such as '10.0.0.0/8', to which `maxHeadsPerAddress` does not apply, because all clients behind a
   * proxy have its address. Loopback by default.
   */
  proxies?: readonly string[];
  /** ms that the promise of a decision may take; after that 503. 10,000 by default. */
  answerTimeoutMs?: number;
  /**
   * Most bytes waiting for a client that does not read; with more, the stream is closed as 'slow'. 65,536 by default. A welcome
   * and what was passed to `write` don't count.
   */
  maxBacklogBytes?: number;
  /**
   * Most bytes of messages waiting for delivery; with more, `publish` and `send` throw BUSY. 16,777,216 by default. A message
   * counts as its text plus 256 bytes; each channel that it is published to, except the first, as its name plus 64 bytes.
   */
  maxQueueBytes?: number;
  /**
   * Most memory that channels may take per shard: about 128 bytes and the name for each channel, and 16 bytes for each
   * subscription. A request that needs more gets 503, and a stream that subscribes beyond it is closed as
   * 'over-capacity'. 16,777,216 by default.
   */
  maxChannelBytes?: number;
  /** Position of its first shard among all shards of this machine, so that they don't all wake up together; 0 by default. */
  phase?: number;
  /** Number of shards on this machine; by default those of this Hold. */
  phases?: number;
}

/** A certificate or a key as PEM. */
export type Pem = string | Uint8Array;

/** Certificates to listen with, named as in node:tls. */
export interface TlsOptions {
  /** A certificate with its chain, or several. The first one is also for clients that ask for no name, or another one. */
  cert: Pem | readonly Pem[];
  /** As many keys, in the same order, not encrypted: RSA, ECDSA (P-256, P-384 or P-521) or Ed25519. */
  key: Pem | readonly Pem[];
  /** 'TLSv1.3' by default. */
  minVersion?: 'TLSv1.2' | 'TLSv1.3';
  /**
   * 48 bytes, with which clients resume their sessions; random by default. Processes that share them accept each other's
   * sessions. Keep them secret: whoever has them can decrypt recorded connections with TLS 1.2, and pose as the server to clients
   * that come back.
   */
  ticketKeys?: Uint8Array;
}

/** Options of `Hold.takeOver`. */
export interface TakeOverOptions extends HoldOptions {
  /** Called for each stream that was taken over. */
  onAdopted?: (id: number, stream: { tag: string; channels: string[] }) => void;
  /**
   * The same as for `listen`, if the other process listens with TLS. Without `ticketKeys`, those of the other process are
   * used, so clients can resume their sessions.
   */
  tls?: TlsOptions;
}

/** Options of `hold.upgrade`: those of a decision, but for `welcome`, which has no variants. */
export interface UpgradeOptions {
  channels?: readonly string[];
  /** 'websocket' by default. */
  encoding?: 'websocket' | 'websocketUpdates';
  headers?: Record<string, string>;
  /** The first message. */
  welcome?: Bytes;
  labels?: Labels;
  tag?: string;
}

/** A histogram: its non-empty buckets. */
export interface EncodedHistogram {
  /** Of sum, min and max. */
  unit: 'ns' | 'µs';
  count: number;
  sum: number;
  /** 0 when empty, as `max`. */
  min: number;
  max: number;
  /** Index, count, index, count… */
  buckets: number[];
}

/** Counts since the start; histograms since they were last reset. */
export interface Counters {
  /** Open now. */
  streams: number;
  /** Open now, streams included. */
  connections: number;
  opened: number;
  pings: number;
  /** Messages written, once per stream. */
  deliveries: number;
  bytesWritten: number;
  /** Waiting now for clients that don't read fast enough. */
  backlogBytes: number;
  /** Bytes of messages, and of what was passed to `write`, that wait now in the native core. */
  queuedBytes: number;
  /** Held in JS now. */
  inJs: number;
  /** Connections closed without an answer, because there was no room or their address had too many incomplete heads. */
  cut: number;
  shardFailures: number;
  /** Open streams with the encoding 'updates': those of a hub. */
  updates: number;
  /** TLS handshakes completed. */
  handshakes: number;
  /** Those of them that resumed a session. */
  resumed: number;
  /** TLS handshakes that failed. */
  handshakeFailures: number;
  closed: Record<CloseReason, number>;
  /** Refused requests by status. A status that only `decide` refuses with appears when it is first used. */
  refused: Record<RefusalStatus, number> & { [status: number]: number | undefined };
  /** Of pings, in µs. */
  lateness: EncodedHistogram;
  /** CPU per opened stream, ping and delivery, in ns; empty for streams in JS, where it can't be measured. */
  openCpu: EncodedHistogram;
  pingCpu: EncodedHistogram;
  deliveryCpu: EncodedHistogram;
}

/**
 * The errors of Holdfast, with a message of one line. `code` is BAD_OPTION, BAD_ARGUMENT, NOT_ADOPTABLE, OVER_CAPACITY, BUSY,
 * LISTENING, CLOSED, NOT_NATIVE, HANDOVER, STORE, NATS or TOO_LARGE, and for `onError` also SHARD_FAILED and DECISION_TIMEOUT.
 */
export interface HoldfastError extends Error {
  code: string;
}

/**
 * Holds many open streams. The native core holds them outside the JS heap, with TLS too if it listens itself; what it can't take
 * (responses of node:https and HTTP/2, and compressed ones) is held in JS behind the same methods. Without the native core everything is held in JS, and one process
 * warning (NO_NATIVE) says why. HOLDFAST_NATIVE=off in the environment forces that.
 *
 * All operations take effect in the order of the calls: a stream that `decide` holds gets what is published after that, and
 * nothing published before. Each stream gets messages in the order of the calls, whichever channels they were for.
 */
export class Hold {
  /** @throws {HoldfastError} BAD_OPTION */
  constructor(options?: HoldOptions);

  /** Whether the native core holds the streams. */
  readonly isNative: boolean;

  /**
   * Whether each shard has its own descriptor table, so that the process can hold more streams than its descriptor limit.
   * If several shards have to share one, there is one process warning (SHARED_DESCRIPTORS).
   */
  readonly hasOwnTables: boolean;

  /**
   * Listens for requests; the policy decides about each. This keeps the process alive.
   * @param port 0, the default, takes a free one
   * @param host '', the default, is every address of the machine
   * @param options with `tls`, the port speaks TLS. What is passed on to `server` looks like a connection of node:https
   *   (`socket.encrypted`, `remoteAddress`), and can be adopted
   * @returns the port
   * @throws {HoldfastError} LISTENING if it does already, CLOSED, BAD_ARGUMENT, NOT_NATIVE for TLS without the native core, or a
   *   system error such as EADDRINUSE, whose message names the address and port
   */
  listen(port?: number, host?: string, options?: { tls?: TlsOptions }): Promise<number>;

  /**
   * Replaces the certificates, for connections from now on; streams go on. Without `ticketKeys`, those from before are kept,
   * so clients can resume their sessions.
   * @throws {HoldfastError} BAD_ARGUMENT, NOT_NATIVE, CLOSED
   */
  setSecureContext(options: TlsOptions): void;

  /**
   * Takes over a response as a stream. What was written to it before is sent first; from then on only this Hold writes to
   * it. If it is held natively, the response emits 'close' now, and JS no longer has its socket; if it is held in JS, the
   * response emits 'close' when the stream ends. An adopted stream does not keep the process alive; its server does.
   *
   * If the client has already disconnected, this still resolves to an id, and `onClose(id, 'client-gone')` follows. A HEAD
   * request gets the head of the stream, and `onClose(id, 'drain')` follows.
   * @param response of node:http, node:https or HTTP/2, with status 200 and without Content-Length. If its head was not sent
   *   yet, it is sent now, with the default headers of a stream (as for `HoldDecision.headers`) unless you have set them
   * @param options `channels`: at most 1024, and 16,000 bytes in total; `encoding` is 'events' by default; `tag`: as in a decision.
   *   With `encoding: 'poll'`, nothing is sent until there is something to say; the response is always held in JS, and your server goes
   *   on with its connection; `waitMs`: as in a decision. For WebSockets, there is `upgrade`: their encodings are BAD_ARGUMENT here
   * @returns the id of the stream
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, CLOSED, BAD_ARGUMENT. The response is then
   *   still yours, but its head may have been sent
   */
  adopt(
    response: ServerResponse | Http2ServerResponse,
    options?: { channels?: readonly string[]; encoding?: Encoding; tag?: string; waitMs?: number },
  ): Promise<number>;

  /**
   * Makes a WebSocket of a request that your server got ('upgrade' event of node:http or node:https), and answers it. Connections of
   * node:http, and those with TLS that this Hold has passed on, are held natively; others in JS.
   *
   * If it fails, the request has been refused: with 400, 405 or 426 if it does not ask for a WebSocket in the right way, otherwise with
   * 503. You need not answer it. If the client has already left, this still resolves to an id, and `onClose(id, 'client-gone')` follows.
   * @param head must be empty: a client may say nothing before it is answered
   * @returns the id of the stream
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, CLOSED; BAD_ARGUMENT: only then the request is still yours
   */
  upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Uint8Array,
    options?: UpgradeOptions,
  ): Promise<number>;

  /**
   * Sends a message to every stream that listens to a channel, or to at least one of several; each gets it once. A string or
   * bytes are the data of a message.
   *
   * Channels take turns, so a channel with many streams, or many messages, doesn't delay the others.
   * @param channels one, or at most 1,048,576
   * @param message null only if there are no channels and a cursor
   * @param options `cursor`: one line of 1 to 256 bytes, without NUL. From this publication on, it is in the pings of all streams
   *   of `updates`: each gets it once it has got everything that was published to it so far
   * @returns how many streams of this Hold the message was for, once it was written to all of them. Never rejects, so you
   *   need not wait for it
   * @throws {HoldfastError} BAD_ARGUMENT; BUSY if more than `maxQueueBytes` would wait for delivery
   */
  publish(
    channels: string | readonly string[],
    message: Bytes | Message | null,
    options?: { cursor?: string },
  ): Promise<number>;

  /**
   * Sends a message to one stream. This and the methods below do nothing if the stream has ended.
   * @throws {HoldfastError} BAD_ARGUMENT, BUSY as for `publish`
   */
  send(id: number, message: Bytes | Message): void;

  /**
   * Writes to one stream as it is, without encoding it as a message: a replay, for example. It is never too much for the stream
   * (`maxBacklogBytes`) or for the queue (`maxQueueBytes`), so limit it yourself. It does not count as a delivery. A WebSocket gets it as
   * a text message, one of `websocketUpdates` each line of it; a poll ignores it.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  write(id: number, payload: Bytes): void;

  /**
   * Replaces the labels of a stream.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  label(id: number, labels: Labels): void;

  /** @throws {HoldfastError} BAD_ARGUMENT */
  subscribe(id: number, channel: string): void;

  /** @throws {HoldfastError} BAD_ARGUMENT */
  unsubscribe(id: number, channel: string): void;

  /**
   * Ends one stream, after everything sent to it has been written.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  end(id: number): void;

  /**
   * Ends all streams that listen to a channel, after everything sent to them has been written.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endChannel(channel: string, reason: EndReason): void;

  /**
   * Ends all streams with a label, after everything sent to them has been written.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endLabelled(kind: 'subject' | 'token', label: number, reason: EndReason): void;

  /**
   * Ends all streams of `updates`, after everything sent to them has been written. Whatever is said from now on, cursors too, reaches
   * none of them, even if ending them takes a while.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  endUpdates(reason: EndReason): void;

  /**
   * Takes over the streams that another process offers with `handOver` at the same path, and the sockets on which it listens. If nobody
   * offers any, you get a new Hold without streams, so the same code does for the first start and for a deploy.
   *
   * Streams keep their connection, channels, labels, tag and the time of their next ping, but not their id. Connections wait until you call
   * `listen` with the same port and host as the other process: it takes the sockets that have come. Streams of a `Hub` are ended
   * ('restarted') once they are here; their clients come back with their cursors.
   * @param options `onAdopted` is called for each stream of yours before any other callback for it. `channels` are those that it is on,
   *   `tag` is '' if it has none
   * @returns once all streams are here
   * @throws {HoldfastError} BAD_OPTION, BAD_ARGUMENT, NOT_NATIVE without the native core; HANDOVER with the reason: the
   *   streams are still in the other process
   */
  static takeOver(path: string, options?: TakeOverOptions): Promise<Hold>;

  /**
   * Offers all streams, and the sockets on which this Hold listens, to a process that calls `Hold.takeOver`. If that fails, the streams
   * stay here and `onError` gets HANDOVER; the offer stays, too. What can't move (responses of HTTP/2 and node:https, compressed responses, streams for
   * which the other process has no room) is ended as by `close`.
   *
   * While streams move, what is published waits for a moment. From then on it reaches the streams in the other process, too, as do
   * `endChannel` and `endLabelled`, also after the end of this Hold. Calls with the id of a stream that has moved do
   * nothing, and `onClose` is not called for it.
   * @param path of a Unix socket that only this user can open; a file that a process has left there is replaced
   * @param options `periodMs`: as for `close`, 0 by default; `signal` withdraws the offer, as `close` does, unless streams have moved
   * @returns how many streams have moved, once nothing is left here
   * @throws {HoldfastError} NOT_NATIVE without the native core, BUSY if this Hold or another process has an offer already, CLOSED,
   *   HANDOVER if the path can't be used, BAD_ARGUMENT; or the reason of the signal
   */
  handOver(path: string, options?: { periodMs?: number; signal?: AbortSignal }): Promise<number>;

  /**
   * Stops accepting, and closes the streams evenly over the period. Connections passed on to `server` stay open: closing
   * them is up to you. This Hold encrypts for those with TLS, so it waits for them.
   * @param periodMs 0 by default
   * @returns resolves when the last connection is gone; a second call returns the same promise
   */
  close(periodMs?: number): Promise<void>;

  /**
   * @param options `reset` empties the histograms after reading them
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  counters(options?: { reset?: boolean }): Counters;
}

/** A topic, or several. A topic is any text without control characters, best a URL; `*` selects all topics. */
export type Topics = string | readonly string[];

/** What a publisher gives. */
export interface Publication {
  /** What it is about. The first is the canonical one. */
  topic?: Topics | undefined;
  /** Another name for `topic`; use one of them. */
  topics?: Topics | undefined;
  /** '' by default. */
  data?: string | undefined;
  /** Whether only streams whose grants match one of its topics get it; false by default. */
  private?: boolean | undefined;
  /**
   * Your own id, by default one of the hub's. What was published with an id that is still stored is not published again. It must
   * not be 'earliest' or begin with '#'.
   */
  id?: string | undefined;
  /** The type of the event; not 'mercure'. */
  type?: string | undefined;
  /** ms that clients wait before they reconnect, up to 2,147,483,647. */
  retry?: number | undefined;
}

/** Keys and rules for tokens (JWT). A key is text: a PEM of a public key, a JWK or a set of them, or a secret for HS256. */
export interface JwtOptions {
  /** For HS256: tokens signed with it may publish and subscribe. */
  secret?: string | undefined;
  /** Then only tokens signed with it may publish. */
  publisherKey?: string | undefined;
  /** Then only tokens signed with it may subscribe. */
  subscriberKey?: string | undefined;
  /** Where the issuer has its public keys. They are fetched again when a token has an unknown one. */
  jwksUrl?: string | undefined;
  /** What `iss` of every token must be. */
  issuer?: string | undefined;
  /** What `aud` of every token must contain; by default the URL of the hub, and tokens of Mercure 0.x need none. */
  audience?: string | undefined;
  /** Name of the cookie with the token of a browser, '__Secure-mercure_access_token' by default. */
  cookie?: string | undefined;
}

export interface HubOptions {
  /** Holds the streams. */
  hold: Hold;
  /** Orders and stores publications; by default in memory, as `new MemoryBroker()` does. You close it. */
  broker?: Broker;
  /** For tokens. Without keys, only `hub.publish` can publish. */
  jwt?: JwtOptions;
  /** Whether everybody may subscribe to what is public; by default only this machine and those with a token. */
  anonymous?: boolean;
  /** Whether clients and tokens of Mercure 0.x are accepted; true by default. */
  legacy?: boolean;
  /**
   * Its URL, for `link`, and for relative topics and URL patterns; by default `jwt.audience` if that is a URL. Without it, `link`
   * has only the path.
   */
  url?: string;
  /** Its path, '/.well-known/mercure' by default. Topics with this path, or one below it, can't be published. */
  path?: string;
  /** Origins of pages that may use it, such as 'https://example.com' and 'https://*.example.com'; '*' is all, without credentials. */
  corsOrigins?: readonly string[];
  /** Origins of pages that may publish with the cookie of their visitor; none by default. */
  publishOrigins?: readonly string[];
  /** Topics and URL patterns whose last publication new subscribers get first. */
  cacheTopics?: readonly string[];
  /** Bytes of recent publications kept ready for clients that come back; 16,777,216 by default. The broker has the rest. */
  windowBytes?: number;
  /** Most bytes of a replay at once; with more, the client gets it in parts. 1,048,576 by default. */
  maxReplayBytes?: number;
  /** Most bytes of the body of a publish request; above it 413. 1,048,576 by default. */
  maxBodyBytes?: number;
  /** Most topics of a publication; above it 413. 1000 by default. */
  maxTopics?: number;
  /** Most topics and patterns of a stream; above it 400. 100 by default. */
  maxSelectors?: number;
  /**
   * Whether clients whose tokens allow it can learn who is subscribed to what, by private publications and over HTTP; false by
   * default, and then it costs nothing.
   */
  subscriptions?: boolean;
  /**
   * Most memory that the list of subscriptions may take; with more, new streams get 503. 134,217,728 by default. With a broker on NATS, the
   * list has the streams of all nodes.
   */
  maxPresenceBytes?: number;
  /** Most streams of one address (of IPv6: of a /64); with more, 429. 0, the default, is no limit. */
  maxStreamsPerAddress?: number;
  /** Most streams whose tokens have the same sub; with more, 429. 0, the default, is no limit. */
  maxStreamsPerSubject?: number;
  /** Most streams that one address may open per second; with more, 429. 0, the default, is no limit. */
  maxOpensPerAddress?: number;
  /** Addresses and ranges of proxies, to which the limits per address do not apply. Loopback by default. */
  proxies?: readonly string[];
  /** Called with unexpected errors; without it, they become process warnings. */
  onError?: (error: unknown) => void;
  /** Called with lines for the log: that `jwt.jwksUrl` doesn't answer, and why tokens were refused, each reason once a minute. */
  onNote?: (line: string) => void;
}

/** What a stream is about, and what its client may read; at least one topic or pattern. */
export interface SubscribeOptions {
  /** Exactly these; '*' is all. */
  topics?: Topics | undefined;
  /** URL patterns, such as 'https://example.com/books/:id'. */
  patterns?: Topics | undefined;
  /**
   * The last event id of the client: the stream begins with what was published after it. By default that of the request (the
   * header Last-Event-ID, or `last_event_id` or `lastEventID` in its query); null begins with what is published next. 'earliest'
   * is everything that is stored.
   */
  cursor?: string | null | undefined;
  /**
   * Topics whose private publications the client may read: it gets those that match one of its topics and one of its grants.
   * None by default.
   */
  grants?: Topics | { topics?: Topics; patterns?: Topics } | undefined;
  /** Whose stream it is, for `revoke`. */
  subject?: string | undefined;
  /** In ms since 1970: the stream ends then, or earlier by up to a tenth of the time, so that not all end at once. */
  expiresAtMs?: number | undefined;
}

/** What a hub counts. */
export type HubCountName =
  | 'hubOpened'
  | 'hubPublished'
  | 'hubDuplicates'
  | 'hubWaiting'
  | 'hubRecoveries'
  | 'hubEarliest'
  | 'hubReplayed'
  | 'hubTokensRefused'
  | 'hubLimitedStreamsPerAddress'
  | 'hubLimitedStreamsPerSubject'
  | 'hubLimitedOpensPerAddress'
  | 'hubLimitedTopicsPerStream'
  | 'hubLimitedPublication'
  | 'hubLimitedPresence';

/**
 * Topics, history, recovery and grants on top of a Hold, over the protocol Mercure (draft-08 and 0.x). The streams of the Hold's
 * encoding 'updates', and channels whose names begin with U+0001, are the hub's.
 *
 * A client that comes back with its last event id gets what it missed, and then what is published: everything once, in
 * order. If something it missed is no longer stored, the response has the header `Mercure-Last-Event-ID: earliest`.
 */
export class Hub {
  /** Names of the headers that `decide` reads, for the policy of a Hold. It also needs `address: true`. */
  static readonly headers: readonly string[];

  /** @throws {HoldfastError} BAD_OPTION */
  constructor(options: HubOptions);

  /**
   * Loads the keys, and what the broker has stored. Until then, requests wait for the keys.
   * @throws {HoldfastError} BAD_OPTION if a key can't be used
   */
  start(): Promise<void>;

  /**
   * Answers requests on its path: of `node:http`, `app.use(hub.handler)` of Express, or `request.raw` and `reply.raw` of Fastify in
   * a hook `onRequest`. It belongs before body parsers. It is bound to the hub.
   * @param next called for other requests; without it they get 404
   */
  handler(request: IncomingMessage, response: ServerResponse, next?: () => void): void;

  /**
   * For the event `upgrade` of a server of `node:http` or `node:https`: makes a WebSocket of a request on its path, or refuses it, as in
   * `server.on('upgrade', hub.upgrade)`. It is bound to the hub.
   * @param next called for other requests; without it they get 404
   */
  upgrade(request: IncomingMessage, socket: Duplex, head: Uint8Array, next?: () => void): void;

  /** Whether a request is for the hub. @param target of the request, such as `request.url` */
  owns(target: string | undefined): boolean;

  /**
   * For the policy of a Hold that listens: decides about a request that the hub owns. Requests with a body are passed on to
   * `server`, which has to give them to `handler`.
   */
  decide(head: Head, id: number): Decision | Promise<Decision | (() => Decision)>;

  /**
   * Makes a stream of a response, for applications that know their users themselves: no token is needed or read. The head is
   * sent now, with the headers that you have set; what the client missed follows.
   * @param response as for `adopt` of a Hold
   * @returns the id of the stream in the Hold
   * @throws {HoldfastError} BAD_ARGUMENT, and as `adopt`: NOT_ADOPTABLE, OVER_CAPACITY, CLOSED. The response is then still yours,
   *   but its head may have been sent
   */
  subscribe(response: ServerResponse | Http2ServerResponse, options: SubscribeOptions): Promise<number>;

  /**
   * Publishes one publication, or several in this order: all or none of them; on NATS, if it rejects, a part may be stored.
   * @returns the ids, once they are stored
   * @throws {HoldfastError} BAD_ARGUMENT; BUSY if too many wait to be stored; TOO_LARGE for NATS; STORE, CLOSED. It rejects with them
   */
  publish(publication: Publication): Promise<string>;
  publish(publications: readonly Publication[]): Promise<string[]>;

  /**
   * The cursor of what was published last: a client that begins with it gets everything that is published from now on. Read it
   * before you read the data of a page, and publish after you have written data: then a page misses nothing.
   */
  readonly cursor: string;

  /**
   * The value of a Link header for a page: where the hub is, its cursor (call it before you read the data of the page), and the
   * topic of the page. What a URI can't contain is percent-encoded.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  link(topic?: string): string;

  /** What it has counted since the start, and how much waits now. Each name is explained in lib/hubcounters.js. */
  counters(): Record<HubCountName, number>;

  /**
   * Ends streams within a second, and forgets their tokens: those of a subject (`sub` of the token, or `subject` of
   * `subscribe`), of a token (its `jti`), or those that asked for a topic, except by `*`. A client with a valid token can come back.
   * With a broker on NATS, those of all nodes.
   * @returns how many nodes there are, and how many have not confirmed it within 2 seconds: they are told when they are back, for up to 10
   *   minutes. `isConnected` is false if others can't be reached now. It never rejects
   * @throws {HoldfastError} BAD_ARGUMENT, also if there is nothing to revoke
   */
  revoke(what: {
    subject?: string | undefined;
    token?: string | undefined;
    topic?: string | undefined;
  }): Promise<{ nodes: number; unanswered: number; isConnected: boolean }>;
}

/** Gives publications their order, and stores them. `openBroker` and `MemoryBroker` make one; the hub uses it. */
export interface Broker {
  /** Of 32 bits. A store that was deleted starts a new one. */
  readonly epoch: number;
  /** 16 bytes for cursors. */
  readonly key: Uint8Array;
  /** The number of the last publication; they are counted from 1. */
  readonly last: number;
  /** The number of the oldest one that is stored; last + 1 if none is. */
  readonly first: number;
  append(drafts: readonly Draft[]): Promise<{ sequence: number; isNew: boolean }[]>;
  /**
   * @param onReset called, in order with the publications, when the order has begun anew (another epoch, key, first and last) or has a
   *   gap (the same epoch; first and last have jumped ahead). A hub then ends its streams, and their clients come again
   */
  follow(
    listener: (publications: readonly StoredPublication[]) => void | Promise<void>,
    onReset?: () => void,
  ): void;
  read(after: number, most: number): Promise<readonly StoredPublication[]>;
  find(id: string): Promise<number | undefined>;
  latest(): Promise<readonly StoredPublication[]>;
  /** Finishes what is being stored, and refuses more. */
  close(): Promise<void>;
  /** How a broker with `nats` is connected, until it is closed; others have none. */
  readonly state?: BrokerState | undefined;
}

/** How a broker of several is connected to the others. */
export interface BrokerState {
  /** Whether publications can be expected to come. */
  isConnected: boolean;
  /** Publications that others may have, and this one does not have yet. */
  behind: number;
  /** How long ago this one last had everything, in ms; 0 if it has. */
  lagMs: number;
  /** The last problem; '' if there is none. */
  problem: string;
}

/** Where NATS is, and how this program proves who it is. */
export interface NatsOptions {
  /** URLs: `nats://` or `tls://`, perhaps with a user and a password, or with a token. */
  servers: string | readonly string[];
  /** The stream of JetStream; all brokers with the same one are one hub. It is created if there is none. HOLDFAST by default. */
  stream?: string;
  /** Servers of NATS that keep it, if it is created; 1 by default. */
  replicas?: number;
  /** Files: credentials of NATS; certificates of authorities, a certificate and its key, as PEM. */
  credentials?: string;
  ca?: string;
  cert?: string;
  certKey?: string;
}

/** A publication that was checked. */
export interface Draft {
  topics: readonly string[];
  data: string;
  private: boolean;
  id?: string;
  type?: string;
  retry?: number;
  /** Drafts with the same key are one publication, even if several nodes publish them. It is not stored; brokers of one machine ignore it. */
  key?: string;
}

/** A publication with its number, and when it was stored, in ms since 1970. */
export interface StoredPublication extends Omit<Draft, 'key'> {
  sequence: number;
  at: number;
}

/** What a broker keeps for clients that come back; it drops the oldest when one of the limits is exceeded. */
export interface BrokerOptions {
  /** Publications; 10,000 by default. */
  historyCount?: number;
  /** ms; 3,600,000 by default. */
  historyAgeMs?: number;
  /** Bytes; 67,108,864 by default. */
  historyBytes?: number;
  /** Most bytes that wait to be stored; with more, `publish` rejects with BUSY. 16,777,216 by default. */
  maxQueueBytes?: number;
  /** Topics and URL patterns whose last publication is kept for longer; the same as those of the hub. */
  cacheTopics?: readonly string[];
  /** URL of the hub, if `cacheTopics` has relative patterns. */
  url?: string;
}

/** Keeps publications in memory: they are lost when the process ends. */
export class MemoryBroker implements Broker {
  /** @throws {HoldfastError} BAD_OPTION */
  constructor(options?: BrokerOptions);
  get epoch(): number;
  get key(): Uint8Array;
  get last(): number;
  get first(): number;
  append(drafts: readonly Draft[]): Promise<{ sequence: number; isNew: boolean }[]>;
  follow(
    listener: (publications: readonly StoredPublication[]) => void | Promise<void>,
    onReset?: () => void,
  ): void;
  read(after: number, most: number): Promise<readonly StoredPublication[]>;
  find(id: string): Promise<number | undefined>;
  latest(): Promise<readonly StoredPublication[]>;
  close(): Promise<void>;
}

/**
 * Opens a broker that keeps publications in a folder, so that they survive a restart, or a crash of the whole machine; or in NATS, so
 * that several programs are one hub.
 * @param options `store`: the folder, which one process at a time can use; without it publications are in memory. `sync`: whether
 *   a publication is on the disk before `publish` resolves; true by default. `nats`: publications are in a stream of JetStream, and `store`
 *   has a copy of the last ones. `onNote` gets lines for the log, such as that the connection to NATS is lost
 * @returns rejects with BAD_OPTION; STORE if the folder, or the optional package lmdb, can't be used; NATS if it refuses this program.
 *   As long as NATS can't be reached, it waits
 */
export function openBroker(
  options?: BrokerOptions & {
    store?: string;
    sync?: boolean;
    nats?: NatsOptions;
    onNote?: (line: string) => void;
  },
): Promise<Broker>;
