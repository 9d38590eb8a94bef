/*
 * What a new stream gets first: what it missed since its cursor, or the last publication of cached topics.
 *
 * A replay is one text, made in the moment in which the stream is opened, so that live publications follow without a gap. What
 * the window has is found at once. Older publications are collected from the broker before, and so are those of patterns
 * that nobody has asked for lately, a slice at a time.
 *
 *     locate(cursor) --> position --prepare--> (waits) --replay--> the text, in one step with opening the stream
 */
import { HoldfastError } from '../../lib/errors.js';
import { Slices } from '../../lib/slices.js';
import { mayRead } from './audience.js';
import { EVENTS } from './events.js';
import { Pages } from './pages.js';
import { Positions } from './positions.js';

/** Publications that may be compared with patterns at once. */
const AT_ONCE = 500;
/** Compared between two looks at the clock. */
const STEP = 100;
/** Replays that are collected at the same time. */
const MOST_AT_WORK = 8;
/** Sequences that are sorted; more of them are marked in a table. */
const FEW = 256;
/** A replay that has waited longer than this is not collected: by then, the Hold has refused its request. */
const MOST_WAIT_MS = 10_000;

/** @typedef {import('../../broker/index.js').Publication} Publication */
/** @typedef {import('./audience.js').Place} Place */
/** @typedef {import('./positions.js').Position} Position */
/** @typedef {import('../matching/selectors.js').Selector} Selector */
/** @typedef {import('./events.js').Script} Script */

/**
 * @typedef {object} Plan a replay that is being collected
 * @property {Place} place
 * @property {Script} script
 * @property {number} mostBytes of its text, about
 * @property {number | undefined} start where it begins
 * @property {number | undefined} since of the position, until the cached topics have been looked at
 * @property {number | undefined} after where `text` ends
 * @property {string | undefined} reported 'earliest' too if what followed the cursor is no longer stored
 * @property {string} text what does not come from the window
 * @property {number} count publications in it
 * @property {Map<Selector, import('./window.js').Found>} found in the window
 * @property {string[] | undefined} topics cached ones, if they were looked for
 *
 * @typedef {object} Replay
 * @property {string} text begins and ends with a cursor, if the script writes positions
 * @property {boolean} isWhole otherwise the client has to come again for the rest
 * @property {number} count publications in it
 * @property {string} cursor before the first one
 * @property {string} end the cursor with which the client goes on
 */

export class Recovery {
  /**
   * @param {object} parts
   * @param {import('../../broker/index.js').Broker} parts.broker
   * @param {import('./window.js').Window} parts.window
   * @param {import('./latest.js').Latest} parts.latest
   * @param {import('./cursor.js').Cursors} parts.cursors
   * @param {number} parts.mostBytes of a replay
   * @param {number} [parts.mostWaitMs] until its publications are collected
   */
  constructor({ broker, window, latest, cursors, mostBytes, mostWaitMs = MOST_WAIT_MS }) {
    this.broker = broker;
    this.window = window;
    this.latest = latest;
    this.cursors = cursors;
    this.mostBytes = mostBytes;
    this.mostWaitMs = mostWaitMs;
    /** Whether the order has ended: nothing of it is replayed any more. */
    this.isOver = false;
    this.positions = new Positions({ broker, window, cursors });
    this.pages = new Pages(broker);
    this.slices = new Slices(MOST_AT_WORK);
  }

  /** @param {Position} position @param {Place} place @param {Script} [script] @param {number} [mostBytes] @returns {Plan} */
  planOf({ after: start, reported, since }, place, script = EVENTS, mostBytes = this.mostBytes) {
    const found = new Map();
    if (start !== undefined)
      for (const selector of place.selectors) found.set(selector, this.window.foundFor(selector));
    const after = start;
    return {
      place,
      script,
      mostBytes,
      start,
      since,
      after,
      reported,
      text: '',
      count: 0,
      found,
      topics: undefined,
    };
  }

