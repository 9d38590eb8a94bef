/*
 * Answers that are not older than the question: whoever asks while an answer is on its way shares the next one.
 */

/** @template T */
export class Newest {
  /** @param {() => Promise<T>} ask */
  constructor(ask) {
    this.ask = ask;
    /** The answer that is on its way, and the one after it. @type {Promise<T> | null} */
    this.coming = null;
    /** @type {Promise<T> | null} */
    this.next = null;
  }

  /** @returns {Promise<T>} */
  get() {
    if (!this.coming) return this.start();
    this.next ??= this.coming
      .catch(() => {})
      .then(() => {
        this.next = null;
        return this.start();
      });
    return this.next;
  }

  /** @returns {Promise<T>} */
  start() {
    const answer = this.ask().finally(() => {
      this.coming = null;
    });
    this.coming = answer;
    return answer;
  }
}
