/*
 * The pause during a round. Whatever has to happen entirely before the round or entirely after it waits here, in order.
 */
export class Pause {
  constructor() {
    /** @type {{ over: Promise<void>, end: () => void } | null} */
    this.current = null;
  }

  get isOn() {
    return this.current !== null;
  }

  begin() {
    if (this.current) return;
    let end = () => {};
    const over = /** @type {Promise<void>} */ (new Promise((resolve) => (end = resolve)));
    this.current = { over, end };
  }

  end() {
    this.current?.end();
    this.current = null;
  }

  /** @returns {Promise<void>} when it is over */
  async passed() {
    while (this.current) await this.current.over;
  }
}
