/*
 * The one table of the server's options. No other code has defaults. Times are in ms.
 */
import { join } from 'node:path';
import { inRanges, isRange, LOOPBACK } from './addresses.js';
import { MOST_WORKERS } from './descriptors.js';
import { HoldfastError } from './errors.js';
import { optionLines } from './help.js';
import { isNatsUrl, isStreamName } from './nats.js';
import {
  choice,
  either,
  FLAG,
  integer,
  listed,
  option,
  readOptions,
  repeated,
  secret,
  text,
} from './options.js';
import { isHttpUrl, readOrigin } from './origins.js';

/**
 * @typedef {object} Config
 * @property {number} port
 * @property {string} host '' for every address of the machine
 * @property {readonly string[]} tlsCerts files; [] without TLS
 * @property {readonly string[]} tlsKeys files, in the order of the certificates
 * @property {'1.2' | '1.3'} tlsMinVersion
 * @property {number | 'auto'} workers
 * @property {number} streams how many to plan for; 0 for as many as the workers' file descriptors allow
 * @property {boolean} force start even if memory forbids `streams`
 * @property {'auto' | 'http' | 'hold'} transport
 * @property {number} pingIntervalMs
 * @property {boolean} idlePings
 * @property {number} sampleIntervalMs
 * @property {number} refreshMs
 * @property {number} gcIntervalMs
 * @property {boolean} nagle
 * @property {number} maxHeadBytes
 * @property {number} headTimeoutMs
 * @property {number} keepAliveTimeoutMs
 * @property {number} maxHeadsPerAddress
 * @property {readonly string[]} proxies
 * @property {number} maxBacklogBytes
 * @property {number} maxMessageBytes
 * @property {number} maxQueueBytes
 * @property {number} historyCount
 * @property {number} historyAgeMs
 * @property {number} historyBytes
 * @property {readonly string[]} cacheTopics exact topics or URL patterns
 * @property {string} store folder of the disk broker; '' for the memory broker
 * @property {'on' | 'off'} storeSync
 * @property {readonly string[]} nats URLs of its servers; [] without NATS
 * @property {string} natsStream
 * @property {number} natsReplicas of the stream, if it is created
 * @property {string} natsCreds these four are files; '' for none
 * @property {string} natsCa
 * @property {string} natsCert
 * @property {string} natsCertKey
 * @property {number} natsMaxLagMs
 * @property {number} drainMs
 * @property {number} hungAfterMs 0 for never
 * @property {'auto' | 'drain' | 'reload'} sighup what SIGHUP does
 * @property {boolean} takeover whether to take over from the running server
 * @property {boolean} background whether another process of this program becomes the server
 * @property {string} control path of a socket; 'auto' for the one in the log folder, '' for none
 * @property {boolean} acceptLoad
 * @property {string} jwtSecret '' for none; these three are texts of keys, and must not be shown
 * @property {string} jwtPublisherKey
 * @property {string} jwtSubscriberKey
 * @property {string} jwksUrl '' for none
 * @property {string} jwtIssuer '' for any
 * @property {string} jwtAudience '' for the URL of the hub as the client knows it
 * @property {string} jwtCookie
 * @property {boolean} anonymous
 * @property {readonly string[]} corsOrigins
 * @property {readonly string[]} publishOrigins
 * @property {'on' | 'off'} mercureLegacy
 * @property {boolean} subscriptions
 * @property {number} maxPresenceBytes
 * @property {number} maxStreamsPerAddress 0 for no limit, as for the next two
 * @property {number} maxStreamsPerSubject
 * @property {number} maxOpensPerAddress per second
 * @property {number} maxTopicsPerStream
 * @property {number} maxPublicationBytes
 * @property {'auto' | 'tui' | 'lines' | 'off'} dashboard
 * @property {string} logDir
 * @property {boolean} noLog
 * @property {number | 'auto'} adminPort 0 for off
 * @property {string} adminHost
 * @property {string} adminToken '' for none; must not be shown
 */

const DAY_MS = 86_400_000;
/** Nobody can guess 16 random bytes. */
const LEAST_TOKEN_BYTES = 16;
const PORT = integer(0, 65_535);
/** @type {import('./options.js').Kind} */
const RANGE = {
  expected: 'an address or a range such as 10.0.0.0/8',
  word: 'RANGE',
  read: (given) => (isRange(given) ? given : undefined),
};

