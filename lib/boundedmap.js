/*
 * A map for what may be asked for again. When it is full it starts anew, but at most once a second: of many that come only once,
 * most are not even kept, so they cost little, and what comes often is soon there again.
 */
const RENEW_MS = 1000;

/**
 * @template Key, Value
 * @extends {Map<Key, Value>}
 */
export class BoundedMap extends Map {
  /** @param {number} most entries */
  constructor(most) {
    super();
    this.most = most;
    this.renewedMs = 0;
  }

  /** Does nothing if there is no room. @override @param {Key} key @param {Value} value */
  set(key, value) {
    if (this.size < this.most || this.has(key)) return super.set(key, value);
    const nowMs = Date.now();
    if (nowMs < this.renewedMs + RENEW_MS) return this;
    this.renewedMs = nowMs;
    this.clear();
    return super.set(key, value);
  }
}
