import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hostsOf, loopbackSources } from '../fleet/drone/addresses.js';
import { changedParams, defaultParams } from '../fleet/drone/params.js';
import { requestOf } from '../fleet/drone/request.js';
import { hubsOf, signerFor, subscriptionOf } from '../fleet/drone/topics/subscription.js';
import { fill } from '../fleet/drone/topics/template.js';

/** @param {Record<string, string>} changes */
const changed = (changes) => changedParams(defaultParams(), Object.entries(changes));

test('parameters are parsed to their types', () => {
  const { n, port, host, sources, interval } = changed({
    n: '1000',
    port: '8888,9000-9002',
    host: '10.0.0.1',
    sources: '127.0.0.2-127.0.0.4,::1',
    interval: '500',
  });
  assert.deepEqual([n, host, interval], [1000, '10.0.0.1', 500]);
  assert.deepEqual(port, [8888, 9000, 9001, 9002]);
  assert.deepEqual(sources, ['127.0.0.2', '127.0.0.3', '127.0.0.4', '::1']);
});

test('a range of addresses can cross a byte boundary', () => {
  assert.deepEqual(changed({ sources: '10.0.0.255-10.0.1.1' }).sources, [
    '10.0.0.255',
    '10.0.1.0',
    '10.0.1.1',
  ]);
});

test('several servers are separated by commas, each with its ports, and one can have several addresses', () => {
  const given = '10.0.0.6:8888,8890,b:1-2,10.0.0.7,10.0.0.8:8888,[::1]:9';
  const { others } = changed({ others: given });
  assert.deepEqual(others, ['10.0.0.6:8888,8890', 'b:1-2', '10.0.0.7,10.0.0.8:8888', '[::1]:9']);
  const params = changed({ host: 'a', port: '7', others: given });
  assert.deepEqual(hubsOf(params).slice(0, 2), [
    'http://a:7/.well-known/mercure',
    'http://10.0.0.6:8888/.well-known/mercure',
  ]);
  assert.equal(hubsOf(params)[4], 'http://[::1]:9/.well-known/mercure');
  assert.deepEqual(changedParams(params, [['others', '']]).others, []);
  assert.throws(() => changed({ port: '1', others: 'b:2,127.0.0.1:1' }), /127\.0\.0\.1:1 was given twice/);
});

test('a channel can be removed again', () => {
  const params = changedParams(changed({ channel: 'news' }), [['channel', '']]);
  assert.equal(params.channel, '');
});

// biome-ignore format: a table reads best with one row per line
const BAD = [
  ['n', '-1'], ['n', '1e3'], ['n', ''], ['port', '0'], ['port', '70000'], ['port', '9-8'], ['port', ''], ['port', '80,'],
  ['host', 'a b'], ['host', ''], ['path', 'x'], ['path', '/a b'], ['path', '/a\r\nX: y'], ['accept', 'json'], ['ramp', '0'],
  ['sources', '127.0.0.9-127.0.0.2'], ['sources', '127.0.0.2-::1'], ['sources', 'localhost'], ['sources', '0.0.0.0-255.255.255.255'],
  ['interval', '0'], ['expect', 'all'], ['host', '10.0.0.1-10.0.0.2'], ['host', '127.0.0.1,10.0.0.1-10.0.0.2'],
  ['others', 'a'], ['others', 'a:1,b'], ['others', 'a b:1'], ['others', ':1'], ['others', Array.from({ length: 16 }, (_, i) => `a:${i + 1},b:1`).join(',')],
  ['host', '126.255.255.255-127.0.0.1'], ['host', '127.0.0.1-127.0.1.200'], ['port', '1-4097'], ['port', '1-4096,9'],
];

for (const [name, given] of BAD) {
  test(`${name} can't be ${JSON.stringify(given)}, and the error says what is expected`, () => {
    assert.throws(() => changed({ n: '5', [name]: given }), {
      code: 'BAD_PARAM',
      message: new RegExp(`^${name} got '${given.replace(/[.*+?^$()[\]\\]/g, '\\$&')}': expected `),
    });
  });
}

test('the error for an unknown parameter names it and lists the known ones', () => {
  assert.throws(() => changed({ streams: '5' }), {
    code: 'BAD_PARAM',
    message: /^unknown parameter 'streams': expected one of n, host, port, /,
  });
});

test('the request contains host, channel and format', () => {
  assert.equal(requestOf(defaultParams()), 'GET / HTTP/1.1\r\nHost: 127.0.0.1:8888\r\n\r\n');
  const params = changed({ host: '::1', path: '/?a=b', channel: 'a&b', accept: 'events' });
  assert.equal(
    requestOf(params),
    'GET /?a=b&channel=a%26b HTTP/1.1\r\nHost: [::1]:8888\r\nAccept: text/event-stream\r\n\r\n',
  );
});

