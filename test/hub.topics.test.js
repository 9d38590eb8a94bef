import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkData,
  checkId,
  checkSelector,
  checkSizes,
  checkTopic,
  checkType,
  LIMITS,
} from '../hub/matching/topics.js';

const HUB = 'https://hub.example/.well-known/mercure';
/** C0, DEL, C1, soft hyphen, zero width space, right-to-left override, byte order mark, tag, half of a surrogate pair. */
const FORBIDDEN =
  '\0 \t \n \r \x1b \x7f \x80 \x9f \xad \u200b \u202e \u2066 \ufeff \u{e0041} \ud800 \udc00'.split(' ');

/** @param {string} topic @param {string} [hub] */
const isReserved = (topic, hub = HUB) => checkTopic(topic, hub).includes('namespace');

test('a topic is any text without control and format characters, URL or not', () => {
  for (const topic of [
    'https://example.com/books/1',
    'room 7',
    'urn:isbn:1',
    '日本',
    '😀',
    'a*',
    'http://[',
    '\u2028',
  ])
    assert.equal(checkTopic(topic, HUB), '', topic);
  for (const char of FORBIDDEN) {
    assert.match(checkTopic(`a${char}b`, HUB), /control or format/, JSON.stringify(char));
    assert.match(checkTopic(char, HUB), /control or format/, JSON.stringify(char));
  }
});

test('a topic that is empty is refused for that, and not because it is relative to the hub', () => {
  assert.equal(checkTopic('', HUB), 'a topic must not be empty');
});

test('the topic * can not be published', () => {
  assert.match(checkTopic('*', HUB), /reserved/);
});

test("topics in the hub's namespace are reserved, whatever their scheme and host", () => {
  for (const topic of [
    'https://hub.example/.well-known/mercure',
    'https://hub.example/.well-known/mercure/',
    'https://hub.example/.well-known/mercure/subscriptions/exact/a/b',
    'http://elsewhere.example:8080/.well-known/mercure/x',
    'ws://user:pass@elsewhere.example/.well-known/mercure/x?query#hash',
    'coap://elsewhere.example/.well-known/mercure/x',
    'urn:/.well-known/mercure/x',
    'file:///.well-known/mercure/x',
  ])
    assert.ok(isReserved(topic), topic);
});

test("relative topics that resolve into the hub's namespace are reserved", () => {
  for (const topic of [
    '/.well-known/mercure',
    '/.well-known/mercure/subscriptions',
    'mercure',
    'mercure/subscriptions/a',
    './mercure/a',
    '../.well-known/mercure/a',
    '//elsewhere.example/.well-known/mercure/a',
    '?query',
    '#hash',
    ' ',
  ])
    assert.ok(isReserved(topic), JSON.stringify(topic));
});

test("disguises of the hub's namespace are reserved too", () => {
  for (const topic of [
    'https://a.example/.well-known/%6Dercure/x',
    'https://a.example/.well-known/%6d%65%72%63%75%72%65',
    'https://a.example/%2Ewell%2dknown/mercure/x',
    'https://a.example/.well-known/x/../mercure/x',
    'https://a.example/.well-known/./mercure/x',
    'https://a.example/x/%2e%2E/.well-known/mercure/x',
    'https://a.example/.well-known/%6Dercure/x/..',
    'https://a.example\\.well-known\\mercure\\x',
    '\\.well-known\\mercure',
    'HTTPS://A.EXAMPLE/.well-known/mercure',
    'https:/.well-known/mercure/x',
    '  https://a.example/.well-known/mercure  ',
    'https:mercure/x',
  ])
    assert.ok(isReserved(topic), topic);
});

test('topics that only look like the namespace of the hub are free', () => {
  for (const topic of [
    'https://a.example/.well-known/mercureX',
    'https://a.example/.well-known/mercure-board',
    'https://a.example/.well-known/Mercure',
    'https://a.example/x/.well-known/mercure/y',
    'https://a.example//.well-known/mercure',
    'https://a.example/.well-known%2Fmercure/x',
    'https://a.example/.well-known/%256Dercure/x',
    'https://a.example/.well-known/%6',
    'https://a.example/?/.well-known/mercure',
    '../mercure/x',
    'subscriptions/a',
    'urn:example:mercure',
    'urn:.well-known/mercure',
    'foo:\\.well-known\\mercure',
    'http://[/.well-known/mercure',
  ])
    assert.equal(checkTopic(topic, HUB), '', topic);
});

test('the namespace follows the path of the hub', () => {
  const hub = 'https://example.com/api/%68ub/';
  for (const topic of ['/api/hub', '/api/hub/', '/api/hub/x', 'https://a.example/api/h%75b/x'])
    assert.ok(isReserved(topic, hub), topic);
  for (const topic of ['/.well-known/mercure', '/api/hubs', '/api'])
    assert.ok(!isReserved(topic, hub), topic);
  assert.ok(isReserved('/subscriptions/exact/a/b', 'https://example.com/'));
  assert.ok(!isReserved('/a', 'https://example.com/'));
});

test('an id has no control characters and can not be taken for one of the hub', () => {
  for (const id of ['a', 'urn:uuid:7', 'a#b', 'Earliest', '😀', '']) assert.equal(checkId(id), '', id);
  for (const id of ['#a', '#', 'earliest', ...FORBIDDEN])
    assert.notEqual(checkId(id), '', JSON.stringify(id));
});

test('a type has no control characters and is not mercure', () => {
  for (const type of ['message', 'a b', 'Mercure', '']) assert.equal(checkType(type), '', type);
  for (const type of ['mercure', ...FORBIDDEN]) assert.notEqual(checkType(type), '', JSON.stringify(type));
});

test('data is anything that is UTF-8', () => {
  assert.equal(checkData('a\r\n\0😀'), '');
  assert.notEqual(checkData('\ud83d'), '');
});

test('a selector has no control characters, and its length is limited in bytes', () => {
  for (const value of ['*', 'a', '/books/:id', 'ä'.repeat(2048)])
    assert.equal(checkSelector(value), '', value);
  for (const char of FORBIDDEN) assert.match(checkSelector(`/${char}`), /control or format/);
  assert.match(checkSelector('a'.repeat(4097)), /4096 bytes/);
  assert.match(checkSelector('ä'.repeat(2049)), /4096 bytes/);
  assert.match(checkSelector('abc', { ...LIMITS, selectorBytes: 2 }), /2 bytes/);
});

test('sizes are limited separately, because they have a status of their own', () => {
  assert.equal(checkSizes({ topics: Array(1000).fill('a'), id: 'a', type: 'b' }), '');
  assert.match(checkSizes({ topics: Array(1001).fill('a') }), /1000 topics/);
  assert.match(checkSizes({ topics: ['a', 'ä'.repeat(2049)] }), /topic .* 4096 bytes/);
  assert.match(checkSizes({ topics: ['a'], id: 'a'.repeat(1025) }), /id .* 1024 bytes/);
  assert.match(checkSizes({ topics: ['a'], type: 'a'.repeat(1025) }), /type .* 1024 bytes/);
  assert.match(checkSizes({ topics: ['a', 'b'] }, { ...LIMITS, topicsPerPublication: 1 }), /1 topics/);
});
