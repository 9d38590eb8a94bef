/*
 * Answers request heads for the native core: parses its records of them, asks the policy, and writes the decisions as
 * commands.
 */
import { BoundedMap } from '../lib/boundedmap.js';
import { REFUSAL_STATUSES } from '../lib/reasons.js';
import { formatByte, isPoll, isWebSocket } from '../native/protocol.js';
import { LateDecisions } from './late.js';
import { decisionOn, headOf } from './policy.js';
import { answerOf, headLines, headOfStream, refusal, streamLines, WAIT_MS, welcomesOf } from './responses.js';
import { Waiting } from './waiting.js';

/** The end of a record, and the value of a header that was not sent. */
const END = '\0';
const ABSENT = '\r';
/** In a record, after method, target and version. */
const FIRST_HEADER = 3;
/** How many parsed heads are kept, and the longest record that is. */
const MOST_HEADS = 256;
const MOST_KEPT_LENGTH = 1024;
/** After this many identical heads with an `always` decision, native is told to hold them without asking. */
const ALIKE = 32;
/** @type {readonly string[]} */
const NO_CHANNELS = [];
const NO_BODY = Buffer.alloc(0);
/** Statuses that native refuses with by itself. @type {ReadonlySet<number>} */
const NATIVE_REFUSALS = new Set(REFUSAL_STATUSES);

/** @typedef {import('./policy.js').Head} Head */
/** @typedef {import('./policy.js').Decision} Decision */
/** @typedef {import('./policy.js').LateDecision} LateDecision */
/** @typedef {import('../lib/reasons.js').CloseReason} CloseReason */
/** @typedef {import('./commands.js').Opening} Opening */

/**
 * A head with the address of the last client that sent it, its record, how its streams begin if the policy said `always`, and how
 * many were held like that.
 * @typedef {{ head: Head, lines: string, opening: Opening | undefined, alike: number }} Known
 */

export class Heads {
  /**
   * @param {import('./options.js').Settings} settings
   * @param {import('./commands.js').Commands} commands
   * @param {{ onError: (error: unknown) => void, onAnswer: () => void, onRefusal: (status: number) => void, onMiss: (id: number, reason: CloseReason) => void }} listener
   *   `onAnswer` is called when a promised decision has been written, `onRefusal` for refusals that native does not count,
   *   `onMiss` for decisions to hold that open no stream, and of which native does not know
   */
  constructor({ policy, server, answerTimeoutMs }, commands, { onError, onAnswer, onRefusal, onMiss }) {
    this.policy = policy;
    /** Whether there is a server to pass requests to. */
    this.canPass = server !== undefined;
    this.commands = commands;
    this.onError = onError;
    this.onAnswer = onAnswer;
    this.onRefusal = onRefusal;
    this.onMiss = onMiss;
    this.late = new LateDecisions(answerTimeoutMs, onError);
    /** Ids of the requests whose decision is a promise. Native refuses them itself at the deadline. @type {Waiting<number>} */
    this.waiting = new Waiting(answerTimeoutMs, () => this.late.add());
    /** Headers that native puts into a record, in this order. */
    this.names = [...new Set(policy.headers ?? [])];
    /** Whether records end with the client's address. */
    this.hasAddress = policy.address === true;
    /** @type {BoundedMap<string, Known>} by record, because clients send the same heads over and over */
    this.known = new BoundedMap(MOST_HEADS);
  }

  /** @param {Float64Array} ids @param {string} lines one record each, Latin-1; an empty record repeats the one before */
  answer(ids, lines) {
    const records = lines.split(END);
    /** @type {Known | undefined} */
    let known;
    let address = '';
    ids.forEach((id, i) => {
      if (!known || records[i] !== '') {
        const end = this.hasAddress ? records[i].lastIndexOf('\n') : records[i].length;
        const own = records[i].slice(0, end);
        address = records[i].slice(end + 1);
        known = this.known.get(own) ?? this.parse(own, address);
      }
      if (known.opening) this.holdAlike(id, known, known.opening);
      else this.ask(id, known, address);
    });
  }

  /** Decisions that are still to come have no effect any more. */
  stop() {
    this.waiting.clear();
  }

  /** @param {string} record without an address @param {string} address @returns {Known} */
  parse(record, address) {
    const isShort = record.length <= MOST_KEPT_LENGTH;
    const lines = isShort ? copied(record) : record;
    const parts = lines.split('\n');
    const [method, target, version] = parts;
    const headers = this.headersIn(parts);
    const head = headOf(method, target, version, headers, this.hasAddress ? copied(address) : undefined);
    /** @type {Known} */
    const known = { head, lines, opening: undefined, alike: 0 };
    if (isShort) this.known.set(lines, known);
    return known;
  }

