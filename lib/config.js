/*
 * The one table of the server's options. Below this file no code has a default of its own. Times are ms.
 */

import { MOST_WORKERS } from './descriptors.js';
import { choice, either, FLAG, integer, option, optionLines, readOptions, text } from './options.js';

/**
 * @typedef {object} Config
 * @property {number} port
 * @property {string} host '' for every address of the machine
 * @property {number | 'auto'} workers
 * @property {number} streams how many to plan for; 0 for as many as the descriptors of the workers hold
 * @property {'auto' | 'http' | 'hold'} transport
 * @property {number} pingIntervalMs
 * @property {number} sampleIntervalMs
 * @property {number} refreshMs
 * @property {number} gcIntervalMs
 * @property {boolean} nagle
 * @property {number} maxHeadBytes
 * @property {number} headTimeoutMs
 * @property {number} maxBacklogBytes
 * @property {number} drainMs
 * @property {boolean} acceptLoad
 * @property {'auto' | 'tui' | 'lines' | 'off'} dashboard
 * @property {string} logDir
 * @property {boolean} noLog
 * @property {number | 'auto'} adminPort 0 for off
 */

const DAY_MS = 86_400_000;
const PORT = integer(0, 65_535);

// biome-ignore format: a table reads best with a row a line
export const OPTIONS = [
  option('port', 'port', PORT, 8888, 'port of the streams; 0 takes a free one'),
  option('host', 'host', text('ADDRESS', 'an address of this machine'), '', 'address to listen on (all of them)'),
  option('workers', 'workers', either('auto', integer(1, MOST_WORKERS)), 'auto', 'worker processes; auto is one a core, or what --streams needs'),
  option('streams', 'streams', integer(0, 100_000_000), 0, 'streams to plan for; 0 is what the workers can hold'),
  option('transport', 'transport', choice('auto', 'http', 'hold'), 'auto', 'what holds the streams: hold is native, http is node:http; auto is hold where it is built'),
  option('ping-interval', 'pingIntervalMs', integer(10, DAY_MS), 20_000, 'ms between two pings to a stream'),
  option('sample-interval', 'sampleIntervalMs', integer(1, 1000), 10, 'ms between two ticks of a worker'),
  option('refresh', 'refreshMs', integer(100, 60_000), 1000, 'ms between two frames: a line, a row of the CSV, a drawing'),
  option('gc-interval', 'gcIntervalMs', integer(100, DAY_MS), 60_000, 'ms between two gc() in each process, under node --expose-gc'),
  option('nagle', 'nagle', FLAG, false, 'leave Nagle on: a small write waits for an acknowledgement'),
  option('max-head', 'maxHeadBytes', integer(256, 1_048_576), 8192, 'bytes that a request head may have; past it 431'),
  option('head-timeout', 'headTimeoutMs', integer(100, DAY_MS), 10_000, 'ms that a request head may take; past it 408'),
  option('max-backlog', 'maxBacklogBytes', integer(0, 1_073_741_824), 65_536, 'bytes that may wait for a stream; past it the stream is closed as slow'),
  option('drain', 'drainMs', integer(0, DAY_MS), 5000, 'ms over which the streams are let go at the end'),
  option('accept-load', 'acceptLoad', FLAG, false, 'say at /.well-known/holdfast-load that a load fleet may dial this server from elsewhere'),
  option('dashboard', 'dashboard', choice('auto', 'tui', 'lines', 'off'), 'auto', 'auto is tui in a terminal, lines elsewhere'),
  option('log-dir', 'logDir', text('DIR', 'a folder'), 'logs', 'folder of the CSV'),
  option('no-log', 'noLog', FLAG, false, 'write no CSV'),
  option('admin-port', 'adminPort', either('auto', PORT), 8890, 'port on 127.0.0.1 of /healthz /readyz /frame /metrics /publish; 0 is off, auto a free one'),
];

/**
 * @param {string[]} args as in process.argv.slice(2)
 * @param {Record<string, string | undefined>} env
 * @returns {{ config: Config, help: boolean, version: boolean }}
 * @throws {import('./errors.js').HoldfastError} BAD_OPTION
 */
export function readConfig(args, env) {
  const { values, help, version } = readOptions(OPTIONS, args, env);
  return { config: /** @type {Config} */ (/** @type {unknown} */ (values)), help, version };
}

/** @returns {string} what `--help` prints */
export function helpText() {
  return `Usage: node [node flags] server.js [options]

Holds open HTTP streams, pings each, and shows live what each one costs.

${optionLines(OPTIONS)}

Each option is a variable of the environment too: --ping-interval N is HOLDFAST_PING_INTERVAL=N; a flag is 1 or 0.
Flags of node stand before server.js and reach the workers: node --expose-gc server.js
Ctrl-C drains: the streams are let go, then the server ends. A second Ctrl-C ends it at once.
`;
}
