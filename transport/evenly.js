/*
 * Closes many streams: evenly over a period, so that their clients don't all come back at once, or as soon as possible.
 */
import { performance } from 'node:perf_hooks';

/** Streams that have not ended this long after the period, because their clients don't read, are destroyed. */
const GRACE_MS = 1000;
const STEP_MS = 20;
/** Streams that are closed in one turn of the event loop. */
const STREAMS_A_TURN = 256;

const now = performance.now.bind(performance);

/**
 * @template T
 * @param {readonly T[]} streams
 * @param {number} periodMs
 * @param {(stream: T) => void} close called for each during the period
 * @param {(stream: T) => void} destroy called for each a while after the period, unless stopped before
 * @returns {() => void} stops it, once all streams are gone
 */
export function closeEvenly(streams, periodMs, close, destroy) {
  const startMs = now();
  let next = 0;
  const step = () => {
    const share = periodMs === 0 ? 1 : Math.min(1, (now() - startMs) / periodMs);
    for (const until = Math.ceil(streams.length * share); next < until; next++) close(streams[next]);
  };
  step();
  const stepping = setInterval(step, STEP_MS);
  const cut = setTimeout(() => {
    for (const stream of streams) destroy(stream);
  }, periodMs + GRACE_MS);
  return () => {
    clearInterval(stepping);
    clearTimeout(cut);
  };
}

/**
 * @template T
 * @param {readonly T[]} streams
 * @param {(stream: T) => void} close called for each, for some in each turn of the event loop
 */
export function closeInTurns(streams, close) {
  let next = 0;
  const step = () => {
    const until = Math.min(next + STREAMS_A_TURN, streams.length);
    for (; next < until; next++) close(streams[next]);
    if (next < streams.length) setImmediate(step);
  };
  step();
}
