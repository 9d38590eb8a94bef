/*
 * The streams of a worker, here or on another node: a text for each. They are in generations, newest first, of which there is
 * usually one.
 */
import { countIn } from './texts.js';

/** What a stream takes besides the characters of its text, at most: 52 for its place in a map, 24 for the text, and what a map has spare. */
const STREAM_BYTES = 96;
/** The streams of a table are in this many maps, because a map that grows is copied. */
const MAPS = 61;

/** @param {string} text */
export function bytesOf(text) {
  return STREAM_BYTES + 2 * text.length;
}

/** Streams by id. */
export class Table {
  /** @param {number} life of the node in which they were announced */
  constructor(life) {
    this.life = life;
    /** Others have announced the end of its streams, and so they are announced again. */
    this.isStale = false;
    /** Streams, what they take, and how many subscriptions they are. */
    this.size = 0;
    this.bytes = 0;
    this.count = 0;
    /** @type {(Map<number, string> | undefined)[]} */
    this.maps = Array.from({ length: MAPS });
  }

  /** @param {number} id @returns {string | undefined} */
  get(id) {
    return this.maps[id % MAPS]?.get(id);
  }

  /** @param {number} id of a stream that it does not have @param {string} text */
  add(id, text) {
    const place = id % MAPS;
    this.maps[place] ??= new Map();
    this.maps[place].set(id, text);
    this.account(text, 1);
  }

  /** @param {number} id @returns {string | undefined} the text of the stream, which it has no more */
  take(id) {
    const map = this.maps[id % MAPS];
    const text = map?.get(id);
    if (map === undefined || text === undefined) return undefined;
    map.delete(id);
    this.account(text, -1);
    return text;
  }

  /** @param {string} text @param {1 | -1} sign */
  account(text, sign) {
    this.size += sign;
    this.bytes += sign * bytesOf(text);
    this.count += sign * countIn(text);
  }

  /** @returns {Generator<[id: number, text: string]>} those that are there when it comes to them */
  *streams() {
    for (const map of this.maps) if (map) yield* map;
  }
}

export class Owner {
  /** @param {import('./node.js').Node} node @param {number} number of the worker on that node */
  constructor(node, number) {
    this.node = node;
    this.number = number;
    /** Its worker is gone, and others have its streams. */
    this.isOrphan = false;
    /** Never empty. @type {Table[]} */
    this.tables = [new Table(node.life)];
  }

  /** The newest one: streams that enter are there. */
  get table() {
    return this.tables[0];
  }

  /** Streams that enter from now on are in a table of their own. */
  begin() {
    const used = this.tables.filter(({ size }) => size > 0);
    this.tables = [new Table(this.node.life), ...used];
  }

  /** @param {number} id @returns {Table | undefined} the one that has it */
  tableOf(id) {
    return this.tables.find((table) => table.get(id) !== undefined);
  }

  /** @returns {Generator<[id: number, text: string, table: Table]>} those that are there when it comes to them */
  *streams() {
    for (const table of this.tables) for (const [id, text] of table.streams()) yield [id, text, table];
  }
}
