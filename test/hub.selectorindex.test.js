import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolve } from '../hub/matching/address.js';
import { UrlPattern } from '../hub/matching/patterns.js';
import { SelectorIndex } from '../hub/matching/selectorindex.js';
import { parseSelector } from '../hub/matching/selectors.js';
import { stepsOfPattern, stepsOfTemplate, TopicWords, UrlWords } from '../hub/matching/steps.js';
import { compileTemplate } from '../hub/matching/templates.js';
import { Trie } from '../hub/matching/trie.js';
import { BASE, randomPattern, randomTopic, topicFor } from './helpers/patterns.js';
import { randomNumbers } from './helpers/random.js';

/** @typedef {import('../hub/matching/selectors.js').Selector} Selector */
/** @typedef {import('./helpers/patterns.js').Random} Random */

/** @param {'exact' | 'urlpattern' | 'template'} kind @param {string} value */
const selector = (kind, value) => parseSelector(kind, value, BASE);
const exact = (/** @type {string} */ value) => selector('exact', value);
const pattern = (/** @type {string} */ value) => selector('urlpattern', value);
const template = (/** @type {string} */ value) => selector('template', value);

/** @param {[Selector, string][]} pairs */
function indexOf(pairs) {
  /** @type {SelectorIndex<string>} */
  const index = new SelectorIndex();
  for (const [one, item] of pairs) index.add(one, item);
  return index;
}

test('finds the items of every kind of selector', () => {
  const index = indexOf([
    [exact('*'), 'all'],
    [exact('/books/1'), 'exact'],
    [pattern('/books/:id'), 'pattern'],
    [template('/books/{id}'), 'template'],
    [pattern('/authors/:id'), 'other'],
  ]);
  assert.deepEqual(index.matching(['/books/1']).sort(), ['all', 'exact', 'pattern', 'template']);
  assert.deepEqual(index.matching(['https://hub.example/books/1']).sort(), ['all', 'pattern']);
  assert.deepEqual(index.matching(['https://[']), ['all']);
  assert.deepEqual(index.matching([]), ['all']);
  assert.equal(index.size, 5);
});

test('an item that several selectors or topics lead to comes once', () => {
  const index = indexOf([
    [exact('/a'), 'x'],
    [exact('/b'), 'x'],
    [pattern('/:any'), 'x'],
    [pattern('/*'), 'y'],
  ]);
  assert.deepEqual(index.matching(['/a', '/b', '/c']).sort(), ['x', 'y']);
});

test('a selector can have several items, and says when it is new and when it is gone', () => {
  const index = new SelectorIndex();
  for (const one of [exact('*'), exact('/a'), pattern('/:a'), template('/{a}')]) {
    assert.equal(index.add(one, 'x'), true);
    assert.equal(index.add(one, 'x'), false);
    assert.equal(index.add(one, 'y'), false);
    assert.equal(index.size, 1);
    assert.deepEqual(index.matching(['/a']).sort(), ['x', 'y']);
    assert.equal(index.delete(one, 'z'), false);
    assert.equal(index.delete(one, 'x'), false);
    assert.deepEqual(index.matching(['/a']), ['y']);
    assert.equal(index.delete(one, 'x'), false);
    assert.equal(index.delete(one, 'y'), true);
    assert.equal(index.delete(one, 'y'), false);
    assert.deepEqual([index.matching(['/a']), index.size], [[], 0]);
  }
});

test('what comes and goes after a topic was looked up counts the next time', () => {
  const index = indexOf([[pattern('/a/:b'), 'x']]);
  assert.deepEqual(index.matching(['/a/1']), ['x']);
  index.add(pattern('/a/*'), 'y');
  assert.deepEqual(index.matching(['/a/1']).sort(), ['x', 'y']);
  index.add(pattern('/a/*'), 'z');
  assert.deepEqual(index.matching(['/a/1']).sort(), ['x', 'y', 'z']);
  index.delete(pattern('/a/:b'), 'x');
  assert.deepEqual(index.matching(['/a/1']).sort(), ['y', 'z']);
});

test('what comes counts for topics that were looked up long ago too', () => {
  const index = indexOf([[pattern('/none'), 'x']]);
  for (let i = 0; i < 6000; i++) assert.deepEqual(index.matching([`/a/${i}`]), []);
  index.add(pattern('/a/*'), 'y');
  for (let i = 0; i < 6000; i++) assert.deepEqual(index.matching([`/a/${i}`]), ['y']);
});

