/*
 * Topics while somebody looks at the dashboard: those with most subscribers and those with most publications. Otherwise nothing is
 * counted or kept.
 */
import { performance } from 'node:perf_hooks';
import { mergeTops, Sketch } from '../lib/tops.js';

/** Publications are counted by minute, and those of the last few minutes are added up. */
const SLOT_MS = 60_000;
const SLOTS = 5;
/** Names of a minute, and how much of them is kept: together at most 2 MB in 5 minutes. */
const MOST_NAMES = 500;
const MOST_LETTERS = 200;

/** @typedef {{ sketch: Sketch, startedMs: number }} Slot */
/** @typedef {import('../lib/tops.js').Top} Top */
/**
 * The first character of a name says what it is: `=` a topic, `~` a URL pattern, `%` a URI template, `*` everything, `#` a channel
 * that is not of the hub.
 * @typedef {object} TopicsNow
 * @property {Top} subscribers streams by what they asked for
 * @property {number} unanswered workers that have not reported theirs
 * @property {Top} publications by topic
 * @property {number} sinceMs how long these have been counted
 */

export class Topics {
  /** @param {import('./census.js').Census} census */
  constructor(census) {
    this.census = census;
    /** Oldest first; none while nobody looks. @type {Slot[]} */
    this.slots = [];
    this.isOn = false;
  }

  begin() {
    this.isOn = true;
    this.current();
  }

  end() {
    this.isOn = false;
    this.slots = [];
  }

  /** @param {readonly { topics: readonly string[] }[]} publications of the hub */
  published(publications) {
    if (!this.isOn) return;
    const sketch = this.current();
    for (const { topics } of publications) for (const topic of topics) sketch.add(nameOf('=', topic));
  }

  /** @param {string} channel */
  publishedTo(channel) {
    if (this.isOn) this.current().add(nameOf('#', channel));
  }

  /** @returns {Sketch} of this minute */
  current() {
    const nowMs = performance.now();
    const last = this.slots.at(-1);
    if (last && nowMs < last.startedMs + SLOT_MS) return last.sketch;
    const sketch = new Sketch(MOST_NAMES);
    this.slots = [...this.slots, { sketch, startedMs: nowMs }].filter(
      ({ startedMs }) => startedMs > nowMs - SLOTS * SLOT_MS,
    );
    return sketch;
  }

  /** @param {number} most of each @returns {Promise<TopicsNow>} */
  async read(most) {
    const { top: subscribers, unanswered } = await this.census.take(most);
    if (!this.isOn) return { subscribers, unanswered, publications: mergeTops([], most), sinceMs: 0 }; // nobody looks any more
    this.current();
    const { slots } = this;
    const publications = mergeTops(
      slots.map(({ sketch }) => sketch.top(most)),
      most,
    );
    return { subscribers, unanswered, publications, sinceMs: performance.now() - slots[0].startedMs };
  }
}

/** @param {string} mark @param {string} text @returns {string} of a long text only the beginning, in memory of its own */
function nameOf(mark, text) {
  if (text.length <= MOST_LETTERS) return mark + text;
  return Buffer.from(`${mark}${text.slice(0, MOST_LETTERS)}…`).toString();
}
