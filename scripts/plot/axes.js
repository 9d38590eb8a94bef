/*
 * The numbers behind axes and labels. Pure.
 */
const MINUTE = 60;
const HOUR = 3600;
/** Between two labels of the time axis, s. */
const TIME_STEPS = [
  1,
  2,
  5,
  10,
  15,
  30,
  60,
  120,
  300,
  600,
  900,
  1800,
  HOUR,
  7200,
  10800,
  21600,
  43200,
  86400,
];
const MOST_TIME_LABELS = 10;
/** A mark every minute; or every ten minutes, hour or day if that would be too many. */
const MARK_STEPS = [MINUTE, 600, HOUR, 86400];
const MOST_MARKS = 150;

/**
 * @typedef {object} TimeAxis
 * @property {number} end s
 * @property {number[]} marks s; every minute if there is room
 * @property {number} labelStep marks at multiples of it have a label
 * @property {number} strongStep marks at multiples of it have a stronger line: a whole minute or more
 * @property {string} title
 * @property {'m:ss' | 'min' | 'h:mm'} form of the labels
 */

/** @param {number} lastS @returns {TimeAxis} */
export function timeAxis(lastS) {
  const end = Math.max(1, lastS);
  const labelStep =
    TIME_STEPS.find((step) => end / step <= MOST_TIME_LABELS) ?? Math.ceil(end / 10 / 86400) * 86400;
  const markStep = Math.min(labelStep, MARK_STEPS.find((step) => end / step <= MOST_MARKS) ?? labelStep);
  const form = labelStep < MINUTE ? 'm:ss' : end <= 3 * HOUR ? 'min' : 'h:mm';
  return {
    end,
    marks: Array.from({ length: Math.floor(end / markStep) + 1 }, (_, i) => i * markStep),
    labelStep,
    strongStep: Math.max(MINUTE, labelStep),
    title: `time since the start (${form})`,
    form,
  };
}

/** @param {number} most the largest value @returns {number} the end of an axis from 0: a round number slightly above it */
export function niceEnd(most) {
  if (!(most > 0)) return 1;
  const step = niceStep(most / 5);
  return Math.ceil((most * 1.02) / step) * step;
}

/** @param {number} rough @returns {number} the next 1, 2, 2.5 or 5 times a power of ten */
function niceStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 2.5, 5].find((n) => n * power >= rough) ?? 10) * power;
}

/** @param {number} least above 0 @param {number} most @returns {{ domain: [number, number], marks: number[] }} for a logarithmic axis, with marks at 1, 2 and 5 times powers of ten */
export function logAxis(least, most) {
  const marks = [];
  for (let power = Math.floor(Math.log10(least)) - 1; power <= Math.ceil(Math.log10(most)) + 1; power++) {
    for (const n of [1, 2, 5]) marks.push(Number((n * 10 ** power).toPrecision(1)));
  }
  const from = marks.findLastIndex((mark) => mark < least);
  const to = marks.findIndex((mark) => mark > most);
  const shown = marks.slice(from, to + 1);
  return { domain: [shown[0], shown[shown.length - 1]], marks: shown };
}

/** @param {number} mostBytes @returns {{ unit: string, factor: number }} for the labels of an axis of bytes */
export function byteUnit(mostBytes) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, mostBytes)) / 3)));
  return { unit: units[power], factor: 1000 ** power };
}

/**
 * Moves labels apart, each as little as necessary.
 * @param {number[]} wanted the preferred position of each @param {number} gap between two @param {number} low @param {number} high
 * @returns {number[]} in the same order
 */
export function spread(wanted, gap, low, high) {
  const order = wanted.map((at, i) => ({ at, i })).sort((a, b) => a.at - b.at || a.i - b.i);
  for (const [i, one] of order.entries()) one.at = Math.max(one.at, i === 0 ? low : order[i - 1].at + gap);
  for (let i = order.length - 1; i >= 0; i--) {
    order[i].at = Math.min(order[i].at, i === order.length - 1 ? high : order[i + 1].at - gap);
  }
  const placed = wanted.map(() => 0);
  for (const { at, i } of order) placed[i] = at;
  return placed;
}
