/*
 * `node fleet/cli.js requests URL`: loads a route that answers requests, and reports as Apache ab does.
 */
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { HoldfastError, messageOf } from '../../lib/errors.js';
import { formatCount } from '../../lib/format.js';
import { machineLine } from '../../lib/machine.js';
import {
  choice,
  FLAG,
  integer,
  option,
  optionLines,
  readOptions,
  repeated,
  text,
} from '../../lib/options.js';
import { askConsent, isLoopback } from '../drone/consent.js';
import { reportOf, reportText } from './ab.js';
import { Load } from './cannon.js';

const REPORT_MS = 1000;
const DEFAULT_SECONDS = 10;
const DAY_SECONDS = 86_400;
const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
/** What a shell says of a program that a signal ended. @type {Record<string, number>} */
const STATUS_OF = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 };

/** 'Name: value' → [name, value] @type {import('../../lib/options.js').Kind} */
const HEADER = {
  expected: "a header, as in 'Accept: text/html'",
  word: "'NAME: VALUE'",
  read: (given) => /^([!#$%&'*+.^_`|~\w-]+):[ \t]*([\t\x20-\x7e\x80-\u{10ffff}]*)$/u.exec(given)?.slice(1),
};

// biome-ignore format: a table reads best with a row a line
export const OPTIONS = [
  option('concurrency', 'concurrency', integer(1, 20_000), 10, 'connections that send at once', 'c'),
  option('requests', 'requests', integer(1, 1_000_000_000), '', 'requests to send in all', 'n'),
  option('duration', 'seconds', integer(1, DAY_SECONDS), '', `seconds to send for; ${DEFAULT_SECONDS} where neither this nor -n is given`, 'd'),
  option('rps', 'rps', integer(1, 1_000_000), '', 'requests a second to hold, of all connections together; as fast as they are answered without it'),
  option('method', 'method', choice(...METHODS), '', 'method; GET without it, or POST where there is a body', 'm'),
  option('header', 'headers', repeated(HEADER), [], 'header to send; may be given again', 'H'),
  option('body', 'body', text('TEXT', 'a text'), '', 'body to send', 'b'),
  option('timeout', 'timeout', integer(1, DAY_SECONDS), 10, 'seconds that an answer may take', 't'),
  option('keep-alive', 'keepAlive', FLAG, true, 'keep the connections, as it does anyway', 'k'),
  option('json', 'json', FLAG, false, 'print the report as JSON'),
  option('quiet', 'quiet', FLAG, false, 'say nothing while it runs', 'q'),
];

/**
 * @typedef {object} Values
 * @property {number} concurrency
 * @property {number | ''} requests '' where it is not given, as with the others
 * @property {number | ''} seconds
 * @property {number | ''} rps
 * @property {string} method
 * @property {[string, string][]} headers
 * @property {string} body
 * @property {number} timeout seconds
 * @property {boolean} json
 * @property {boolean} quiet
 */

/** @typedef {{ url: string, host: string, servername: string, shown: string }} Target how it is dialled, and how it is told */

/**
 * Sets the exit status: 1 where a request failed, 130 where Ctrl-C ended it.
 * @param {string[]} args after the word `requests`
 * @throws {HoldfastError} BAD_OPTION, NO_HOST, NO_CONSENT
 */
export async function main(args) {
  const { values: read, words, help } = readOptions(OPTIONS, args, {}, 1);
  if (help) return void process.stdout.write(helpText());
  const values = /** @type {Values} */ (/** @type {unknown} */ (read));
  const target = await targetOf(words[0] ?? '');
  const plan = planOf(values, target);
  const load = new Load(plan);
  const watch = values.quiet ? null : watchOf(load);
  const signals = stopBySignal(load);
  const measured = await load.run();
  watch?.close();
  const report = reportOf(askedOf(plan, target.shown), measured, machineLine());
  process.stdout.write(values.json ? `${JSON.stringify(report)}\n` : reportText(report));
  process.exitCode = STATUS_OF[signals.close()] ?? (report.isOk ? 0 : 1);
}

/**
 * What may be loaded: this machine, or a server that consents, at the address that was asked.
 * @param {string} given
 * @returns {Promise<Target>}
 */
async function targetOf(given) {
  const url = urlOf(given);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const address = await allowedAddress(url, host);
  const { host: named, href } = url;
  const servername = isIP(host) ? '' : host;
  // 'localhost' may be 127.0.0.1 or ::1, whichever answers; any other name could be another address the next time.
  if (host !== 'localhost') url.hostname = address.includes(':') ? `[${address}]` : address;
  return { url: url.href, host: named, servername, shown: withoutUser(href) };
}

/** @param {string} href */
function withoutUser(href) {
  const url = new URL(href);
  url.username = '';
  url.password = '';
  url.hash = '';
  return url.href;
}

/** @param {string} given @returns {URL} */
function urlOf(given) {
  const text = given.includes('://') ? given : `http://${given}`;
  const url = given !== '' && URL.canParse(text) ? new URL(text) : null;
  if (url && (url.protocol === 'http:' || url.protocol === 'https:')) return url;
  const what = given === '' ? 'no URL' : `'${given}'`;
  throw new HoldfastError(
    'BAD_OPTION',
    `requests got ${what}: expected one such as http://127.0.0.1:8888/; see requests --help`,
  );
}

/** @param {URL} url @param {string} host @returns {Promise<string>} */
async function allowedAddress({ protocol, port }, host) {
  const address = await lookup(host).then(
    (found) => found.address,
    (error) => {
      throw new HoldfastError('NO_HOST', `'${host}' is not known here (${messageOf(error)})`);
    },
  );
  if (isLoopback(address)) return address;
  if (protocol === 'https:') {
    const why = 'consent is asked over http, so https is for servers of this machine';
    throw new HoldfastError('NO_CONSENT', `https://${host} is not dialled: ${why}`);
  }
  return (await askConsent(host, Number(port || 80))).address;
}

/** @param {Values} values @param {Target} target @returns {import('./cannon.js').Plan} */
function planOf(values, { url, host, servername }) {
  const { concurrency, requests, seconds, rps, method, headers, body, timeout } = values;
  const limit = requests === '' ? Number.POSITIVE_INFINITY : requests;
  const isEndless = requests === '' && seconds === '';
  return {
    url,
    method: method || (body === '' ? 'GET' : 'POST'),
    headers: joined([['Host', host], ...headers]),
    body,
    servername,
    connections: Math.min(concurrency, limit),
    requests: limit,
    durationMs: isEndless
      ? DEFAULT_SECONDS * 1000
      : seconds === ''
        ? Number.POSITIVE_INFINITY
        : seconds * 1000,
    rps: rps || 0,
    timeoutMs: timeout * 1000,
  };
}

/**
 * Headers of one name become one, but for Host, where the last counts.
 * @param {[string, string][]} headers @returns {Record<string, string>}
 */
function joined(headers) {
  /** @type {Map<string, [string, string]>} */
  const found = new Map();
  for (const [name, value] of headers) {
    const key = name.toLowerCase();
    const before = key === 'host' ? undefined : found.get(key)?.[1];
    found.set(key, [
      name,
      before === undefined ? value : `${before}${key === 'cookie' ? '; ' : ', '}${value}`,
    ]);
  }
  return Object.fromEntries(found.values());
}

/** @param {import('./cannon.js').Plan} plan @param {string} url @returns {import('./ab.js').Asked} */
function askedOf({ method, connections, requests, durationMs, rps, timeoutMs }, url) {
  const limit = (/** @type {number} */ value) => (Number.isFinite(value) ? value : null);
  return {
    url,
    method,
    concurrency: connections,
    requests: limit(requests),
    durationMs: limit(durationMs),
    rps: rps || null,
    timeoutMs,
  };
}

/** @param {Load} load @returns {{ close: () => string }} which tells the signal that came; '' for none */
function stopBySignal(load) {
  let came = '';
  /** @param {string} signal */
  const stop = (signal) => {
    came ||= signal;
    load.stop('stopped');
  };
  const names = Object.keys(STATUS_OF);
  for (const name of names) process.once(name, stop); // the second ends it at once
  return {
    close: () => {
      for (const name of names) process.off(name, stop);
      return came;
    },
  };
}

/** Says each second how it goes: one line that is drawn anew in a terminal, else a line each. @param {Load} load */
function watchOf({ tally, plan }) {
  const { isTTY } = process.stderr;
  let before = 0;
  const timer = setInterval(() => {
    const { complete } = tally;
    const of = Number.isFinite(plan.requests) ? ` of ${formatCount(plan.requests)}` : '';
    const counts = `${formatCount(complete)}${of} answered, ${formatCount(complete - before)} in the last second`;
    const line = `requests: ${counts}, failed ${formatCount(tally.failures())}`;
    process.stderr.write(isTTY ? `\r\x1b[K${line}` : `${line}\n`);
    before = complete;
  }, REPORT_MS);
  return {
    close: () => {
      clearInterval(timer);
      if (isTTY) process.stderr.write('\r\x1b[K');
    },
  };
}

function helpText() {
  return `Usage: node fleet/cli.js requests URL [options]

Loads a route that answers requests, and reports as Apache ab does. It loads this machine, or a server that was
started with --accept-load. Certificates of https are not checked.

${optionLines(OPTIONS)}

With --rps the latency of a request counts from when it was due, so that a server which stalls is charged for all that
it kept waiting; else from its sending. Exit status 1 where a request failed: no answer, or a status that is neither
2xx nor 3xx. Ctrl-C ends it, and prints what was measured.
`;
}
