/*
 * Opens streams: decides what a new stream gets first and which channels it is on, in one step with holding it, so that
 * nothing is lost or repeated between the two.
 */

/** Clients reconnect after a time of about this, each after another. */
const RETRY_MIN_MS = 2000;
const RETRY_SPREAD_MS = 3000;
/** Clients that have to come again for the rest of a replay come soon. */
const SOON_MS = 100;
/** Streams that may share a beginning, `retry` included. */
const MOST_ALIKE = 32;
/** Streams whose token expires end at different times: earlier by at most this part of the time that is left. */
const EXPIRY_SPREAD = 0.1;
const MOST_EXPIRY_SPREAD_MS = 60_000;
/** What a stream gets that was to be opened in an order that is over: its client comes again. */
const OVER = { text: '', isWhole: false };

/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./positions.js').Position} Position */
/** @typedef {import('./recovery.js').Plan} Plan */

/**
 * A stream that can be held now.
 * @typedef {object} Opening
 * @property {string | undefined} reported for the head of the response
 * @property {() => { text: string, isWhole: boolean }} begin to be called in the moment in which the stream is held. If the text is not
 *   whole, the response ends after it, and the client comes again for the rest
 */

export class Openings {
  /** @param {import('./recovery.js').Recovery} recovery @param {import('../../lib/hubcounters.js').HubCounters} counts */
  constructor(recovery, counts) {
    this.recovery = recovery;
    this.counts = counts;
    /** The beginning of streams without a cursor. */
    this.shared = { last: -1, uses: 0, text: '' };
    /** @type {Opening} */
    this.live = { reported: undefined, begin: () => this.beginLive() };
    /** For a cursor that is of no use. @type {Opening} */
    this.lost = { reported: 'earliest', begin: () => this.beginAnew() };
  }

  /**
   * @param {string | undefined} cursor @param {Place} place
   * @returns {Opening | Promise<Opening>} a promise if publications have to be collected first
   */
  prepare(cursor, place) {
    const position = this.recovery.positions.locate(cursor);
    if (position instanceof Promise) return position.then((found) => this.planned(found, place));
    return this.planned(position, place);
  }

  /** @param {Position} position @param {Place} place @returns {Opening | Promise<Opening>} */
  planned(position, place) {
    const { recovery } = this;
    if (position.isAhead) return { reported: position.reported, begin: comeAgain };
    if (position.after === undefined && recovery.latest.byTopic.size === 0)
      return position.reported === undefined ? this.live : this.lost;
    const plan = recovery.planOf(position, place);
    const opening = {
      get reported() {
        return plan.reported;
      },
      begin: () => this.begin(plan),
    };
    return recovery.isReady(plan) ? opening : recovery.prepare(plan).then(() => opening);
  }

  /** @param {Plan} plan @returns {{ text: string, isWhole: boolean }} */
  begin(plan) {
    const { recovery, counts } = this;
    if (recovery.isOver) return OVER;
    const whole = recovery.replay(plan, retryMs());
    const replay = whole.isWhole ? whole : recovery.replay(plan, SOON_MS);
    counts.hubReplayed += replay.count;
    if (plan.reported !== undefined) counts.hubRecoveries++;
    if (plan.reported === 'earliest') counts.hubEarliest++;
    return replay;
  }

  /** @returns {{ text: string, isWhole: boolean }} */
  beginAnew() {
    if (this.recovery.isOver) return OVER;
    this.counts.hubRecoveries++;
    this.counts.hubEarliest++;
    return this.beginLive();
  }

  /** @returns {{ text: string, isWhole: boolean }} */
  beginLive() {
    return this.recovery.isOver ? OVER : { text: this.sharedText(), isWhole: true };
  }

  /** Streams that begin alike share one text, which native compares by its bytes. @returns {string} */
  sharedText() {
    const { last } = this.recovery.window;
    const { shared } = this;
    if (shared.last === last && shared.uses++ < MOST_ALIKE) return shared.text;
    this.shared = { last, uses: 0, text: this.recovery.positionText(retryMs()) };
    return this.shared.text;
  }
}

/** For a client that would get again what it has already. It keeps its cursor. @returns {{ text: string, isWhole: boolean }} */
function comeAgain() {
  return { text: `retry: ${retryMs()}\n\n`, isWhole: false };
}

/** @returns {number} how long a client waits before it comes back */
export function retryMs() {
  return RETRY_MIN_MS + Math.floor(RETRY_SPREAD_MS * Math.random());
}

/**
 * @param {import('../access/grants.js').Session | null} session @param {number} nowMs
 * @returns {{ subject: number, token: number, expiresAtMs?: number } | undefined} what native has to know about a stream
 */
export function labelsOf(session, nowMs) {
  if (!session) return undefined;
  const { subject, token, expiresAtMs } = session;
  if (subject === 0 && token === 0 && expiresAtMs === Number.POSITIVE_INFINITY) return undefined;
  if (expiresAtMs === Number.POSITIVE_INFINITY) return { subject, token };
  const spread = Math.min(MOST_EXPIRY_SPREAD_MS, (expiresAtMs - nowMs) * EXPIRY_SPREAD);
  return { subject, token, expiresAtMs: expiresAtMs - Math.max(0, spread) * Math.random() };
}
