/*
 * URL patterns, against the answers of Node 24 (fixtures/urlpatterns.jsonl), and against URLPattern itself where there is one.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { resolve } from '../hub/matching/address.js';
import { UrlPattern } from '../hub/matching/patterns.js';
import { PatternError } from '../hub/matching/tokens.js';
import { nativePattern } from './fixtures/urlpatterns.js';
import { BASE, randomPattern, randomTopic, topicFor } from './helpers/patterns.js';
import { randomNumbers } from './helpers/random.js';

/** What a match may take on a busy machine. It takes a thousandth of that, or, if it backtracks, years. */
const MOST_MS = 500;

/** @param {string} value @returns {UrlPattern | null} */
function parse(value) {
  try {
    return new UrlPattern(value, BASE);
  } catch (error) {
    assert.ok(error instanceof PatternError, `${JSON.stringify(value)}: ${error}`);
    return null;
  }
}

/** @param {UrlPattern} pattern @param {string} topic */
function answer(pattern, topic) {
  const url = resolve(topic, BASE);
  return url !== null && pattern.matches(url);
}

/** @param {string} value @param {string[]} yes @param {string[]} no */
function assertMatches(value, yes, no) {
  const pattern = parse(value);
  assert.ok(pattern, value);
  for (const topic of yes) assert.ok(answer(pattern, topic), `${value} matches ${topic}`);
  for (const topic of no) assert.ok(!answer(pattern, topic), `${value} does not match ${topic}`);
}

test('a name takes one segment', () => {
  assertMatches(
    'https://example.com/books/:id',
    ['https://example.com/books/1', 'https://EXAMPLE.com/books/é', 'https://example.com:443/books/1?a#b'],
    [
      'https://example.com/books/',
      'https://example.com/books',
      'https://example.com/books/1/2',
      'https://example.com/Books/1',
      'http://example.com/books/1',
      'https://example.com:8443/books/1',
      'https://www.example.com/books/1',
    ],
  );
  assertMatches(
    'https://e.com/:a-:b.json',
    ['https://e.com/x-y-z.json'],
    ['https://e.com/x-.json', 'https://e.com/-y.json'],
  );
});

test('an asterisk takes everything', () => {
  assertMatches(
    'https://e.com/a/*',
    ['https://e.com/a/', 'https://e.com/a/b/c'],
    ['https://e.com/a', 'https://e.com/b/a/'],
  );
  assertMatches('https://e.com/*-x', ['https://e.com/-x', 'https://e.com/a/b-x'], ['https://e.com/-x/']);
  assertMatches('*://*.e.com/x', ['ftp://a.e.com/x', 'foo://a.b.e.com/x'], ['https://e.com/x']);
  assertMatches('urn\\:isbn\\:*', ['urn:isbn:1'], ['urn:issn:1', 'urn:isbn']);
  assertMatches('urn:*', ['urn:isbn:1'], ['/.well-known/a']);
});

test('modifiers make a group optional or repeat it', () => {
  assertMatches('/a/:id?', ['/a', '/a/b'], ['/a/', '/a/b/c']);
  assertMatches('/a/:ids+', ['/a/b', '/a/b/c'], ['/a', '/a/', '/a//b']);
  assertMatches('/a/:ids*', ['/a', '/a/b', '/a/b/c'], ['/a/', '/ab']);
  assertMatches('/a{-:n.x}+', ['/a-1.x', '/a-1.x-2.x'], ['/a', '/a-1.x-2', '/a-.x']);
  assertMatches('/{ab}+a', ['/aba', '/ababa'], ['/a', '/abab', '/abba']);
  assertMatches('/:x{aba}{c}?', ['/zababa', '/zababac', '/abaaba'], ['/aba', '/zabab', '/zababad']);
  assertMatches('/{a*b}?c', ['/c', '/abc', '/a/bbc'], ['/ac', '/abbcd']);
});

test('queries and fragments count if the pattern has them', () => {
  assertMatches(
    'https://e.com/a?q=:x',
    ['https://e.com/a?q=1', 'https://e.com/a?q=1#h'],
    ['https://e.com/a', 'https://e.com/a?q='],
  );
  assertMatches('https://e.com/a#h', ['https://e.com/a#h'], ['https://e.com/a', 'https://e.com/a?q#h']);
  assertMatches('https://e.com/a', ['https://e.com/a?q#h'], ['https://e.com/']);
});

