/*
 * One request and its answer: the handler that undici calls as the answer arrives. It reports once, to the connection
 * it was sent on: either answered or failed.
 */

/** What an exchange reports to. @typedef {{ onAnswered: (exchange: Exchange) => void, onFailed: (exchange: Exchange, error: Error) => void }} Listener */

export class Exchange {
  /** @param {Listener} listener @param {number} dueMs when it should be sent, on performance's clock */
  constructor(listener, dueMs) {
    this.listener = listener;
    this.dueMs = dueMs;
    this.takenMs = performance.now();
    /** When it was sent, or when its connection began to open; 0 before that. */
    this.sentMs = 0;
    this.status = 0;
    this.server = '';
    this.bodyBytes = 0;
    this.isOver = false;
  }

  /** Its connection is being opened for it, or it is being written: whichever comes first. */
  begin() {
    this.sentMs ||= performance.now();
  }

  /** Ends it without a report; whatever still arrives is ignored. */
  abandon() {
    this.isOver = true;
  }

  onRequestStart() {
    this.begin();
  }

  /**
   * @param {unknown} _controller @param {number} status
   * @param {import('node:http').IncomingHttpHeaders} headers
   */
  onResponseStart(_controller, status, { server }) {
    this.status = status;
    this.server = String(server ?? '');
  }

  /** @param {unknown} _controller @param {Buffer} chunk */
  onResponseData(_controller, chunk) {
    this.bodyBytes += chunk.length;
  }

  onResponseEnd() {
    if (this.isOver) return;
    this.isOver = true;
    this.listener.onAnswered(this);
  }

  /** @param {unknown} _controller @param {Error} error */
  onResponseError(_controller, error) {
    if (this.isOver) return;
    this.isOver = true;
    this.listener.onFailed(this, error);
  }
}
