/*
 * A queue of items on channels. Channels take turns, so that a long queue of one does not delay the others; the items of a
 * channel keep their order.
 */

/** @template T */
export class Turns {
  constructor() {
    /** @type {Map<string, T[]>} by channel, none of them empty; the first channel is next */
    this.lines = new Map();
  }

  /** @param {string} channel @param {T} item */
  push(channel, item) {
    const line = this.lines.get(channel);
    if (line) line.push(item);
    else this.lines.set(channel, [item]);
  }

  /** @returns {T | undefined} the next item, which stays; undefined if there is none */
  peek() {
    const [line] = this.lines.values();
    return line?.[0];
  }

  /** @returns {T | undefined} the next item; then it is the turn of the next channel */
  shift() {
    const [first] = this.lines;
    if (!first) return undefined;
    const [channel, line] = first;
    const item = line.shift();
    this.lines.delete(channel);
    if (line.length > 0) this.lines.set(channel, line);
    return item;
  }

  /** All items, channel by channel. @returns {T[]} */
  all() {
    return [...this.lines.values()].flat();
  }
}