test('patterns with ends of all lengths are found, and so are those that are left', () => {
  const values = Array.from({ length: 40 }, (_, n) => `https://example.com/rooms/*${'e'.repeat(n)}-${n}`);
  const topicOf = (/** @type {number} */ n) => `https://example.com/rooms/a/${'e'.repeat(n)}-${n}`;
  const index = indexOf(values.map((value) => [pattern(value), value]));
  for (const [n, value] of values.entries()) assert.deepEqual(index.matching([topicOf(n)]), [value]);
  for (const value of values.slice(0, 20)) index.delete(pattern(value), value);
  for (const [n, value] of values.entries())
    assert.deepEqual(index.matching([topicOf(n)]), n < 20 ? [] : [value]);
});

test('an index is for one base URL', () => {
  const index = indexOf([[pattern('/a'), 'x']]);
  assert.throws(
    () => index.add(parseSelector('urlpattern', '/b', 'https://other.example/'), 'y'),
    /base URL/,
  );
});

const N = 1000;
/** What 1,000 users might subscribe to, and a topic that none of them does. @type {Record<string, [(n: number) => string, string]>} */
const SHAPES = {
  'different hosts': [(n) => `https://host-${n}.example/rooms/:id`, 'https://host-x.example/rooms/1'],
  'different schemes': [(n) => `scheme${n}://*/*`, 'https://example.com/a'],
  'different first segments': [(n) => `https://example.com/app-${n}/:id`, 'https://example.com/app-x/1'],
  'a wildcard in the middle': [
    (n) => `https://example.com/rooms/:id/feed-${n}`,
    'https://example.com/rooms/1/feed-x',
  ],
  'everything below': [(n) => `https://example.com/users/${n}/*`, 'https://example.com/users/x/a/b'],
  'different ends': [(n) => `https://example.com/rooms/*-${n}`, 'https://example.com/rooms/a/b-x'],
  'different ends of a segment': [
    (n) => `https://example.com/rooms/:id.${n}/a`,
    'https://example.com/rooms/1.x/a',
  ],
  'different starts of a segment': [
    (n) => `https://example.com/rooms/r${n}-:id`,
    'https://example.com/rooms/x-1',
  ],
  'an optional end': [(n) => `/users/${n}{/:any}?`, '/users/x/y'],
  'repeated segments': [(n) => `/users/${n}/:any+`, '/users/x/y/z'],
  'different queries': [(n) => `https://example.com/item?id=${n}`, 'https://example.com/item?id=x'],
  'different hashes': [(n) => `https://example.com/item#${n}`, 'https://example.com/item#x'],
  'any host': [(n) => `*://*.example.com/users/${n}`, 'https://a.example.com/users/x'],
};

/** @param {{ steps: () => import('../hub/matching/steps.js').Step[] }[]} entries */
function trieOf(entries) {
  const trie = new Trie();
  for (const entry of entries) trie.add(entry);
  return trie;
}

for (const [name, [valueFor, topic]] of Object.entries(SHAPES))
  test(`a topic is compared with hardly any of 1,000 patterns: ${name}`, () => {
    const patterns = Array.from({ length: N }, (_, n) => new UrlPattern(valueFor(n), BASE));
    const entries = patterns.map((one) => ({ pattern: one, steps: () => stepsOfPattern(one) }));
    const trie = trieOf(entries);
    const url = /** @type {URL} */ (resolve(topic, BASE));
    assert.ok(trie.find(new UrlWords(url)).length <= 8);
    for (const entry of entries) trie.delete(entry);
    assert.ok(trie.isEmpty);
  });

test('a topic is compared with hardly any of 1,000 templates', () => {
  for (const valueFor of [
    (/** @type {number} */ n) => `https://example.com/rooms/{id}/feed-${n}`,
    (/** @type {number} */ n) => `https://example.com/users/${n}/{+any}`,
    (/** @type {number} */ n) => `https://host-${n}.example/{id}`,
    (/** @type {number} */ n) => `room-${n}{?any}`,
  ]) {
    const programs = Array.from({ length: N }, (_, n) => compileTemplate(valueFor(n)) ?? []);
    const trie = trieOf(programs.map((program) => ({ steps: () => stepsOfTemplate(program) })));
    assert.ok(trie.find(new TopicWords('https://example.com/rooms/1/feed-x')).length <= 8);
  }
});

test('patterns that nothing tells apart are found all the same', () => {
  const values = Array.from({ length: 100 }, (_, n) => `https://example.com/*n${n}m*`);
  const index = indexOf(values.map((value) => [pattern(value), value]));
  assert.deepEqual(index.matching(['https://example.com/a/n7m/b']), [values[7]]);
  for (const value of values) assert.ok(index.delete(pattern(value), value));
  assert.deepEqual(index.matching(['https://example.com/a/n7m/b']), []);
});