  /** @param {Plan} plan @returns {boolean} whether its replay can be made at once */
  isReady({ place: { selectors }, after: from, since, found, topics }) {
    if (since !== undefined && this.latest.byTopic.size > 0) return false;
    if (from === undefined) return topics !== undefined || this.latest.costOf(selectors) <= AT_ONCE;
    if (from < this.window.first - 1) return false;
    let missing = 0;
    for (const one of found.values()) missing += this.window.missing(one);
    return missing <= AT_ONCE;
  }

  /**
   * Collects what can't be found at once.
   * @param {Plan} plan
   * @returns {Promise<void>} when it is ready
   * @throws {HoldfastError} rejects with BUSY if too many others were collected before it
   */
  prepare(plan) {
    const endMs = performance.now() + this.mostWaitMs;
    return this.slices.run(async () => {
      if (performance.now() > endMs) throw tooMany();
      if (plan.after === undefined) return this.findTopics(plan);
      if (plan.since !== undefined) await this.collectCached(plan, plan.since);
      while (plan.after < this.window.first - 1 && plan.text.length < plan.mostBytes) {
        if (this.isOver) return; // the broker would read from another order
        await this.collect(plan);
      }
      for (const [selector, found] of plan.found) {
        while (this.window.missing(found) > STEP) {
          this.window.extend(found, selector, STEP);
          await this.slices.pause();
        }
      }
    });
  }

  /** Finds the cached topics of a new subscriber. @param {Plan} plan */
  async findTopics(plan) {
    const topics = [];
    let looked = 0;
    for (const topic of this.latest.topics()) {
      if (plan.place.selectors.some((selector) => selector.matches(topic))) topics.push(topic);
      if (++looked % STEP === 0) await this.slices.pause();
    }
    plan.topics = topics;
  }

  /** Adds what is only stored because it is the last publication of a cached topic. @param {Plan} plan @param {number} since */
  async collectCached(plan, since) {
    await this.findTopics(plan);
    const { after: through = since, place, topics = [] } = plan;
    const publications = this.latest
      .of(topics)
      .filter(({ sequence }) => sequence > since && sequence <= through)
      .filter((publication) => mayRead(publication, place.session));
    if (publications.length === 0) return;
    const { text, end, count } = this.textOf(publications, plan);
    plan.start = since;
    plan.text = text;
    plan.count = count;
    if (end !== undefined) plan.after = end;
  }

  /** @param {readonly Publication[]} publications @param {Plan} plan @returns {{ text: string, count: number, end: number | undefined }} `end`: the sequence after which it is cut off */
  textOf(publications, { script, mostBytes }) {
    let text = '';
    for (let count = 0; count < publications.length; count++) {
      if (text.length >= mostBytes) return { text, count, end: publications[count - 1].sequence };
      text += this.window.textOf(publications[count], script);
    }
    return { text, count: publications.length, end: undefined };
  }

  /** Adds a page from the broker. @param {Plan} plan */
  async collect(plan) {
    const { selectors, session } = plan.place;
    const from = plan.after ?? 0;
    const page = await this.pages.read(from);
    // The Hold may have no room yet for what the broker has already: that follows live.
    const publications = page.filter(({ sequence }) => sequence <= this.window.last);
    if (publications[0]?.sequence !== from + 1) plan.reported = 'earliest'; // what followed is no longer stored
    if (publications.length === 0) plan.after = this.window.first - 1;
    for (const publication of publications) {
      const { sequence, topics } = publication;
      const isWanted = selectors.some((selector) => topics.some((topic) => selector.matches(topic)));
      if (isWanted && mayRead(publication, session)) {
        plan.text += this.window.textOf(publication, plan.script);
        plan.count++;
      }
      plan.after = sequence;
      if (plan.text.length >= plan.mostBytes) return;
      if (sequence % STEP === 0) await this.slices.pause();
    }
  }

