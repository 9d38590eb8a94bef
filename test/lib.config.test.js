import assert from 'node:assert/strict';
import { test } from 'node:test';
import { controlPathOf, helpText, OPTIONS, readConfig, uselessOptions } from '../lib/config.js';

/** @param {string[]} args @param {Record<string, string>} [env] */
const read = (args, env = {}) => readConfig(args, env).config;

/** @param {string[]} args @param {Record<string, string>} [env] */
const refusalOf = (args, env = {}) => {
  try {
    read(args, env);
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
  return '';
};

test('without flags all options have their documented defaults', () => {
  assert.deepEqual(read([]), {
    port: 8888,
    host: '',
    tlsCerts: [],
    tlsKeys: [],
    tlsMinVersion: '1.3',
    workers: 'auto',
    streams: 0,
    force: false,
    transport: 'auto',
    pingIntervalMs: 20_000,
    idlePings: false,
    sampleIntervalMs: 10,
    refreshMs: 1000,
    gcIntervalMs: 60_000,
    nagle: false,
    maxHeadBytes: 8192,
    headTimeoutMs: 10_000,
    keepAliveTimeoutMs: 5000,
    maxHeadsPerAddress: 256,
    proxies: ['127.0.0.0/8', '::1'],
    maxBacklogBytes: 65_536,
    maxMessageBytes: 65_536,
    maxQueueBytes: 16_777_216,
    historyCount: 10_000,
    historyAgeMs: 3_600_000,
    historyBytes: 67_108_864,
    cacheTopics: [],
    store: '',
    storeSync: 'on',
    nats: [],
    natsStream: 'HOLDFAST',
    natsReplicas: 1,
    natsCreds: '',
    natsCa: '',
    natsCert: '',
    natsCertKey: '',
    natsMaxLagMs: 10_000,
    drainMs: 5000,
    hungAfterMs: 15_000,
    sighup: 'auto',
    takeover: false,
    background: false,
    control: 'auto',
    acceptLoad: false,
    jwtSecret: '',
    jwtPublisherKey: '',
    jwtSubscriberKey: '',
    jwksUrl: '',
    jwtIssuer: '',
    jwtAudience: '',
    jwtCookie: '__Secure-mercure_access_token',
    anonymous: false,
    corsOrigins: [],
    publishOrigins: [],
    mercureLegacy: 'on',
    subscriptions: false,
    maxPresenceBytes: 134_217_728,
    maxStreamsPerAddress: 0,
    maxStreamsPerSubject: 0,
    maxOpensPerAddress: 0,
    maxTopicsPerStream: 100,
    maxPublicationBytes: 1_048_576,
    dashboard: 'auto',
    logDir: 'logs',
    noLog: false,
    adminPort: 8890,
    adminHost: '127.0.0.1',
    adminToken: '',
  });
});

test('a flag wins over the environment, and the environment over the default', () => {
  assert.equal(read([], { HOLDFAST_PING_INTERVAL: '500' }).pingIntervalMs, 500);
  assert.equal(read(['--ping-interval', '700'], { HOLDFAST_PING_INTERVAL: '500' }).pingIntervalMs, 700);
  assert.equal(read(['--ping-interval=800']).pingIntervalMs, 800);
});

test('a flag without a value is on if present; an environment variable is 1 or 0', () => {
  assert.equal(read(['--nagle', '--no-log']).nagle, true);
  assert.equal(read(['--no-log']).noLog, true);
  assert.equal(read([], { HOLDFAST_NO_LOG: '1' }).noLog, true);
  assert.equal(read([], { HOLDFAST_NO_LOG: '0' }).noLog, false);
});

test('some numbers can also be auto', () => {
  assert.equal(read(['--workers', '3']).workers, 3);
  assert.equal(read(['--admin-port', 'auto']).adminPort, 'auto');
});

test('the two ports must be different, unless the system chooses them', () => {
  const line = '--port and --admin-port are both 8888: they must be different';
  assert.equal(refusalOf(['--admin-port', '8888']), line);
  assert.equal(refusalOf(['--port', '0', '--admin-port', '0']), '');
});

test('each certificate needs its key', () => {
  const of = (/** @type {string[]} */ ...args) => refusalOf(args);
  assert.equal(of('--tls-cert', 'a'), '--tls-cert and --tls-key need each other');
  assert.equal(of('--tls-key', 'a'), '--tls-cert and --tls-key need each other');
  assert.equal(
    of('--tls-cert', 'a', '--tls-cert', 'b', '--tls-key', 'c'),
    'there are 2 --tls-cert and 1 --tls-key: each certificate needs its key, in the same order',
  );
  const { tlsCerts, tlsKeys } = read([
    '--tls-cert',
    'a',
    '--tls-key',
    'b',
    '--tls-cert',
    'c',
    '--tls-key',
    'd',
  ]);
  assert.deepEqual(
    [tlsCerts, tlsKeys],
    [
      ['a', 'c'],
      ['b', 'd'],
    ],
  );
});

test('options of NATS are checked, and a password is not shown', () => {
  const { nats, natsStream } = readConfig(
    ['--nats', 'nats://a:4222,tls://b', '--nats', 'nats://u:p@c'],
    {},
  ).config;
  assert.deepEqual([nats, natsStream], [['nats://a:4222', 'tls://b', 'nats://u:p@c'], 'HOLDFAST']);
  assert.match(
    refusalOf(['--nats', 'http://u:secret@a']),
    /^--nats got a bad value: expected a URL such as nats:/,
  );
  assert.match(refusalOf(['--nats-stream', 'a.b']), /expected letters, digits, - and _/);
  assert.equal(refusalOf(['--nats-cert', 'a.pem']), '--nats-cert and --nats-cert-key need each other');
  const line = "--history-age is 0: with --nats, the history can't be turned off";
  assert.equal(refusalOf(['--nats', 'nats://a', '--history-age', '0']), line);
  const { config } = readConfig(['--nats-replicas', '3'], {});
  assert.deepEqual(uselessOptions(config, true), ['--nats-replicas has no effect without --nats URL']);
});

test('an error says what was given and what was expected', () => {
  assert.match(refusalOf(['--port', '70000']), /--port got '70000': expected a whole number from 0 to 65535/);
  assert.match(refusalOf(['--port']), /--port got no value/);
  assert.match(refusalOf(['--drain', '1.5']), /--drain got '1\.5'/);
  assert.match(refusalOf(['--transport', 'udp']), /expected one of auto, http, hold/);
  assert.match(
    refusalOf([], { HOLDFAST_WORKERS: 'many' }),
    /HOLDFAST_WORKERS got 'many': expected auto or a whole/,
  );
  assert.match(refusalOf(['--pong-interval', '1']), /unknown option --pong-interval/);
  assert.match(refusalOf(['--por', '1']), /did you mean --port\?/);
  assert.match(refusalOf(['--prot', '1']), /did you mean --port\?/);
  assert.match(refusalOf(['-p', '80']), /unknown option -p: did you mean --port\?/);
  assert.match(refusalOf(['8888']), /unexpected argument '8888'/);
  assert.match(refusalOf(['--log-dir', '']), /--log-dir got ''/);
});

test('origins, URLs and cookie names are checked, and a URL is not shown', () => {
  assert.deepEqual(
    read(['--cors-origins', 'https://A.example/, null', '--cors-origins', 'capacitor://']).corsOrigins,
    ['https://a.example', 'null', 'capacitor://'],
  );
  assert.match(
    refusalOf(['--cors-origins', 'a.example']),
    /--cors-origins got 'a\.example': expected an origin/,
  );
  assert.match(refusalOf(['--publish-origins', 'https://a/b']), /--publish-origins got/);
  for (const url of ['ftp://a/', 'a', 'https://user:hunter2@a/', 'file:///etc/passwd']) {
    const line = refusalOf(['--jwks-url', url]);
    assert.match(line, /--jwks-url got a bad value: expected an http or https URL/);
    assert.doesNotMatch(line, /hunter2/);
  }
  assert.match(refusalOf(['--jwt-cookie', 'a=b']), /--jwt-cookie got 'a=b'/);
  assert.equal(read([], { HOLDFAST_JWT_SECRET: 'hush' }).jwtSecret, 'hush');
});

test('the help has a line for every option', () => {
  for (const { flag } of OPTIONS) assert.match(helpText(), new RegExp(`^  --${flag}\\b.*\\S`, 'm'));
  assert.equal(readConfig(['-h'], {}).help, true);
});

test('topics to cache are listed, and history may be limited to nothing', () => {
  const { cacheTopics, historyCount, historyAgeMs, historyBytes } = read([
    ...['--cache-topics', 'https://example.com/a,b', '--cache-topics', '/rooms/*'],
    ...['--history-count', '0', '--history-age', '0', '--history-bytes', '0'],
  ]);
  assert.deepEqual(cacheTopics, ['https://example.com/a,b', '/rooms/*']);
  assert.deepEqual([historyCount, historyAgeMs, historyBytes], [0, 0, 0]);
  assert.match(refusalOf(['--store-sync', 'yes']), /expected one of on, off/);
});

test('options without effect are named', () => {
  assert.deepEqual(uselessOptions(read(['--store', 'dir', '--store-sync', 'off']), false), []);
  assert.deepEqual(uselessOptions(read(['--store-sync', 'off']), false), [
    '--store-sync has no effect without --store DIR',
  ]);
});

test('a takeover needs a control socket, and only a takeover can run in the background', () => {
  assert.equal(read(['--control', '']).control, '');
  assert.equal(controlPathOf(read(['--log-dir', '/var/log/holdfast'])), '/var/log/holdfast/control.sock');
  assert.equal(controlPathOf(read(['--control', '/run/h.sock'])), '/run/h.sock');
  assert.equal(refusalOf(['--takeover', '--control', '']), "--takeover needs --control: '' turns it off");
  assert.equal(refusalOf(['--background']), '--background needs --takeover');
  const long = `/${'x'.repeat(107)}`;
  assert.equal(
    refusalOf(['--control', long]),
    `--control got '${long}': expected a path of at most 107 bytes, or '' for none; see --help`,
  );
});
