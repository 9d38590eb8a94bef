/*
 * Answers the heads of requests: takes apart what native wrote down of them, has `decide` say what to do, and
 * writes that as commands.
 */
import { REFUSAL_STATUSES, zeroes } from '../lib/reasons.js';
import { isEventStream } from './adopt.js';
import { formatBits } from './commands.js';
import { Openings } from './openings.js';
import { badArgument, checkChannels, checkResponse } from './settings.js';
import { headAnswer, refusal } from './wire.js';

/** What ends a head, and what stands for a header that was not sent. */
const END = '\0';
const ABSENT = '\r';
/** Heads that are remembered, and how long one may be. */
const MOST_HEADS = 256;
const MOST_REMEMBERED = 1024;
/**
 * When so many alike heads were asked about, native is told how those are held that follow, once in a while: it knows
 * for a second.
 */
const ALIKE = 32;
const TELL_EVERY_MS = 500;
/** Headers that `decide` of wire.js looks at. */
const HEADERS = ['host', 'accept', 'content-length', 'transfer-encoding'];
/** @type {Head} */
const NO_HEAD = { method: '', target: '503', version: '', headers: {} };

/** @typedef {import('./wire.js').Head} Head */
/** @typedef {{ lines: string, asked: number, toldMs: number }} Kind of heads that are held alike */

export class Heads {
  /**
   * @param {Pick<Required<import('./hold.js').HoldOptions>, 'decide' | 'headers'> & { server?: object }} settings
   * @param {import('./commands.js').Commands} commands
   * @param {{ onNoRoom: (id: number) => void, onError: (error: unknown) => void }} listener
   */
  constructor({ decide, headers, server }, commands, { onNoRoom, onError }) {
    this.decide = decide;
    this.canPass = server !== undefined;
    this.commands = commands;
    this.onNoRoom = onNoRoom;
    this.onError = onError;
    /** Headers that native is to write down, in this order. */
    this.names = [...new Set([...HEADERS, ...headers])];
    this.refused = zeroes(REFUSAL_STATUSES);
    this.openings = new Openings();
    /** @type {Map<string, Head>} */
    this.known = new Map();
    /** @type {WeakMap<Head, Kind>} */
    this.kinds = new WeakMap();
  }

  /** @param {Float64Array} ids @param {string} lines of each head */
  answer(ids, lines) {
    const records = lines.split(END);
    this.openings.refresh();
    let head = NO_HEAD;
    for (let i = 0; i < ids.length; i++) {
      // An empty record is as the one before.
      if (records[i] !== '') head = this.known.get(records[i]) ?? this.parse(records[i]);
      // Without a method it is no head, but the status to refuse one with.
      if (head.method === '') this.refuseAsTold(ids[i], Number(head.target));
      else this.tryToAct(ids[i], head);
    }
  }

  /** @param {number} id @param {number} status 503 only where `decide` had it held */
  refuseAsTold(id, status) {
    this.refuse(id, status, false);
    if (status === 503) this.onNoRoom(id);
  }

  /** A `decide` that throws costs the one request. @param {number} id @param {Head} head */
  tryToAct(id, head) {
    try {
      this.act(id, head);
    } catch (error) {
      this.commands.undo();
      this.refuse(id, 503, head.method === 'HEAD');
      this.onError(error);
    }
  }

  /**
   * Clients send the same heads over and over: each is taken apart once. A long one is not remembered, and a short
   * one as a copy: a part of a string keeps all of it.
   * @param {string} record @returns {Head}
   */
  parse(record) {
    const isShort = record.length <= MOST_REMEMBERED;
    const own = isShort ? Buffer.from(record, 'latin1').toString('latin1') : record;
    const [method, target, version, ...values] = own.split('\n');
    /** @type {Head['headers']} */
    const headers = {};
    values.forEach((value, i) => {
      if (value !== ABSENT) headers[this.names[i]] = value;
    });
    const head = { method, target, version, headers };
    if (this.known.size >= MOST_HEADS) this.known.clear();
    if (isShort) {
      this.known.set(own, head);
      this.kinds.set(head, { lines: own, asked: 0, toldMs: 0 });
    }
    return head;
  }

  /** @param {number} id @param {Head} head */
  act(id, head) {
    const decision = this.decide(head, id);
    if ('hold' in decision && head.method === 'HEAD') this.commands.refuse(id, headAnswer(decision.hold));
    else if ('hold' in decision) {
      const { hold: format, channels = [], always = false } = decision;
      const isChunked = head.version !== '1.0';
      checkChannels(channels);
      this.commands.hold(id, {
        format: formatBits(isEventStream(format.contentType), isChunked),
        bytes: this.openings.of(format, isChunked),
        channels,
      });
      if (always) this.noteAlike(head, { format, isChunked, channels });
    } else if ('refuse' in decision) this.refuse(id, decision.refuse, head.method === 'HEAD');
    else if ('head' in decision) this.commands.refuse(id, headAnswer(decision.head));
    else if ('answer' in decision) {
      const response = decision.answer();
      checkResponse(response);
      this.commands.refuse(id, response);
    } else if (!decision.pass)
      throw badArgument('decide gives { hold }, { head }, { refuse }, { answer } or { pass: true }');
    else if (this.canPass) this.commands.pass(id);
    else this.refuse(id, 404, head.method === 'HEAD');
  }

  /**
   * Where many come alike, native may go on by itself.
   * @param {Head} head @param {{ format: import('./wire.js').Format, isChunked: boolean, channels: readonly string[] }} how
   */
  noteAlike(head, { format, isChunked, channels }) {
    const kind = this.kinds.get(head);
    if (!kind || ++kind.asked < ALIKE) return;
    const nowMs = performance.now();
    if (nowMs < kind.toldMs + TELL_EVERY_MS) return;
    kind.asked = 0;
    kind.toldMs = nowMs;
    this.commands.standing(kind.lines, {
      format: formatBits(isEventStream(format.contentType), isChunked),
      all: this.openings.all(format, isChunked),
      channels,
    });
  }

  /** @param {number} id @param {number} status @param {boolean} headOnly */
  refuse(id, status, headOnly) {
    const known = /** @type {import('../lib/reasons.js').RefusalStatus} */ (status);
    if (!REFUSAL_STATUSES.includes(known))
      throw badArgument(`decide refuses with one of ${REFUSAL_STATUSES.join(', ')}, not ${status}`);
    this.refused[known]++;
    this.commands.refuse(id, refusal(known, headOnly));
  }
}
