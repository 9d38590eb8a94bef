/*
 * The topics, and the last events.
 */
import { formatCount, formatElapsed, formatNoun } from '../../../lib/format.js';
import { byId, element, fillTable, number, setText } from './dom.js';
import { clock } from './plot.js';

/** @typedef {import('./store.js').Store} Store */
/** @typedef {import('./dom.js').Cell} Cell */

/** What the first character of a topic's name says; see primary/topics.js. @type {Record<string, string>} */
const KINDS = { '=': '', '~': 'URL pattern ', '%': 'template ', '#': 'channel ', '*': '' };

/** @param {Store} store */
export function showTopics({ topics }) {
  if (!topics) return;
  const { subscribers, unanswered, publications, sinceMs } = topics;
  fillTable(
    'subscribers',
    subscribers.rows.map(([name, streams, over]) => [
      topicCell(name),
      number(atLeast(streams, over, formatCount)),
    ]),
    'Nobody is on a topic or a channel.',
  );
  const isCut = [...subscribers.rows, ...publications.rows].some(([, , over]) => over > 0);
  const late =
    unanswered > 0
      ? `${formatNoun(unanswered, 'worker')} did not answer in time: the counts are too low. `
      : '';
  setText(
    byId('subscribers-note'),
    `${late}${isCut ? '≥ is a lower bound. ' : ''}Every 5 seconds while this page is open.`,
  );
  const minutes = Math.max(sinceMs, 1000) / 60_000;
  const perMinute = (/** @type {number} */ value) => formatCount(value / minutes);
  fillTable(
    'publications',
    publications.rows.map(([name, total, over]) => [
      topicCell(name),
      number(atLeast(total, over, perMinute)),
    ]),
    'Nothing published yet.',
  );
  setText(
    byId('publications-note'),
    `In the last ${formatElapsed(sinceMs)}; counted while a dashboard is open.`,
  );
}

/** @param {string} name @returns {Cell} */
function topicCell(name) {
  const text = name === '*' ? '* (everything)' : `${KINDS[name[0]] ?? ''}${name.slice(1)}`;
  return { text, className: 'topic' };
}

/** @param {number} value @param {number} over @param {(value: number) => string} format */
function atLeast(value, over, format) {
  return `${over > 0 ? '≥ ' : ''}${format(value)}`;
}

/** Newest first. @param {Store} store */
export function showNotes({ notes }) {
  const list = byId('events');
  const shown = notes.toReversed();
  while (list.children.length > shown.length) list.lastChild?.remove();
  shown.forEach(({ at, line }, i) => {
    const item =
      list.children[i] ?? list.appendChild(element('li', '', element('time', ''), element('span', 'line')));
    const [time, text] = item.children;
    time.setAttribute('datetime', new Date(at).toISOString());
    setText(time, clock(at));
    setText(text, line);
  });
}
