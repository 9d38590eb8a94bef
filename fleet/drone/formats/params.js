/*
 * The parameters of a drone that have to do with formats other than text and events.
 */
import { choice, integer, option } from '../../../lib/options.js';

const MOST_WAIT_S = 60;

/** In addition to text and events. */
export const FORMATS = ['ndjson', 'poll', 'websocket'];

/** The former name of `format`. */
export const FORMER = 'accept';

/**
 * @typedef {object} FormatParams
 * @property {number} wait seconds
 */

// biome-ignore format: a table reads best with one row per line
export const FORMAT_PARAMS = [
  option(FORMER, 'format', choice('text', 'events', ...FORMATS), 'text', 'the former name of format'),
  option(
    'wait',
    'wait',
    integer(1, MOST_WAIT_S),
    25,
    'seconds that a poll waits for its answer, with --format poll',
  ),
];
