/*
 * Publications as JSON, for replays: a line each. Live ones are encoded by the transport, byte for byte alike (test/hub.ndjson.test.js
 * compares them). The members are in the same order, and those that a publication does not have are left out.
 */

/** @typedef {import('../../broker/index.js').Publication} Publication */

/** A position is not written: the head, or another line, says it. @type {import('./events.js').Script} */
export const LINES = { name: 'line', textOf: lineOf, positionOf: () => '' };

/** @param {Publication} publication @param {string} id its own, or its cursor @returns {string} */
export function lineOf(publication, id) {
  const { type, data } = publication;
  return `${JSON.stringify({ id, type, topic: topicOf(publication), data })}\n`;
}

/**
 * @param {{ topics: readonly string[], private: boolean }} publication
 * @returns {string | undefined} what JSON says that it is about: its first topic; undefined if that could be one that the client may not know
 */
export function topicOf({ topics, private: isPrivate }) {
  return isPrivate && topics.length > 1 ? undefined : topics[0];
}

/** @param {string} text lines @returns {string} the items of a JSON array */
export function itemsOf(text) {
  return text.slice(0, -1).replaceAll('\n', ',');
}
