/*
 * The publications of the fleet's own publisher: {"p":1763733211123,"n":17,"t":81234567890123,"topic":"room/17","x":"…"}.
 * `p` is the publisher (when it began, in unix ms), `n` counts the publications of a topic from 1, `t` is when it was sent in
 * ns of the monotonic clock, which only programs on the same machine share, or instead `w` in µs of the wall clock. Pure,
 * except for the clocks, and read in the same way by native/core/src/dial/publication.rs.
 */

const FORMAT = /^\{"p":(\d{1,18}),"n":(\d{1,10}),"([tw])":(\d{1,18}),"topic":"([^"]*)".*\}$/s;
const MOST_NUMBER = 0xffffffff;

/** @typedef {'monotonic' | 'wall'} Clock */
/** @typedef {{ publisher: number, number: number, clock: Clock, topic: string }} Facts */
/** `sent` is in the unit of the clock. @typedef {Facts & { sent: number }} Publication */

/**
 * @param {Facts} facts the topic without quotes, backslashes and control characters
 * @param {number} size bytes to fill up to
 * @returns {string} sent now
 */
export function dataOf({ publisher, number, clock, topic }, size) {
  const sent = clock === 'monotonic' ? `"t":${process.hrtime.bigint()}` : `"w":${wallUs()}`;
  const data = `{"p":${publisher},"n":${number},${sent},"topic":"${topic}"}`;
  const padding = size - Buffer.byteLength(data) - ',"x":""'.length;
  return padding > 0 ? `${data.slice(0, -1)},"x":"${'x'.repeat(padding)}"}` : data;
}

/** @param {string} data each character is a byte @returns {Publication | null} null if it isn't one of ours */
export function publicationIn(data) {
  const found = FORMAT.exec(data);
  if (!found) return null;
  const [publisher, number, sent] = [found[1], found[2], found[4]].map(Number);
  if (publisher === 0 || number === 0 || number > MOST_NUMBER) return null;
  return { publisher, number, clock: found[3] === 't' ? 'monotonic' : 'wall', sent, topic: found[5] };
}

/** @param {Publication} publication @returns {number} ms since it was sent */
export function ageMs({ clock, sent }) {
  return clock === 'monotonic'
    ? Number(process.hrtime.bigint()) / 1e6 - sent / 1e6
    : (wallUs() - sent) / 1000;
}

function wallUs() {
  return Math.round((performance.timeOrigin + performance.now()) * 1000);
}