  /**
   * The text for a stream that is opened now.
   * @param {Plan} plan that is ready; if the window has left it behind since, the replay is not whole
   * @param {number} retryMs
   * @returns {Replay}
   */
  replay(plan, retryMs) {
    const { start, script } = plan;
    if (start === undefined) return this.beginning(plan, retryMs);
    const { text, through, count } = this.rest(plan);
    const [cursor, end] = [this.cursors.of(start), this.cursors.of(through)];
    const begin = script.positionOf(cursor, retryMs);
    const isEmpty = text === '' && plan.text === '' && start === through;
    return {
      text: isEmpty ? begin : `${begin}${plan.text}${text}${script.positionOf(end)}`,
      isWhole: through === this.window.last,
      count: plan.count + count,
      cursor,
      end,
    };
  }

  /** @param {Script} script @param {number} retryMs @returns {Replay} for a stream that begins with what is published next */
  nothing(script, retryMs) {
    const cursor = this.cursors.of(this.window.last);
    return { text: script.positionOf(cursor, retryMs), isWhole: true, count: 0, cursor, end: cursor };
  }

  /**
   * @param {Plan} plan without a cursor @param {number} retryMs
   * @returns {Replay} the last publications of cached topics. Until the client has them all, its cursor is behind them
   */
  beginning(plan, retryMs) {
    const { place, script, topics } = plan;
    const { selectors, session } = place;
    const publications = this.latest
      .of(topics ?? this.latest.topicsOf(selectors))
      .filter((publication) => mayRead(publication, session));
    if (publications.length === 0) return this.nothing(script, retryMs);
    const { text, end: cut } = this.textOf(publications, plan);
    const cursor = this.cursors.of(publications[0].sequence - 1);
    const end = this.cursors.of(cut ?? this.window.last);
    return {
      text: `${script.positionOf(cursor, retryMs)}${text}${script.positionOf(end)}`,
      isWhole: cut === undefined,
      count: 0,
      cursor,
      end,
    };
  }

  /** What the window adds. @param {Plan} plan @returns {{ text: string, through: number, count: number }} `through` a sequence */
  rest({ after: from = 0, text: collected, found, place: { session }, script, mostBytes }) {
    const { window } = this;
    if (from < window.first - 1 || collected.length >= mostBytes)
      return { text: '', through: from, count: 0 };
    let [text, count] = ['', 0];
    for (const sequence of merged(
      [...found].map(([selector, one]) => window.sequencesOf(one, selector, from)),
      window.last,
    )) {
      if (!mayRead(window.at(sequence).publication, session)) continue;
      text += window.textAt(sequence, script);
      count++;
      if (collected.length + text.length >= mostBytes) return { text, through: sequence, count };
    }
    return { text, through: window.last, count };
  }
}

function tooMany() {
  return new HoldfastError('BUSY', 'too many clients ask for what was published long ago: try again later');
}

/**
 * A client may ask for a hundred patterns that all match the same, so this costs hardly more than looking at each once.
 * @param {readonly (readonly number[])[]} lists sequences, ascending @param {number} last not less than any of them
 * @returns {readonly number[]} ascending, each once
 */
function merged(lists, last) {
  if (lists.length === 1) return lists[0];
  const count = lists.reduce((sum, list) => sum + list.length, 0);
  // Most clients have missed a few of very many: a table of all of those would cost more than anything else here.
  if (count < FEW) return [...new Set(lists.flat())].sort((a, b) => a - b);
  const first = lists.reduce((least, list) => Math.min(least, list[0] ?? last), last);
  const isThere = new Uint8Array(last - first + 1);
  for (const list of lists) for (const sequence of list) isThere[sequence - first] = 1;
  /** @type {number[]} */
  const all = [];
  for (let i = isThere.indexOf(1); i >= 0; i = isThere.indexOf(1, i + 1)) all.push(first + i);
  return all;
}