  /** @param {readonly string[]} parts of a record @returns {Record<string, string>} */
  headersIn(parts) {
    /** @type {Record<string, string>} */
    const headers = {};
    for (let i = 0; i < this.names.length; i++) {
      const [name, value] = [this.names[i], parts[FIRST_HEADER + i]];
      if (value === ABSENT) continue;
      if (name === '__proto__') Object.defineProperty(headers, name, { value, enumerable: true });
      else headers[name] = value;
    }
    return headers;
  }

  /** @param {number} id @param {Known} known @param {string} address */
  ask(id, known, address) {
    const { method, target, version, headers } = known.head;
    if (this.hasAddress && known.head.address !== address)
      known.head = headOf(method, target, version, headers, copied(address));
    const decision = decisionOn(this.policy, known.head, id, this.onError);
    if (!(decision instanceof Promise)) return this.act(id, known, decision);
    void this.wait(id, known, decision);
  }

  /** @param {number} id @param {Known} known @param {Promise<LateDecision>} promise may resolve too late */
  async wait(id, known, promise) {
    this.waiting.add(id);
    const given = await promise;
    if (this.waiting.delete(id)) {
      // In one step: nothing can be published between what the function sees and the stream.
      this.act(id, known, typeof given === 'function' ? given() : given);
      this.onAnswer();
    } else if ('hold' in given) this.onMiss(id, 'over-capacity');
  }

  /** @param {number} id @param {Known} known @param {Decision} decision */
  act(id, known, decision) {
    const isHead = known.head.method === 'HEAD';
    if ('hold' in decision) this.hold(id, known, decision);
    else if ('refuse' in decision) this.refuse(id, decision, isHead);
    else if ('answer' in decision) this.respond(id, decision.answer, isHead);
    else if (this.canPass) this.commands.pass(id);
    else this.commands.refuse(id, 404);
  }

  /** @param {number} id @param {import('./policy.js').Refusal} decision @param {boolean} isHead */
  refuse(id, decision, isHead) {
    const { refuse: status, headers, body } = decision;
    if (NATIVE_REFUSALS.has(status) && !headers && body === undefined)
      return this.commands.refuse(id, status);
    this.onRefusal(status);
    this.respond(id, refusal(decision), isHead);
  }

  /** @param {number} id @param {import('./policy.js').Answer} answer @param {boolean} isHead */
  respond(id, answer, isHead) {
    const { head, body } = answerOf(answer, isHead);
    this.commands.respond(id, head, body);
  }

  /** @param {number} id @param {Known} known @param {import('./policy.js').HoldDecision} decision */
  hold(
    id,
    known,
    { hold: format, headers: own, welcome, channels = NO_CHANNELS, always = false, labels, tag, waitMs },
  ) {
    if (known.head.method === 'HEAD') return this.answerHead(id, format, own);
    const isChunked = known.head.version !== '1.0';
    const opening = {
      format: formatByte(format, isChunked),
      head: streamLines(format, isChunked, own),
      welcomes: welcomesOf(welcome),
      channels,
      waitMs: isPoll(format) ? (waitMs ?? WAIT_MS) : undefined,
    };
    // The application may change its bytes later.
    if (always) known.opening = { ...opening, welcomes: opening.welcomes.map((bytes) => Buffer.from(bytes)) };
    this.commands.hold(id, opening);
    if (labels) this.commands.label(id, labels);
    if (tag) this.commands.tag(id, tag);
  }

  /** @param {number} id @param {import('../native/protocol.js').Format} format @param {Record<string, string>} [own] */
  answerHead(id, format, own) {
    if (isWebSocket(format)) {
      this.onMiss(id, 'bad-request');
      return this.refuse(id, { refuse: 426 }, true);
    }
    this.onMiss(id, 'drain');
    const { status = 200, headers = {} } = headOfStream(format, own);
    this.commands.respond(id, headLines(status, headers), NO_BODY);
  }

  /** @param {number} id @param {Known} known @param {Opening} opening of every stream with this head */
  holdAlike(id, known, opening) {
    this.commands.hold(id, opening);
    if (++known.alike < ALIKE) return;
    known.alike = 0; // native forgets the oldest heads, and then asks again
    this.commands.remember(known.lines, opening);
  }
}

const scratch = Buffer.allocUnsafe(MOST_KEPT_LENGTH);

/** @param {string} text not longer than MOST_KEPT_LENGTH @returns {string} the same; a substring would keep the whole batch in memory */
function copied(text) {
  return scratch.toString('latin1', 0, scratch.write(text, 'latin1'));
}