test('very deep paths and very long words are found too', () => {
  const path = 'a/'.repeat(100);
  const values = Array.from(
    { length: 50 },
    (_, n) => `https://example.com/${path}${'w'.repeat(40)}:x{${'e'.repeat(40)}}${n}`,
  );
  const index = indexOf(values.map((value) => [pattern(value), value]));
  assert.deepEqual(
    index.matching([`https://example.com/${path}${'w'.repeat(40)}-${'e'.repeat(40)}49`]).sort(),
    [values[49]],
  );
});

/** Selectors that often have steps in common. @param {Random} random @returns {Selector} */
function randomSelector(random) {
  const oneOf = (/** @type {string[]} */ texts) => texts[random(texts.length)];
  const segment = () =>
    oneOf(['a', 'b', 'ab', 'a-b', ':x', 'a:x', ':x-b', '*', 'a*', '*b', 'c?', '{d}?', '']);
  const kind = random(10);
  if (kind === 0) return exact('*');
  if (kind <= 2) return exact(`https://${oneOf(['h', 'g'])}.example/${oneOf(['a', 'b', 'a-b'])}`);
  if (kind === 3) return randomValid(random);
  const host = oneOf(['h', 'g', ':h', 'h*', '*']);
  const path = Array.from({ length: 1 + random(3) }, segment)
    .join('/')
    .replaceAll(':x', () => `:x${random(1e6)}`);
  if (kind <= 7)
    return randomValid(random, `https://${host}.example/${path}${oneOf(['', '', '?q', '?q=*', '#h'])}`);
  const variables = { ':h': '{h}', 'h*': 'h{h*}', '*': '{+h}' }[host] ?? host;
  return template(
    `https://${variables}.example/${oneOf(['a', '{x}', 'a{x}', '{+x}b', '{x}/a', 'a{/x,y}', '{?q}'])}`,
  );
}

/** @param {Random} random @param {string} [value] @returns {Selector} */
function randomValid(random, value = randomPattern(random)) {
  try {
    return pattern(value);
  } catch {
    return randomValid(random);
  }
}

/** @param {Random} random @param {Selector[]} known */
function someTopic(random, known) {
  if (random(4) === 0) return randomTopic(random);
  if (random(2) === 0) return topicFor(random, known[random(known.length)].value);
  const oneOf = (/** @type {string[]} */ texts) => texts[random(texts.length)];
  const path = Array.from({ length: 1 + random(3) }, () => oneOf(['a', 'b', 'ab', 'a-b', 'ax', '', 'x-b']));
  return `https://${oneOf(['h', 'g', 'hx'])}.example/${path.join('/')}${oneOf(['', '', '?q', '#h'])}`;
}

test('whatever comes and goes, the index says the same as asking every selector', () => {
  const random = randomNumbers(11);
  const known = Array.from({ length: 250 }, () => randomSelector(random));
  /** @type {SelectorIndex<number>} */
  const index = new SelectorIndex();
  /** @type {Map<string, { selector: Selector, items: Set<number> }>} */
  const model = new Map();
  let found = 0;
  for (let step = 0; step < 4000; step++) {
    const one = known[random(known.length)];
    const item = random(20);
    const entry = model.get(one.key) ?? { selector: one, items: new Set() };
    // It grows for 1,000 steps, shrinks for 500, and so on.
    if (random(10) < (step % 1500 < 1000 ? 7 : 2)) {
      assert.equal(index.add(one, item), entry.items.size === 0);
      model.set(one.key, { selector: one, items: entry.items.add(item) });
    } else {
      const isLast = entry.items.delete(item) && entry.items.size === 0;
      assert.equal(index.delete(one, item), isLast);
      if (isLast) model.delete(one.key);
    }
    const topics = Array.from({ length: 1 + random(2) }, () => someTopic(random, known));
    const expected = new Set();
    for (const { selector: other, items } of model.values())
      if (topics.some((topic) => other.matches(topic))) for (const each of items) expected.add(each);
    const actual = index.matching(topics);
    assert.equal(actual.length, expected.size, JSON.stringify(topics));
    assert.deepEqual(new Set(actual), expected, JSON.stringify(topics));
    assert.equal(index.size, model.size);
    found += actual.length;
  }
  assert.ok(found > 4000, `${found} found`);
});
