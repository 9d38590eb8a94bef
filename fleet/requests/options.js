/*
 * The options of `requests`: those for every URL, those for http, and those for the protocols of caches.
 */
import { HoldfastError } from '../../lib/errors.js';
import { optionLines } from '../../lib/help.js';
import { choice, FLAG, integer, option, readOptions, repeated, text } from '../../lib/options.js';
import { HEADER } from './headers.js';
import { isCacheUrl } from './memcached/address.js';

export const DEFAULT_SECONDS = 10;
const DAY_SECONDS = 86_400;
const MEGABYTE = 1_048_576;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

// biome-ignore format: a table reads best with a row a line
const COMMON = [
  option('concurrency', 'concurrency', integer(1, 20_000), 10, 'connections, each with one request or batch at a time', 'c'),
  option('requests', 'requests', integer(1, 1_000_000_000), '', 'total number of requests', 'n'),
  option('duration', 'seconds', integer(1, DAY_SECONDS), '', `seconds to run; ${DEFAULT_SECONDS} if neither this nor -n is given`, 'd'),
  option('timeout', 'timeout', integer(1, DAY_SECONDS), 10, 'seconds until an answer must be complete', 't'),
  option('keep-alive', 'keepAlive', FLAG, true, 'keep connections open; always on, accepted because ab has it', 'k'),
  option('json', 'json', FLAG, false, 'print the report as JSON'),
  option('quiet', 'quiet', FLAG, false, 'print no progress', 'q'),
];

// biome-ignore format: a table reads best with a row a line
const HTTP = [
  option('rps', 'rps', integer(1, 1_000_000), '', 'requests per second, over all connections; without it, as fast as they are answered'),
  option('method', 'method', choice(...METHODS), '', 'method; default GET, or POST with a body', 'm'),
  option('header', 'headers', repeated(HEADER), [], 'request header; may be given more than once', 'H'),
  option('body', 'body', text('TEXT', 'a text'), '', 'request body', 'b'),
];

// biome-ignore format: a table reads best with a row a line
const CACHE = [
  option('op', 'op', choice('get', 'set', 'mixed'), 'get', 'what is asked; mixed is nine gets to one set, as with memcslap'),
  option('pipeline', 'pipeline', integer(1, 10_000), 1, 'requests that a connection sends at once; the next batch follows when all are answered'),
  option('keys', 'keys', integer(1, 10_000_000), 10_000, 'different keys, chosen at random; before gets, each is set once'),
  option('value-size', 'valueSize', integer(0, 128 * MEGABYTE), 100, 'bytes of each value'),
];

const KINDS = {
  http: { own: HTTP, foreign: CACHE, others: 'memcached and redis URLs' },
  cache: { own: CACHE, foreign: HTTP, others: 'http URLs' },
};
/** The default of options that only some URLs have, until the URL is known: a value that cannot be given. */
const NOT_GIVEN = Symbol('not given');

/**
 * @param {string[]} args
 * @returns {{ values: Record<string, unknown>, url: string, isCache: boolean, help: boolean }} url: '' if none is given
 * @throws {HoldfastError} BAD_OPTION, also for an option that makes no sense for the URL
 */
export function readValues(args) {
  const special = [...HTTP, ...CACHE].map((one) => ({ ...one, default: NOT_GIVEN }));
  const { values, words, help } = readOptions([...COMMON, ...special], args, {}, 1);
  const [url = ''] = words;
  const isCache = isCacheUrl(url);
  const { own, foreign, others } = KINDS[isCache ? 'cache' : 'http'];
  const wrong = foreign.find(({ key }) => values[key] !== NOT_GIVEN);
  if (wrong && url && !help)
    throw new HoldfastError('BAD_OPTION', `--${wrong.flag} is only for ${others}, not for ${url}`);
  for (const { key, default: byDefault } of own) if (values[key] === NOT_GIVEN) values[key] = byDefault;
  return { values, url, isCache, help };
}

/** @param {number | ''} requests @param {number | ''} seconds @returns {number} ms; Infinity if only the number of requests is limited */
export function durationOf(requests, seconds) {
  if (seconds !== '') return seconds * 1000;
  return requests === '' ? DEFAULT_SECONDS * 1000 : Number.POSITIVE_INFINITY;
}

/** @param {import('../../lib/options.js').Option[]} options @returns {string} their lines without --help, which comes once */
function linesOf(options) {
  return optionLines(options, []);
}

/** @returns {string} */
export function helpText() {
  return `Usage: node fleet/cli.js requests URL [options]

Loads a route that answers requests, and reports as Apache ab does. It loads this machine, or a server started with
--accept-load. Certificates are not checked with https. The URL of a cache on this machine may be memcached://127.0.0.1:11211
or redis://127.0.0.1:6379, or memcached:///run/memcached.sock for a Unix socket.

${optionLines(COMMON)}

Only for http:
${linesOf(HTTP)}

Only for memcached and redis (a native program sends the requests; cargo builds it the first time):
${linesOf(CACHE)}

With --rps, the latency of a request counts from when it was due, so a server that stalls is charged for every request
it delayed; without it, latency counts from when the request was sent. The exit status is 1 if a request failed: no
answer, a status that is not 2xx or 3xx, or an answer of a cache that is an error, a miss or not the right value. Ctrl-C ends
the run and prints what was measured.
`;
}
