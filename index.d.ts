/*
 * Types of `import … from 'holdfast'`. test/fixtures/types/same.ts fails to compile if this file and transport/ disagree.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Http2ServerResponse } from 'node:http2';

/** How messages are written: the bare data, or Server-Sent Events. */
export type Encoding = 'text' | 'events';

/** A string is written as UTF-8. */
export type Bytes = string | Uint8Array;

/**
 * A message. Streams of events show all of it; streams of text show the data alone. An id or a type is one line
 * without NUL. Clients of events send the last id back as Last-Event-ID when they reconnect.
 */
export interface Message {
  id?: string;
  type?: string;
  data: string;
}

/** The head of a request; frozen. */
export interface Head {
  method: string;
  /** As it was sent, such as '/news?channel=a'. */
  target: string;
  /** '1.1' or '1.0'. */
  version: string;
  /** Only those that the policy names. One that was sent several times has its values joined by ', '. */
  headers: Readonly<Record<string, string | undefined>>;
}

/** Why a stream ended. */
export type CloseReason =
  /** The client closed or reset the connection. */
  | 'client-gone'
  /** More than `maxBacklogBytes` waited for it. */
  | 'slow'
  /** `end` or `close` ended it, or the application ended its response. */
  | 'drain'
  /** The other side no longer answers. */
  | 'dead-peer'
  /** There was no room for it. */
  | 'over-capacity'
  /** The client sent more on a connection that carries a stream. */
  | 'bad-request'
  /** Any other error of the connection. */
  | 'error'
  /** Its shard failed. */
  | 'failed';

/** Statuses that a request can be refused with. */
export type RefusalStatus = 400 | 404 | 405 | 408 | 431 | 503 | 505;

/** Opens a stream; a HEAD gets the head of the response alone. */
export interface HoldDecision {
  hold: Encoding;
  /** What it listens to: at most 1024 at first; `subscribe` adds more. */
  channels?: readonly string[];
  /**
   * Headers of the response, added to the defaults (Content-Type by the encoding, Cache-Control: no-store,
   * X-Accel-Buffering: no, and for text X-Content-Type-Options: nosniff, without which browsers show nothing at first) or
   * replacing them. Content-Length, Transfer-Encoding, Date, Connection and Trailer can't be set.
   */
  headers?: Record<string, string>;
  /**
   * Written right after the head, as it is: it is not encoded as a message. Of a list, at most 1024 long, the variants
   * take turns, for example to spread the `retry:` of events.
   */
  welcome?: Bytes | readonly Bytes[];
  /**
   * Promises that requests with the same method, target, version and headers (those that the policy names) are always
   * held exactly like this one, whoever sends them. When many come, the native core then holds them without asking.
   */
  always?: boolean;
}

/** A whole response, after which the connection ends. */
export interface Answer {
  /** 200 to 599; 200 by default. */
  status?: number;
  /** Content-Length, Transfer-Encoding, Date, Connection and Trailer can't be set. */
  headers?: Record<string, string>;
  body?: Bytes;
}

/**
 * What to do with a request: hold it as a stream, refuse it, answer it, or pass it on, untouched, to `server`. Without
 * the native core, `server` gets the parsed request as an event instead of the connection.
 */
export type Decision = HoldDecision | { refuse: RefusalStatus } | { answer: Answer } | { pass: true };

export interface Policy {
  /** Names, in lower case, of the headers that `decide` reads. */
  headers?: readonly string[];
  /**
   * Decides about a request, at once or with a promise. If it throws or rejects, or does not answer within
   * `answerTimeoutMs`, the request gets 503; a later answer is ignored.
   * @param id of the stream that this request becomes if it is held
   */
  decide: (head: Head, id: number) => Decision | Promise<Decision>;
}

export interface HoldOptions {
  /** Without it every request is passed on. */
  policy?: Policy;
  /** Takes the requests that are passed on; without it they get 404. */
  server?: Server;
  /** Called for every stream that ends, and, as 'over-capacity', for one that was to be held and found no room. */
  onClose?: (id: number, reason: CloseReason) => void;
  /**
   * Called with what `decide` or `onClose` threw, with what is no decision, and with SHARD_FAILED. Without it these are
   * process warnings.
   */
  onError?: (error: unknown) => void;
  /** Payload of a ping, by encoding; by default 'ping' and ': ping\n\n'. */
  ping?: { text: string; events: string };
  /** ms between two pings to a stream, 10 to 86,400,000; 20,000 by default. */
  pingIntervalMs?: number;
  /** Threads, 1 to 255; each can hold as many streams as a process may have descriptors. 1 by default. */
  shards?: number;
  /** Streams of one shard; beyond it requests get 503. By default what the descriptor limit allows. */
  capacity?: number;
  /**
   * Connections of one shard, at most 2,097,152; beyond it they wait (without the native core they are cut). By default
   * what the descriptor limit allows.
   */
  connectionLimit?: number;
  /** Whether small writes wait for an acknowledgement (Nagle's algorithm); false by default. */
  nagle?: boolean;
  /** Bytes of a request's head, 64 to 1,048,576; beyond it 431. 8192 by default. */
  maxHeadBytes?: number;
  /** ms that a request's head may take; after that 408. 10,000 by default. */
  headTimeoutMs?: number;
  /** ms that a promised decision may take; after that 503. 10,000 by default. */
  answerTimeoutMs?: number;
  /** Bytes that may wait for a client that does not read; beyond it the stream is closed as slow. 65,536 by default. */
  maxBacklogBytes?: number;
  /** Where its first shard is among all shards of this machine, so that they don't wake together; 0 by default. */
  phase?: number;
  /** Shards of this machine; by default those of this Hold. */
  phases?: number;
}

