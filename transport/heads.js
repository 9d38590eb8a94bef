/*
 * Answers the heads that the native core asks about: parses what it wrote down of them, asks the policy, and writes what
 * it decided as commands.
 */
import { formatOf } from '../native/protocol.js';
import { decisionOn, headOf } from './policy.js';
import { answerOf, streamLines, welcomesOf } from './responses.js';

/** What ends the record of a head, and what stands for a header that was not sent. */
const END = '\0';
const ABSENT = '\r';
/** Parsed heads that are kept, and how long a record of one may be. */
const MOST_HEADS = 256;
const MOST_KEPT_LENGTH = 1024;
/** After so many alike that are always held, native is told to hold those without asking. */
const ALIKE = 32;
/** @type {readonly string[]} */
const NO_CHANNELS = [];
const NO_BODY = Buffer.alloc(0);

/** @typedef {import('./policy.js').Head} Head */
/** @typedef {import('./policy.js').Decision} Decision */
/** @typedef {{ head: Head, lines: string, asked: number }} Known a head, its record, and how often it was always held */

export class Heads {
  /**
   * @param {import('./policy.js').Policy} policy
   * @param {boolean} canPass whether there is a server to pass requests to
   * @param {import('./commands.js').Commands} commands
   * @param {{ onError: (error: unknown) => void, onAnswer: () => void }} listener `onAnswer` is called when a promised
   *   decision was written
   */
  constructor(policy, canPass, commands, { onError, onAnswer }) {
    this.policy = policy;
    this.canPass = canPass;
    this.commands = commands;
    this.onError = onError;
    this.onAnswer = onAnswer;
    /** Headers that native is to write down, in this order. */
    this.names = [...new Set(policy.headers ?? [])];
    /** @type {Map<string, Known>} by record: clients send the same heads over and over */
    this.known = new Map();
  }

  /** @param {Float64Array} ids @param {string} lines a record for each, Latin-1; an empty one is like the one before */
  answer(ids, lines) {
    const records = lines.split(END);
    /** @type {Known | undefined} */
    let known;
    ids.forEach((id, i) => {
      if (!known || records[i] !== '') known = this.known.get(records[i]) ?? this.parse(records[i]);
      this.ask(id, known);
    });
  }

  /** @param {string} record @returns {Known} */
  parse(record) {
    const isShort = record.length <= MOST_KEPT_LENGTH;
    // A part of a string keeps the whole batch in memory; a copy does not.
    const lines = isShort ? Buffer.from(record, 'latin1').toString('latin1') : record;
    const [method, target, version, ...values] = lines.split('\n');
    const sent = this.names.flatMap((name, i) => (values[i] === ABSENT ? [] : [[name, values[i]]]));
    const known = { head: headOf(method, target, version, Object.fromEntries(sent)), lines, asked: 0 };
    if (this.known.size >= MOST_HEADS) this.known.clear();
    if (isShort) this.known.set(lines, known);
    return known;
  }

  /** @param {number} id @param {Known} known */
  ask(id, known) {
    const decision = decisionOn(this.policy, known.head, id, this.onError);
    if (!(decision instanceof Promise)) return this.act(id, known, decision);
    // One that comes after its deadline finds nobody: native has answered 503.
    void decision.then((late) => {
      this.act(id, known, late);
      this.onAnswer();
    });
  }

  /** @param {number} id @param {Known} known @param {Decision} decision */
  act(id, known, decision) {
    const isHead = known.head.method === 'HEAD';
    if ('hold' in decision) this.hold(id, known, decision);
    else if ('refuse' in decision) this.commands.refuse(id, decision.refuse);
    else if ('answer' in decision) {
      const { head, body } = answerOf(decision.answer, isHead);
      this.commands.respond(id, head, body);
    } else if (this.canPass) this.commands.pass(id);
    else this.commands.refuse(id, 404);
  }

  /** @param {number} id @param {Known} known @param {import('./policy.js').HoldDecision} decision */
  hold(id, known, { hold: encoding, headers: own, welcome, channels = NO_CHANNELS, always = false }) {
    if (known.head.method === 'HEAD')
      return this.commands.respond(id, streamLines(encoding, false, own), NO_BODY);
    const isChunked = known.head.version !== '1.0';
    const opening = {
      format: formatOf(encoding, isChunked),
      head: streamLines(encoding, isChunked, own),
      welcomes: welcomesOf(welcome),
      channels,
    };
    this.commands.hold(id, opening);
    if (always) this.countAlike(known, opening);
  }

  /** @param {Known} known @param {import('./commands.js').Opening} opening */
  countAlike(known, opening) {
    if (++known.asked < ALIKE) return;
    known.asked = 0; // native forgets the oldest, and then asks again
    this.commands.remember(known.lines, opening);
  }
}
