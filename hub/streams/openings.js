/*
 * Opens streams: decides what a new stream gets first and which channels it is on, in one step with holding it, so that
 * nothing is lost or repeated between the two.
 */

import { EVENTS } from './events.js';
import { LINES } from './lines.js';

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
/** What a stream gets that was to be opened in an order that is over: its client comes again. @type {Beginning} */
const OVER = { text: '', isWhole: false };

/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./positions.js').Position} Position */
/** @typedef {import('./recovery.js').Plan} Plan */

/**
 * A stream that can be held now.
 * @typedef {object} Opening
 * @property {string | undefined} reported for the head of the response
 * @property {() => Beginning} begin to be called in the moment in which the stream is held. If the text is not whole, the response ends
 *   after it, and the client comes again for the rest
 *
 * @typedef {{ text: string, isWhole: boolean } & Partial<import('./recovery.js').Replay>} Beginning without a cursor if the client has to come
 *   again with the one it has
 */

/** @typedef {import('./events.js').Script} Script */

/** The opening of a stream that gets a replay. @implements {Opening} */
class PlannedOpening {
  /** @param {Openings} openings @param {Plan} plan */
  constructor(openings, plan) {
    this.openings = openings;
    this.plan = plan;
  }

  get reported() {
    return this.plan.reported; // it may turn out later
  }

  begin() {
    return this.openings.begin(this.plan);
  }
}

export class Openings {
  /** @param {import('./recovery.js').Recovery} recovery @param {import('../../lib/hubcounters.js').HubCounters} counts */
  constructor(recovery, counts) {
    this.recovery = recovery;
    this.counts = counts;
    /** The beginning of streams without a cursor. */
    this.shared = { last: -1, uses: 0, beginning: OVER };
    this.ofEvents = this.simple(EVENTS);
    this.ofLines = this.simple(LINES);
  }

  /** @param {Script} script @returns {{ live: Opening, lost: Opening }} `lost`: for a cursor that is of no use */
  simple(script) {
    return {
      live: { reported: undefined, begin: () => this.beginLive(script) },
      lost: { reported: 'earliest', begin: () => this.beginAnew(script) },
    };
  }

  /**
   * @param {string | undefined} cursor @param {Place} place @param {Script} [script] of what the stream gets @param {number} [mostBytes] of that
   * @returns {Opening | Promise<Opening>} a promise if publications have to be collected first
   */
  prepare(cursor, place, script = EVENTS, mostBytes) {
    const position = this.recovery.positions.locate(cursor);
    if (position instanceof Promise)
      return position.then((found) => this.planned(found, place, script, mostBytes));
    return this.planned(position, place, script, mostBytes);
  }

  /** @param {Position} position @param {Place} place @param {Script} script @param {number} [mostBytes] @returns {Opening | Promise<Opening>} */
  planned(position, place, script, mostBytes) {
    const { recovery } = this;
    if (position.isAhead) return { reported: position.reported, begin: () => comeAgain(script) };
    if (position.after === undefined && recovery.latest.byTopic.size === 0) {
      const { live, lost } = script === EVENTS ? this.ofEvents : this.ofLines;
      return position.reported === undefined ? live : lost;
    }
    const plan = recovery.planOf(position, place, script, mostBytes);
    const opening = new PlannedOpening(this, plan);
    return recovery.isReady(plan) ? opening : recovery.prepare(plan).then(() => opening);
  }

  /** @param {Plan} plan @returns {Beginning} */
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

  /** @param {Script} script @returns {Beginning} */
  beginAnew(script) {
    if (this.recovery.isOver) return OVER;
    this.counts.hubRecoveries++;
    this.counts.hubEarliest++;
    return this.beginLive(script);
  }

  /** @param {Script} script @returns {Beginning} */
  beginLive(script) {
    if (this.recovery.isOver) return OVER;
    return script === EVENTS ? this.sharedBeginning() : this.recovery.nothing(script, 0);
  }

  /** Streams that begin alike share one text, which native compares by its bytes. @returns {Beginning} */
  sharedBeginning() {
    const { last } = this.recovery.window;
    const { shared } = this;
    if (shared.last === last && shared.uses++ < MOST_ALIKE) return shared.beginning;
    this.shared = { last, uses: 0, beginning: this.recovery.nothing(EVENTS, retryMs()) };
    return this.shared.beginning;
  }
}

/** For a client that would get again what it has already. It keeps its cursor. @param {Script} script @returns {Beginning} */
function comeAgain(script) {
  return { text: script === EVENTS ? `retry: ${retryMs()}\n\n` : '', isWhole: false };
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