/** A histogram as its filled buckets. */
export interface EncodedHistogram {
  /** Of sum, min and max. */
  unit: 'ns' | 'µs';
  count: number;
  sum: number;
  min: number;
  max: number;
  /** Index, count, index, count… */
  buckets: number[];
}

/** Counts since it began; histograms since they were last reset. */
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
  /** Waiting now for clients that read too slowly. */
  backlogBytes: number;
  /** Commands waiting now in the shards. */
  queuedJobs: number;
  /** Streams that are held in JS now. */
  inJs: number;
  /** Connections over the limit that were closed without an answer. */
  cut: number;
  shardFailures: number;
  closed: Record<CloseReason, number>;
  /** Requests, by status. */
  refused: Record<RefusalStatus, number>;
  /** Of pings, in µs. */
  lateness: EncodedHistogram;
  /** CPU per stream opened, ping and delivery, in ns; empty in JS, which can't tell. */
  openCpu: EncodedHistogram;
  pingCpu: EncodedHistogram;
  deliveryCpu: EncodedHistogram;
}

/**
 * What is thrown, with a message of one line. `code` is BAD_OPTION, BAD_ARGUMENT, NOT_ADOPTABLE, OVER_CAPACITY, LISTENING
 * or CLOSED, and for `onError` also SHARD_FAILED.
 */
export interface HoldfastError extends Error {
  code: string;
}

/**
 * Many open streams. Where the native core is available, it holds them outside the JS heap; what it can't take (TLS,
 * HTTP/2, compressed responses), and everything where it is not available, is held in JS behind the same methods. In the
 * latter case there is one process warning that says why (NO_NATIVE). HOLDFAST_NATIVE=off in the environment forces it.
 *
 * Everything said to streams takes effect in the order it was said: a stream that `decide` holds gets what is published
 * after that, and nothing published before.
 */
export class Hold {
  /** @throws {HoldfastError} BAD_OPTION */
  constructor(options?: HoldOptions);

  /** Whether the native core holds the streams. */
  readonly isNative: boolean;

  /**
   * Whether each shard has a descriptor table of its own, so that a process can hold more streams than its descriptor
   * limit. Where the kernel refused that to several shards, there is one process warning (SHARED_DESCRIPTORS).
   */
  readonly hasOwnTables: boolean;

  /**
   * Listens for requests, which the policy decides about. It keeps the process alive.
   * @param port 0, the default, takes a free one
   * @param host '', the default, is every address of the machine
   * @returns the port
   * @throws {HoldfastError} LISTENING if it does already, CLOSED, BAD_ARGUMENT, or a system error such as EADDRINUSE
   */
  listen(port?: number, host?: string): Promise<number>;

  /**
   * Takes over the stream of a response. What was written to it before still leaves, and from then on only this Hold
   * writes to it. If it is held natively, 'close' is emitted on the response now, and the socket of JS is gone; if it is
   * held in JS, when the stream ends. This does not keep the process alive; the response's server does.
   * A client that has gone by then is no error: its stream opens and closes, with an id, as 'client-gone'.
   * @param response of node:http, node:https or HTTP/2, without a length. If its head was not sent yet, it is sent, with
   *   the default headers of a stream where they are not set
   * @param options `channels` are at most 1024, and 16,000 bytes together; `encoding` is 'events' by default
   * @returns the id of the stream
   * @throws {HoldfastError} NOT_ADOPTABLE with the reason, OVER_CAPACITY, BAD_ARGUMENT. The application can then go on
   *   with the response, whose head may have been sent
   */
  adopt(
    response: ServerResponse | Http2ServerResponse,
    options?: { channels?: readonly string[]; encoding?: Encoding },
  ): Promise<number>;

  /**
   * Sends a message to every stream that listens to a channel. A string is the data of a message.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  publish(channel: string, message: string | Message): void;

  /**
   * Sends a message to one stream. Here and below nothing happens if it has ended.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  send(id: number, message: string | Message): void;

  /** @throws {HoldfastError} BAD_ARGUMENT */
  subscribe(id: number, channel: string): void;

  /** @throws {HoldfastError} BAD_ARGUMENT */
  unsubscribe(id: number, channel: string): void;

  /**
   * Ends one stream, once what was sent to it has left.
   * @throws {HoldfastError} BAD_ARGUMENT
   */
  end(id: number): void;

  /**
   * Accepts no more, and closes the streams evenly over the period. What was passed on to `server` is yours to close.
   * @param periodMs 0 by default
   * @returns when the last connection is gone; the same for a second call
   */
  close(periodMs?: number): Promise<void>;

  /** @param options `reset` empties the histograms once they are read */
  counters(options?: { reset?: boolean }): Counters;
}