/** @type {import('./options.js').Kind} */
const ORIGIN = {
  expected:
    'an origin such as https://example.com or https://*.example.com, a scheme such as capacitor://, null or *',
  word: 'ORIGIN',
  read: readOrigin,
};
/** @type {import('./options.js').Kind} */
const HTTP_URL = {
  expected: 'an http or https URL without a user or password',
  word: 'URL',
  isSecret: true,
  read: (given) => (isHttpUrl(given) ? given : undefined),
};
/** @type {import('./options.js').Kind} */
const COOKIE_NAME = {
  expected: 'the name of a cookie',
  word: 'NAME',
  read: (given) => (/^[\w!#$%&'*+.^`|~-]+$/.test(given) ? given : undefined),
};

/** @type {import('./options.js').Kind} */
const NATS_URL = {
  expected: 'a URL such as nats://host:4222, or tls://host:4222',
  word: 'URL',
  isSecret: true,
  read: (given) => (isNatsUrl(given) ? given : undefined),
};
/** @type {import('./options.js').Kind} */
const STREAM_NAME = {
  expected: 'letters, digits, - and _',
  word: 'NAME',
  read: (given) => (isStreamName(given) ? given : undefined),
};
const FILE = text('FILE', 'a file');
/** The kernel takes 108 bytes, with a 0 at the end. */
export const MOST_SOCKET_BYTES = 107;
/** @type {import('./options.js').Kind} */
const CONTROL = {
  expected: `a path of at most ${MOST_SOCKET_BYTES} bytes, or '' for none`,
  word: 'PATH',
  read: (given) => (Buffer.byteLength(given) <= MOST_SOCKET_BYTES ? given : undefined),
};

// biome-ignore format: a table reads best with one row per line
export const OPTIONS = [
  option('port', 'port', PORT, 8888, 'port of the streams; 0 chooses a free one'),
  option('host', 'host', text('ADDRESS', 'an address of this machine'), '', 'address to listen on; all by default'),
  option('tls-cert', 'tlsCerts', repeated(FILE), [], 'certificate with its chain, as PEM: the port of the streams speaks TLS (https). Several for several names; the first one is also for clients that ask for no name, or another one. Read again when it changes'),
  option('tls-key', 'tlsKeys', repeated(FILE), [], 'its key, as PEM; the n-th key belongs to the n-th certificate'),
  option('tls-min-version', 'tlsMinVersion', choice('1.2', '1.3'), '1.3', 'oldest version of TLS that clients may use'),
  option('workers', 'workers', either('auto', integer(1, MOST_WORKERS)), 'auto', 'worker processes; auto is one per core, or more if --streams needs them'),
  option('streams', 'streams', integer(0, 100_000_000), 0, 'streams to plan for; 0 is as many as the workers can hold'),
  option('force', 'force', FLAG, false, 'start even if there is not enough memory for --streams; with --takeover, even without room for all streams'),
  option('transport', 'transport', choice('auto', 'http', 'hold'), 'auto', 'what holds the streams: hold is native, http is node:http; auto is hold if it is built'),
  option('ping-interval', 'pingIntervalMs', integer(10, DAY_MS), 20_000, 'ms between two pings to the same stream'),
  option('idle-pings', 'idlePings', FLAG, false, 'no ping for a stream that has got a message since the last one, so that it may be quiet for two intervals; WebSockets always get theirs'),
  option('sample-interval', 'sampleIntervalMs', integer(1, 1000), 10, 'ms between two ticks of a worker, which show how late its event loop is'),
  option('refresh', 'refreshMs', integer(100, 60_000), 1000, 'ms between two frames: a dashboard update, a line, a CSV row'),
  option('gc-interval', 'gcIntervalMs', integer(100, DAY_MS), 60_000, 'ms between two garbage collections in each process, with node --expose-gc'),
  option('nagle', 'nagle', FLAG, false, 'keep Nagle\'s algorithm on: small writes wait for an acknowledgement'),
  option('max-head', 'maxHeadBytes', integer(256, 1_048_576), 8192, 'most bytes of a request head; above it 431'),
  option('head-timeout', 'headTimeoutMs', integer(100, DAY_MS), 10_000, 'ms within which a request head must be complete; after it 408'),
  option('keep-alive-timeout', 'keepAliveTimeoutMs', integer(100, DAY_MS), 5000, 'ms that a connection is kept open for the next request after an answer'),
  option('max-heads-per-address', 'maxHeadsPerAddress', integer(1, 1_048_576), 256, 'most incomplete request heads of one address per shard; above it the oldest connection is cut'),
  option('proxy', 'proxies', listed(RANGE), LOOPBACK, 'addresses or ranges of proxies, exempt from limits per address; separated by commas, or repeated'),
  option('max-backlog', 'maxBacklogBytes', integer(0, 1_073_741_824), 65_536, 'most bytes waiting to be written to a stream; above it the stream is closed as slow'),
  option('max-message', 'maxMessageBytes', integer(1, 16_777_216), 65_536, 'most bytes of a message from a WebSocket client; above it the WebSocket is closed with 1009'),
  option('max-queue', 'maxQueueBytes', integer(131_072, 1_073_741_824), 16_777_216, 'most bytes of publications waiting for delivery; above it /publish answers 503'),
  option('history-count', 'historyCount', integer(0, 1_000_000_000), 10_000, 'most publications kept for clients that reconnect; 0 keeps none'),
  option('history-age', 'historyAgeMs', integer(0, 3650 * DAY_MS), 3_600_000, 'ms for which they are kept; 0 keeps none'),
  option('history-bytes', 'historyBytes', integer(0, 2 ** 40), 67_108_864, 'most bytes of them; 0 keeps none'),
  option('cache-topics', 'cacheTopics', repeated(text('PATTERN', 'a topic or a URL pattern')), [], 'topics whose last publication is kept for longer, and new subscribers get it first; can be repeated'),
  option('store', 'store', text('DIR', 'a folder'), '', 'folder that keeps publications over a restart; they are in memory by default'),
  option('store-sync', 'storeSync', choice('on', 'off'), 'on', 'on answers publishers once the disk has their publications, off once the operating system has them'),
  option('nats', 'nats', listed(NATS_URL), [], 'NATS with JetStream, which keeps the publications of several servers; its URLs, separated by commas, or repeated'),
  option('nats-stream', 'natsStream', STREAM_NAME, 'HOLDFAST', 'stream of JetStream; servers with the same one are one hub. It is created if there is none, with --history-*'),
  option('nats-replicas', 'natsReplicas', integer(1, 5), 1, 'servers of NATS that keep it, if it is created'),
  option('nats-creds', 'natsCreds', FILE, '', 'credentials file for NATS'),
  option('nats-ca', 'natsCa', FILE, '', 'certificates of authorities for NATS, as PEM'),
  option('nats-cert', 'natsCert', FILE, '', 'certificate of this server for NATS, as PEM'),
  option('nats-cert-key', 'natsCertKey', FILE, '', 'its key'),
  option('nats-max-lag', 'natsMaxLagMs', integer(1000, DAY_MS), 10_000, 'ms for which this server may be behind the stream; above it /readyz answers 503'),
  option('drain', 'drainMs', integer(0, DAY_MS), 5000, 'ms over which streams are closed gradually at shutdown'),
  option('hung-after', 'hungAfterMs', integer(0, DAY_MS), 15_000, 'ms without a report (and at least 3 frames) after which a worker is killed and replaced; 0 is never'),
  option('sighup', 'sighup', choice('auto', 'drain', 'reload'), 'auto', 'what SIGHUP does: drain ends the server, reload replaces the workers one after the other, and their streams go on; auto reads the certificates again with --tls-cert, and is drain without'),
  option('takeover', 'takeover', FLAG, false, 'take over port, streams, publications and counters of the server that answers at --control; that one then exits'),
  option('background', 'background', FLAG, false, 'with --takeover: the server runs in the background, and this command exits once it has taken over, or has failed to'),
  option('control', 'control', CONTROL, 'auto', 'Unix socket at which another server may take over from this one; auto is control.sock in --log-dir, \'\' is none'),
  option('accept-load', 'acceptLoad', FLAG, false, 'let load fleets on other machines test this server (/.well-known/holdfast-load)'),
  option('jwt-secret', 'jwtSecret', secret('SECRET'), '', 'secret of tokens for publishing and subscribing, signed with HS256'),
  option('jwt-publisher-key', 'jwtPublisherKey', secret('KEY'), '', 'key of tokens for publishing, if it is another: a public key as PEM or JWK (RS256, ES256, EdDSA), or a secret'),
  option('jwt-subscriber-key', 'jwtSubscriberKey', secret('KEY'), '', 'the same for subscribing'),
  option('jwks-url', 'jwksUrl', HTTP_URL, '', 'where the public keys of tokens are, as a JWK set; for whatever has no key of its own'),
  option('jwt-issuer', 'jwtIssuer', text('ISSUER', 'the iss of tokens'), '', 'issuer that all tokens must have (iss)'),
  option('jwt-audience', 'jwtAudience', text('URL', 'the aud of tokens'), '', 'audience that all tokens must have (aud), as a URL; without it, only tokens of draft-08 need one: https://, the Host of the request, and the path of the hub'),
  option('jwt-cookie', 'jwtCookie', COOKIE_NAME, '__Secure-mercure_access_token', 'cookie that may have the token'),
  option('anonymous', 'anonymous', FLAG, false, 'let everybody read public updates, without a token'),
  option('cors-origins', 'corsOrigins', listed(ORIGIN), [], 'origins whose pages may use the hub, separated by commas, or repeated: https://example.com, https://*.example.com, capacitor://, null, or * (without cookies)'),
  option('publish-origins', 'publishOrigins', listed(ORIGIN), [], 'origins whose pages may publish with the cookie; * lets every website do that with the cookies of its visitors'),
  option('mercure-legacy', 'mercureLegacy', choice('on', 'off'), 'on', 'whether clients and tokens of Mercure 0.x are accepted'),
  option('subscriptions', 'subscriptions', FLAG, false, 'list who is subscribed to what, and publish an event whenever that changes'),
  option('max-presence', 'maxPresenceBytes', integer(65_536, 2 ** 40), 134_217_728, 'most bytes that the list of --subscriptions takes in the primary, with the streams of all servers on NATS; above it new streams of the hub get 503'),
  option('max-streams-per-address', 'maxStreamsPerAddress', integer(0, 100_000_000), 0, 'most streams of the hub of one address (IPv6: of a /64) in each worker; above it 429; 0 is no limit'),
  option('max-streams-per-subject', 'maxStreamsPerSubject', integer(0, 100_000_000), 0, 'most streams of the hub with tokens of one subject (sub) in each worker; above it 429; 0 is no limit'),
  option('max-opens-per-address', 'maxOpensPerAddress', integer(0, 1_000_000), 0, 'most streams of the hub that one address may open per second in each worker; above it 429; 0 is no limit'),
  option('max-topics-per-stream', 'maxTopicsPerStream', integer(1, 500), 100, 'most topics and patterns that a stream may ask for; above it 400'),
  option('max-publication', 'maxPublicationBytes', integer(1024, 1_073_741_824), 1_048_576, 'most bytes of the body of a request to publish; above it 413'),
  option('dashboard', 'dashboard', choice('auto', 'tui', 'lines', 'off'), 'auto', 'auto is tui in a terminal and lines elsewhere'),
  option('log-dir', 'logDir', text('DIR', 'a folder'), 'logs', 'folder for the CSV'),
  option('no-log', 'noLog', FLAG, false, 'write no CSV'),
  option('admin-port', 'adminPort', either('auto', PORT), 8890, 'port of the dashboard (/), of /healthz, /readyz, /frame, /ticks, /metrics, /publish, /revoke, /gc, /reload, /drain, and for publishing to the hub without a JWT; 0 is off, auto a free one'),
  option('admin-host', 'adminHost', text('ADDRESS', 'an address of this machine'), '127.0.0.1', 'address of the admin port; others than loopback need --admin-token'),
  option('admin-token', 'adminToken', secret('TOKEN'), '', 'token that the admin port asks for, except for /healthz and /readyz: at least 16 characters'),
];

/**
 * @param {string[]} args as in process.argv.slice(2)
 * @param {Record<string, string | undefined>} env
 * @returns {{ config: Config, help: boolean, version: boolean }}
 * @throws {import('./errors.js').HoldfastError} BAD_OPTION
 */
export function readConfig(args, env) {
  const { values, help, version } = readOptions(OPTIONS, args, env);
  const config = /** @type {Config} */ (/** @type {unknown} */ (values));
  if (!help && !version) {
    checkPorts(config);
    checkTls(config);
    checkAdmin(config);
    checkNats(config);
    checkTakeover(config);
  }
  return { config, help, version };
}

/** @param {Config} config @throws {HoldfastError} BAD_OPTION */
function checkPorts({ port, adminPort }) {
  if (port === 0 || port !== adminPort) return;
  const line = `--port and --admin-port are both ${port}: they must be different`;
  throw new HoldfastError('BAD_OPTION', line);
}

/** @param {Config} config @throws {HoldfastError} BAD_OPTION */
function checkTls({ tlsCerts, tlsKeys }) {
  const [certs, keys] = [tlsCerts.length, tlsKeys.length];
  if (certs === keys) return;
  if (certs === 0 || keys === 0)
    throw new HoldfastError('BAD_OPTION', '--tls-cert and --tls-key need each other');
  const line = `there are ${certs} --tls-cert and ${keys} --tls-key: each certificate needs its key, in the same order`;
  throw new HoldfastError('BAD_OPTION', line);
}

/** @param {Config} config @throws {HoldfastError} BAD_OPTION */
function checkAdmin({ adminPort, adminHost, adminToken }) {
  if (adminPort === 0) return;
  const line = adminToken === '' ? hostProblem(adminHost) : tokenProblem(adminToken);
  if (line) throw new HoldfastError('BAD_OPTION', line);
}

/** @param {string} host of the admin port without a token @returns {string} why it can't be; '' if it can */
function hostProblem(host) {
  if (host === 'localhost' || inRanges(LOOPBACK)(host)) return '';
  return `--admin-host ${host} needs --admin-token: without one, the admin port is for this machine only (127.0.0.1)`;
}

/** @param {string} token @returns {string} why it can't be used, without it; '' if it can */
function tokenProblem(token) {
  if (!/^[\x21-\x7e]*$/.test(token))
    return "--admin-token has characters that an HTTP header can't carry: expected visible ASCII without spaces";
  if (token.length >= LEAST_TOKEN_BYTES) return '';
  return `--admin-token has only ${token.length} characters: expected at least ${LEAST_TOKEN_BYTES}, for example of openssl rand -hex 16`;
}

/** @param {Config} config @throws {HoldfastError} BAD_OPTION */
function checkNats({ nats, natsCert, natsCertKey, ...config }) {
  if ((natsCert === '') !== (natsCertKey === ''))
    throw new HoldfastError('BAD_OPTION', '--nats-cert and --nats-cert-key need each other');
  if (nats.length === 0) return;
  for (const { flag, key } of OPTIONS)
    if (flag.startsWith('history-') && config[/** @type {keyof typeof config} */ (key)] === 0)
      throw new HoldfastError('BAD_OPTION', `--${flag} is 0: with --nats, the history can't be turned off`);
}

/** @param {Config} config @throws {HoldfastError} BAD_OPTION */
function checkTakeover({ takeover, background, control }) {
  if (background && !takeover) throw new HoldfastError('BAD_OPTION', '--background needs --takeover');
  if (takeover && control === '')
    throw new HoldfastError('BAD_OPTION', "--takeover needs --control: '' turns it off");
}

/** @param {Config} config @returns {string} path of the control socket; '' for none */
export function controlPathOf({ control, logDir }) {
  return control === 'auto' ? join(logDir, 'control.sock') : control;
}

/** @param {Config} config @param {boolean} canCollect whether node was started with --expose-gc @returns {string[]} options without effect */
export function uselessOptions(config, canCollect) {
  const { gcIntervalMs, store, storeSync, nats, adminPort, adminHost, adminToken, tlsCerts, tlsMinVersion } =
    config;
  const lines = [];
  if (adminPort === 0 && (adminHost !== defaultOf('adminHost') || adminToken !== ''))
    lines.push('--admin-host and --admin-token have no effect with --admin-port 0');
  if (!canCollect && gcIntervalMs !== defaultOf('gcIntervalMs'))
    lines.push('--gc-interval has no effect without --expose-gc: node --expose-gc server.js --gc-interval N');
  if (tlsCerts.length === 0 && tlsMinVersion !== defaultOf('tlsMinVersion'))
    lines.push('--tls-min-version has no effect without --tls-cert FILE');
  if (store === '' && storeSync !== defaultOf('storeSync'))
    lines.push('--store-sync has no effect without --store DIR');
  for (const { flag, key, default: value } of OPTIONS)
    if (nats.length === 0 && flag.startsWith('nats-') && config[/** @type {keyof Config} */ (key)] !== value)
      lines.push(`--${flag} has no effect without --nats URL`);
  return lines;
}

/** @param {keyof Config} key */
function defaultOf(key) {
  return OPTIONS.find((option) => option.key === key)?.default;
}

/** @returns {string} what `--help` prints */
export function helpText() {
  return `Usage: holdfast [options]           in a clone: node [node flags] server.js [options]
       holdfast token --help

Holds open HTTP streams, pings them, and shows the live cost of each. \`token\` makes tokens for publishers and subscribers.

${optionLines(OPTIONS)}

Each option can also be set by an environment variable: --ping-interval N is HOLDFAST_PING_INTERVAL=N; flags are 1 or 0.
Keys and secrets should be in files (--jwt-secret @/run/secrets/jwt) or in the environment: everyone on this machine can see the
command line of a process.
Node's own flags go before server.js and also apply to the workers: node --expose-gc server.js
Ctrl-C drains: streams are closed gradually, then the server exits. Press Ctrl-C again to quit now.
`;
}
