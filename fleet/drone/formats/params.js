/*
 * The parameters of a drone that have to do with formats other than text and events.
 */
import { integer, option } from '../../../lib/options.js';

const MOST_WAIT_S = 60;

/** In addition to text and events. */
export const FORMATS = ['ndjson', 'poll', 'websocket'];

/**
 * @typedef {object} FormatParams
 * @property {number} wait seconds
 */

export const FORMAT_PARAMS = [
  option(
    'wait',
    'wait',
    integer(1, MOST_WAIT_S),
    25,
    'seconds that a poll waits for its answer, with --format poll',
  ),
];
