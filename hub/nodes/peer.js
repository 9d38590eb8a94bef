/*
 * Another node, as this one knows it: what it tells about its streams, until we have all of them.
 *
 *     unknown --ask--> asked --first part--> filling --last part--> whole
 *                        ^                      |                     |
 *                        \----------- a change is missing, or a part -/
 */
import { isTextOfStream } from '../presence/others.js';
import { Pieces } from './messages.js';

/** @typedef {import('../presence/others.js').Others} Others */
/** @typedef {import('./messages.js').Change} Change */
/** @typedef {import('./messages.js').Part} Part */
/** @typedef {import('./messages.js').Row} Row */

export class Peer {
  /**
   * @param {object} options
   * @param {string} options.id
   * @param {Others | null} options.others where its streams are listed; null without presence
   * @param {(ask: number) => void} options.ask asks it for its table
   * @param {(line: string) => void} options.onProblem
   */
  constructor({ id, others, ask, onProblem }) {
    this.id = id;
    this.others = others;
    this.onAsk = ask;
    this.onProblem = onProblem;
    this.life = 0;
    /** @type {'unknown' | 'asked' | 'filling' | 'whole'} */
    this.state = 'unknown';
    /** When something last came of what we have asked for. */
    this.askedMs = 0;
    this.lastAsk = 0;
    /** Of the last change that we have. */
    this.number = 0;
    this.nextIndex = 0;
    /** @type {import('../presence/node.js').Node | null} */
    this.node = null;
    this.changePieces = new Pieces();
    this.partPieces = new Pieces();
    /** Streams and workers that have left since we asked: a part may be older. @type {Set<string>} */
    this.gone = new Set();
    /** Some of its streams are missing for lack of room. */
    this.isCut = false;
  }

  /** @param {number} nowMs */
  ask(nowMs) {
    if (!this.others) return;
    this.state = 'asked';
    this.askedMs = nowMs;
    this.onAsk(++this.lastAsk);
  }

  /** It is alive. @param {number} number of its last change @param {number} nowMs */
  beat(number, nowMs) {
    if (this.state === 'unknown' || (this.state === 'whole' && number > this.number)) this.ask(nowMs);
  }

  /** Asks again if no answer comes. @param {number} nowMs @param {number} answerMs */
  look(nowMs, answerMs) {
    const isWaiting = this.state === 'asked' || this.state === 'filling';
    if (isWaiting && nowMs - this.askedMs > answerMs) this.ask(nowMs);
  }

  /** @param {Change} change @param {number} nowMs */
  change({ number, entered, left, retired }, nowMs) {
    const { node, others } = this;
    if (!others || !node || (this.state !== 'filling' && this.state !== 'whole') || number <= this.number)
      return;
    if (number !== this.number + 1) return this.ask(nowMs);
    this.number = number;
    this.enter(node, others, entered, this.changePieces);
    for (const [owner, id] of left) {
      if (this.state === 'filling') this.gone.add(`${owner} ${id}`);
      others.leave(node, owner, id);
    }
    for (const owner of retired) {
      if (this.state === 'filling') this.gone.add(`${owner}`);
      others.retire(node, owner);
    }
  }

  /** @param {Part} part @param {number} nowMs @returns {boolean} whether the next one is wanted */
  part({ ask, index, life, number, key, rows, isLast }, nowMs) {
    const { others } = this;
    if (!others || ask !== this.lastAsk || life !== this.life) return false;
    if (index === 0 && this.state === 'asked') this.begin(others, number, key);
    const { node } = this;
    if (!node || this.state !== 'filling' || index !== this.nextIndex) return false;
    this.nextIndex++;
    this.askedMs = nowMs;
    const isOpen = (/** @type {Row} */ [owner, id]) =>
      !this.gone.has(`${owner} ${id}`) && !this.gone.has(`${owner}`);
    this.enter(node, others, rows, this.partPieces, isOpen);
    if (isLast) this.end(others, node);
    return true;
  }

  /** @param {Others} others @param {number} number @param {string} key */
  begin(others, number, key) {
    this.state = 'filling';
    this.number = number;
    this.nextIndex = 0;
    this.isCut = false;
    this.gone.clear();
    this.changePieces = new Pieces();
    this.partPieces = new Pieces();
    this.node = others.begin(this.id, this.life, Buffer.from(key, 'base64'));
  }

  /** @param {Others} others @param {import('../presence/node.js').Node} node */
  end(others, node) {
    others.end(node);
    this.gone.clear();
    this.state = 'whole';
  }

  /**
   * @param {import('../presence/node.js').Node} node @param {Others} others @param {Row[]} rows @param {Pieces} pieces
   * @param {(row: Row) => boolean} [isOpen]
   */
  enter(node, others, rows, pieces, isOpen = () => true) {
    for (const row of rows) {
      const [owner, id] = row;
      const text = pieces.take(row);
      if (text === undefined || !isOpen(row)) continue;
      if (!isTextOfStream(text)) this.onProblem('a stream of another node is not listed: its text is wrong');
      else if (!others.enter(node, owner, id, text)) this.cut();
    }
  }

  /** There is no room for one of its streams. */
  cut() {
    if (this.isCut) return;
    this.isCut = true;
    this.onProblem(
      'there is no room for all streams of other nodes, and the list lacks some: raise --max-presence',
    );
  }
}