test('a server can be dialled under several of its addresses', () => {
  const host = '127.0.0.1-127.0.0.3';
  assert.deepEqual(hostsOf(changed({ host }).host), ['127.0.0.1', '127.0.0.2', '127.0.0.3']);
  assert.deepEqual(hostsOf('10.0.0.5,10.0.0.9'), ['10.0.0.5', '10.0.0.9']);
  assert.match(requestOf(changed({ host })), /^Host: 127\.0\.0\.1:8888\r$/m);
  for (const one of ['localhost', '127.0.0.1', '::1', 'a-b.example', '1-2.example'])
    assert.deepEqual(hostsOf(changed({ host: one }).host), [one]);
  for (const bad of ['127.0.0.9-127.0.0.1', '127.0.0.1,', '1-2'])
    assert.throws(() => changed({ host: bad }), { code: 'BAD_PARAM' });
});

test('loopback has one source address for every 8,000 streams to a port', () => {
  assert.deepEqual(loopbackSources(8000, 0, 1), ['127.0.0.2']);
  assert.deepEqual(loopbackSources(8001, 254, 1), ['127.0.1.0', '127.0.1.1']);
  assert.equal(loopbackSources(1_000_000, 0, 1).length, 125);
  assert.equal(loopbackSources(1_000_000, 0, 10).length, 13);
  assert.equal(loopbackSources(0, 0, 1).length, 1);
});

test('a text of many ranges is refused before it takes up memory', () => {
  const before = process.memoryUsage().heapUsed;
  for (const range of ['1-65535', '1-4096'])
    assert.throws(() => changed({ port: Array(2000).fill(range).join(',') }), { code: 'BAD_PARAM' });
  assert.throws(() => changed({ sources: Array(500).fill('127.0.0.0-127.0.255.255').join(',') }), {
    code: 'BAD_PARAM',
  });
  assert.ok(process.memoryUsage().heapUsed - before < 100_000_000);
});

test('a parameter that repeats is given several times, and removed with an empty text', () => {
  const params = changedParams(changed({ topic: 'old' }), [['topic', 'a'], ['topic', 'b/{n}']]); // biome-ignore format: one line
  assert.deepEqual(params.topic, ['a', 'b/{n}']);
  assert.deepEqual(changedParams(params, [['topic', '']]).topic, []);
});

/** @type {[Record<string, string>, RegExp][]} */
const CONFLICTS = [
  [{ topic: 'a', channel: 'b' }, /^topic and channel exclude each other/],
  [{ token: 'x' }, /^token needs a topic/],
  [{ topic: 'a', token: 'x', 'token-secret': 'y' }, /^token and token-secret exclude each other/],
  [{ topic: 'a', 'token-shared': '1' }, /^token-shared needs a token-secret/],
  [{ 'token-secret': 'y' }, /^token-secret needs a topic/],
  [{ 'mercure-legacy': '1' }, /^mercure-legacy needs a topic/],
];

for (const [given, message] of CONFLICTS) {
  test(`${JSON.stringify(given)} is an error`, () => {
    assert.throws(() => changed(given), { code: 'BAD_PARAM', message });
  });
}

/** @param {Record<string, string>} changes @param {number} number */
function subscribing(changes, number = 7) {
  const { request } = subscriptionOf(changed(changes)) ?? assert.fail();
  return fill(request, { number, token: 'T', cursor: '#c' });
}

test('the request to a hub contains the topics of the stream, its token and its cursor', () => {
  const head = 'HTTP/1.1\r\nHost: 127.0.0.1:8888\r\nAccept: text/event-stream\r\n';
  const cursor = 'Last-Event-ID: #c\r\n';
  assert.equal(
    subscribing({ topic: 'a b/{n%5}&' }),
    `GET /.well-known/mercure?match=a%20b%2F2%26 ${head}${cursor}\r\n`,
  );
  assert.equal(
    subscribing({ topic: 'x', 'token-secret': 's', 'mercure-legacy': '1', path: '/hub?a=b' }),
    `GET /hub?a=b&topic=x ${head}Authorization: Bearer T\r\n${cursor}\r\n`,
  );
  assert.equal(subscriptionOf(defaultParams()), null);
});

test('tokens of the draft are for the hub, unless the claims say something else', () => {
  const given = {
    topic: 'x',
    'token-secret': 's',
    'token-dialect': 'draft-08',
    host: 'a.example',
    port: '80',
  };
  assert.deepEqual(signerFor(changed(given))?.claims, { aud: 'https://a.example:80/.well-known/mercure' });
  const claims = { 'token-claims': '{"aud":"b","iss":"c"}' };
  assert.deepEqual(signerFor(changed({ ...given, ...claims }))?.claims, { aud: 'b', iss: 'c' });
  assert.deepEqual(signerFor(changed({ topic: 'x', 'token-secret': 's' }))?.claims, {});
});