test('patterns and topics that are relative resolve against the hub', () => {
  assertMatches(
    '/books/:id',
    ['/books/1', 'https://hub.example/books/1', '../books/1'],
    ['https://e.com/books/1', 'books/1'],
  );
  assertMatches('subscriptions/*', ['subscriptions/a', '/.well-known/subscriptions/a'], ['/subscriptions/a']);
  assertMatches('https://hub.example/books/:id', ['/books/1'], ['https://[']);
});

test('what is not a URL matches no pattern', () => {
  assertMatches('*://*', ['https://a', 'foo://b'], ['https://[', 'https://a b/', 'http://']);
});

test('regular expressions are refused, unless they say the same as a wildcard', () => {
  for (const value of ['/(\\d+)', '/:id([0-9]+)', '/((?:a+)+)b', 'http(s?)://a', '/a(.+)'])
    assert.throws(() => new UrlPattern(value, BASE), /regular expressions are not supported/, value);
  assertMatches('/(.*)', ['/a/b'], []);
  assertMatches('/:id([^\\/]+?)', ['/a'], ['/a/b']);
});

test('what is not a pattern is refused', () => {
  for (const value of [
    '{a',
    'a}',
    '/(',
    '/{:a:b',
    '/:a/:a',
    '/+',
    'https://a b/',
    'https://a\\:x/',
    '/{/{a}}',
    '\\',
  ])
    assert.equal(parse(value), null, value);
});

test('the answers are those of Node 24', () => {
  const lines = readFileSync(new URL('fixtures/urlpatterns.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  for (const line of lines) {
    const [value, answers] = JSON.parse(line);
    const pattern = parse(value);
    const given =
      pattern && answers?.map((/** @type {[string, boolean]} */ [topic]) => [topic, answer(pattern, topic)]);
    assert.deepEqual(given, answers, JSON.stringify(value));
  }
});

test('the answers are those of URLPattern', {
  skip: !('URLPattern' in globalThis) && 'this Node has no URLPattern',
}, () => {
  const random = randomNumbers(7);
  for (let i = 0; i < 5000; i++) {
    const value = randomPattern(random);
    const native = nativePattern(value);
    const pattern = parse(value);
    assert.equal(pattern === null, !native || native.hasRegExpGroups, JSON.stringify(value));
    for (const topic of pattern ? [topicFor(random, value), randomTopic(random)] : [])
      assert.equal(
        answer(/** @type {UrlPattern} */ (pattern), topic),
        native.test(topic, BASE),
        JSON.stringify([value, topic]),
      );
  }
});

/** @param {string} piece @param {number} times @param {string} [end] */
const repeated = (piece, times, end = '') =>
  `/${Array.from({ length: times }, (_, i) => piece.replaceAll('#', `n${i}`)).join('')}${end}`;

test('no pattern takes long, whatever it is matched with', () => {
  const pieces = ['*a', ':#a', ':#-', '{a}+', '{aa}*', '{:#a}+', '{a:#}*', '{a*b}?', ':#?', '{a}?'];
  const values = pieces.flatMap((piece) => [repeated(piece, 7), repeated(piece, 7, 'b')]);
  const patterns = [...values, `/*${'a'.repeat(2000)}*${'a'.repeat(2000)}b`].map(parse);
  const paths = [
    'a'.repeat(4080),
    'ab'.repeat(2040),
    '/a'.repeat(2040),
    'é'.repeat(2040),
    `${'a'.repeat(4000)}/`,
  ];
  const urls = paths.map((path) => resolve(`/${path}`, BASE));
  for (const [i, pattern] of patterns.entries())
    for (const url of urls) {
      const start = performance.now();
      pattern?.matches(/** @type {URL} */ (url));
      assert.ok(performance.now() - start < MOST_MS, values[i]);
    }
});

test('a pattern with very many groups is refused', () => {
  assert.ok(parse(repeated(':#-', 15)));
  for (const piece of [':#-', '*a', '{a}?', '{:#a}+'])
    assert.throws(() => new UrlPattern(repeated(piece, 40), BASE), /too many groups/);
  assert.throws(() => new UrlPattern(`/?${repeated(':#a', 40)}`, BASE), /too many groups/);
});
