/*
 * What `import … from 'holdfast'` is to TypeScript. test/fixtures/types/same.ts fails to compile where this and
 * transport/hold.js drift apart.
 */
import type { Server, ServerResponse } from 'node:http';

/** How messages look on a stream. */
export interface Format {
  contentType: string;
  /** What is written at once. @param random 0 to 1 */
  welcome: (random: number) => string;
  ping: string;
  /** How a published message is written. */
  message: (text: string) => string;
}

/** Plain text, and Server-Sent Events. Streams are one of the two; a format of your own differs in its welcome. */
export const FORMATS: Record<'text' | 'events', Format>;

/** The head of a request. */
export interface Head {
  method: string;
  /** As it was sent, such as '/news?channel=a'. */
  target: string;
  /** '1.1' or '1.0'. */
  version: string;
  /** Host, Accept, Content-Length, Transfer-Encoding, and those of `HoldOptions.headers`; names in lower case. */
  headers: Record<string, string | string[] | undefined>;
}

/** Why a stream ended. */
export type CloseReason =
  | 'client-gone'
  | 'slow'
  | 'drain'
  | 'dead-peer'
  | 'over-capacity'
  | 'bad-request'
  | 'error';

/** What a request can be refused with. */
export type RefusalStatus = 400 | 404 | 405 | 408 | 431 | 503 | 505;

/**
 * `hold` opens a stream that listens to `channels`, 1024 at most (to a HEAD it answers as `head` does). `always` says
 * that whatever has the same method, target, version and headers (host, accept, content-length, transfer-encoding, and
 * those of `headers`) is held the same, whoever sends it: when many come, most of them are then held without asking
 * `decide`. `head` and `refuse` answer, `answer` does with a whole response (a string of Latin-1), after which the
 * connection ends, `pass` hands the connection, of which nothing was read, to the `server` of the options.
 */
export type HoldDecision =
  | { hold: Format; channels?: readonly string[]; always?: boolean }
  | { head: Format }
  | { refuse: RefusalStatus }
  | { answer: () => string }
  | { pass: true };

export interface HoldOptions {
  /** What to do with a request, and the id that its stream will have. Without it every request is passed on. */
  decide?: (head: Head, id: number) => HoldDecision;
  /** Names, in lower case, of other headers that `decide` looks at. */
  headers?: string[];
  /** Takes what is passed on. */
  server?: Server;
  /** Called for every stream that ends, and, as 'over-capacity', for one that was to be held and found no room. */
  onClose?: (id: number, reason: CloseReason) => void;
  /** Called with what `decide` or `onClose` threw. Without it that is a warning of the process. */
  onError?: (error: unknown) => void;
  /** What is written each interval: 'ping', and an empty comment to streams of events. */
  ping?: { text: string; events: string };
  /** 20,000 */
  pingIntervalMs?: number;
  /** Threads; each holds as many streams as a process may have descriptors. 1 */
  shards?: number;
  /** Streams that one shard takes; past it 503. */
  capacity?: number;
  /** Connections that one shard takes, 2,097,152 at most; past it they wait. */
  connectionLimit?: number;
  /** false */
  nagle?: boolean;
  /** 8192; past it 431 */
  maxHeadBytes?: number;
  /** 10,000; past it 408 */
  headTimeoutMs?: number;
  /** What may wait for a client that does not read; past it the stream is closed as slow. 65,536 */
  maxBacklogBytes?: number;
  /** Where its shards stand among all of the machine, so that they don't wake together. */
  seat?: number;
  seats?: number;
}

/** A histogram. */
export interface Encoded {
  count: number;
  sum: number;
  min: number;
  max: number;
  /** Place, count, place, count… */
  buckets: number[];
}

/** Counts since it began; histograms since the last time. */
export interface Counters {
  streams: number;
  connections: number;
  opened: number;
  /** By reason, in the order of `CloseReason`. */
  closed: number[];
  pings: number;
  deliveries: number;
  bytesWritten: number;
  backlogBytes: number;
  latenessUs: Encoded;
  openCpuNs: Encoded;
  pingCpuNs: Encoded;
  deliveryCpuNs: Encoded;
}

/**
 * What is thrown, with a message of one line. `code` is NO_NATIVE, BAD_OPTION, BAD_ARGUMENT, NOT_ADOPTABLE,
 * OVER_CAPACITY, LISTENING or CLOSED.
 */
export interface HoldfastError extends Error {
  code: string;
}

/** Many open streams, held natively. */
export class Hold {
  /** @throws {HoldfastError} NO_NATIVE where the native core is not here, BAD_OPTION */
  constructor(options?: HoldOptions);

  /**
   * Listens for streams, which `decide` opens. It keeps the process alive.
   * @param port 0, as without it, takes a free one
   * @param host '', as without it, is every address of the machine
   * @returns the port
   */
  listen(port?: number, host?: string): Promise<number>;

  /**
   * Takes over the stream of a response of node:http: what was written to it still leaves, and from then on it is
   * held natively and the socket of JS is gone ('close' is emitted on the response). It does not keep the process
   * alive; the server that the response is of does.
   * @param response without a length; its head is sent if it was not yet
   * @param how 1024 channels at most, whose names take 16,000 bytes together; `subscribe` adds to them
   * @returns the id of the stream
   * @throws {HoldfastError} NOT_ADOPTABLE, and why; OVER_CAPACITY. The application can go on with the response then,
   * whose head may have been sent
   */
  adopt(response: ServerResponse, how?: { channels?: readonly string[] }): Promise<number>;

  /** Sends a message to every stream that listens to a channel. On streams of events it is the data of one. */
  publish(channel: string, message: string): void;

  /** Sends a message to one stream; one that has ended is passed over in silence, here and below. */
  send(id: number, message: string): void;

  subscribe(id: number, channel: string): void;

  unsubscribe(id: number, channel: string): void;

  /** Ends one stream gently. */
  end(id: number): void;

  /**
   * Accepts no more, lets the streams go evenly over the period, and ends the threads. What was passed on to the
   * `server` is yours to close.
   */
  close(periodMs?: number): Promise<void>;

  take(): Counters;
}
