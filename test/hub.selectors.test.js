import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseSelector, SelectorError } from '../hub/matching/selectors.js';
import { BASE, randomPattern } from './helpers/patterns.js';
import { randomNumbers } from './helpers/random.js';

/** @param {string} value */
const template = (value) => parseSelector('template', value, BASE);

/** @param {string} value @param {string[]} yes @param {string[]} no */
function assertTemplate(value, yes, no) {
  const selector = template(value);
  for (const topic of yes) assert.ok(selector.matches(topic), `${value} matches ${topic}`);
  for (const topic of no) assert.ok(!selector.matches(topic), `${value} does not match ${topic}`);
}

test('* selects everything, whatever its kind', () => {
  for (const kind of /** @type {const} */ (['exact', 'urlpattern', 'template'])) {
    const selector = parseSelector(kind, '*', BASE);
    assert.equal(selector.kind, 'all');
    assert.equal(selector.key, '*');
    assert.ok(selector.matches('anything'));
  }
});

test('an exact selector matches this topic, byte for byte', () => {
  const selector = parseSelector('exact', 'https://example.com/{a}', BASE);
  assert.deepEqual([selector.kind, selector.key], ['exact', '=https://example.com/{a}']);
  assert.ok(selector.matches('https://example.com/{a}'));
  for (const topic of ['https://example.com/b', 'https://EXAMPLE.com/{a}', 'https://example.com/%7Ba%7D'])
    assert.ok(!selector.matches(topic), topic);
});

test('the key tells selectors apart, and equal patterns are the same object', () => {
  const pattern = parseSelector('urlpattern', '/a/{b}', BASE);
  assert.equal(pattern.key, '~/a/{b}');
  assert.equal(pattern, parseSelector('urlpattern', '/a/{b}', BASE));
  assert.notEqual(pattern, parseSelector('urlpattern', '/a/{b}', 'https://other.example/'));
  assert.equal(template('/a/{b}').key, '%/a/{b}');
  assert.equal(template('/a/{b}'), template('/a/{b}'));
});

test('a URL pattern belongs to the hub that it was parsed for', () => {
  assert.ok(parseSelector('urlpattern', '/a', BASE).matches('https://hub.example/a'));
  assert.ok(!parseSelector('urlpattern', '/a', 'https://other.example/').matches('https://hub.example/a'));
});

test('a selector that is not valid has a message that can be shown', () => {
  for (const value of ['/(', '{', '/:a/:a', '/(\\d)', 'https://a b', '/\n', `/${'a'.repeat(4096)}`])
    assert.throws(() => parseSelector('urlpattern', value, BASE), SelectorError, value);
  assert.throws(() => parseSelector('exact', 'a\u200bb', BASE), /control or format/);
  assert.throws(() => parseSelector('template', '{a}-'.repeat(40), BASE), /URI template: too many/);
});

test('whatever a URL pattern is, parsing it ends in a selector or in a SelectorError', () => {
  const random = randomNumbers(3);
  for (let i = 0; i < 3000; i++) {
    const value = Array.from({ length: 3 }, () => randomPattern(random)).join('');
    try {
      parseSelector('urlpattern', value, BASE);
    } catch (error) {
      assert.ok(error instanceof SelectorError, `${JSON.stringify(value)}: ${error}`);
    }
  }
});

test('a template without variables, or with a mistake in it, is an exact selector', () => {
  for (const value of [
    'https://example.com/a',
    'a b',
    '{',
    '{a',
    'a}',
    '{}',
    '{a b}',
    '{=a}',
    '{a:0}',
    '{a..b}',
    '{a}"',
    '{{a}}',
    '%4{a}',
  ]) {
    assert.equal(template(value).kind, 'exact', value);
    assert.ok(template(value).matches(value));
  }
});

test('a template first matches itself', () => {
  assertTemplate(
    'https://example.com/{id}',
    ['https://example.com/{id}', 'https://example.com/1'],
    ['https://example.com/{ id}'],
  );
});

test('a variable takes letters, digits, some signs and percent-encoded characters', () => {
  assertTemplate(
    'https://example.com/{a}/b',
    [
      'https://example.com/x/b',
      'https://example.com//b',
      'https://example.com/x.-_~,9/b',
      'https://example.com/%C3%a9/b',
    ],
    [
      'https://example.com/x/y/b',
      'https://example.com/é/b',
      'https://example.com/%C/b',
      'https://example.com/a=b/b',
      'http://example.com/x/b',
    ],
  );
  assertTemplate('{a,b}', ['x,y', 'x', ''], ['x y', 'x=y']);
  assertTemplate('{a*}', ['x=y,z'], ['x/y']);
  assertTemplate('{a:3}', ['abcdef'], ['a/b']);
});

test('operators have their signs and their characters', () => {
  assertTemplate('/a{+b}', ['/a', '/ab/c?d#e', '/a{+b}'], ['/a ', '/b']);
  assertTemplate('/a{#b}', ['/a', '/a#', '/a#b/c'], ['/ab']);
  assertTemplate('/a{.b,c}', ['/a', '/a.b', '/a.b.c'], ['/ab', '/a/b']);
  assertTemplate('/a{/b,c}', ['/a', '/a/b', '/a/b/c'], ['/a/b/c/d', '/ab']);
  assertTemplate('/a{/b*}', ['/a', '/a/b/c/d'], ['/ab']);
  assertTemplate('/a{;b,c}', ['/a', '/a;b=1;c=2'], ['/a;b=1;c=2;d', '/ab']);
  assertTemplate('/a{?b,c}', ['/a', '/a?b=1', '/a?b=1&c=2'], ['/a&c=2', '/a?b=1&c=2&d=3']);
  assertTemplate('/a{?b*}', ['/a', '/a?b=1&c=2&d=3'], ['/a&b']);
  assertTemplate('/a?b=1{&c}', ['/a?b=1', '/a?b=1&c=2'], ['/a?b=1&c=2&d=3']);
});

/**
 * The regular expression that yosida95/uritemplate makes of a variable list.
 * @param {string} sign @param {string[]} names
 */
function expressionOf(sign, names) {
  const first = { '#': '#', '.': '\\.', '/': '/', ';': ';', '?': '\\?', '&': '&' }[sign] ?? '';
  const separator = { '.': '\\.', '/': '/', ';': ';', '?': '&', '&': '&' }[sign] ?? ',';
  const isList = names.some((name) => name.endsWith('*'));
  const isNamed = ';?&'.includes(sign) && sign !== '';
  const others = sign === '+' || sign === '#' ? "!#$&-,/:;=?@[\\]'(-+" : ',';
  const run = (/** @type {boolean} */ hasEquals) =>
    `(?:[${others}${hasEquals ? '=' : ''}\\w.~\\-]|%[\\da-fA-F]{2})*`;
  const head = run(isNamed || names[0].endsWith('*'));
  const times = isList ? '*' : `{0,${names.length - 1}}`;
  return `(?:${first}(?:${head}(?:${separator}${run(isNamed || isList)})${times}))?`;
}

test('templates match what the regular expressions of the reference hub match', () => {
  const random = randomNumbers(5);
  const oneOf = (/** @type {string[]} */ texts) => texts[random(texts.length)];
  const pieces = ['a', '/', '.', ';', '?', '&', '#', ',', '=', '%41', '%4', 'b', '-', 'é', '{', '+'];
  for (let i = 0; i < 4000; i++) {
    let value = '';
    let source = '';
    for (let n = 1 + random(2); n > 0; n--) {
      const sign = oneOf(['', '', '+', '#', '.', '/', ';', '?', '&']);
      const names = Array.from({ length: 1 + random(3) }, () => oneOf(['x', 'y*', 'z:3', 'a.b']));
      const text = oneOf(['', 'a', '/', '-b/', '.', ';', '%41', '?']);
      value += `{${sign}${names.join(',')}}${text}`;
      source += expressionOf(sign, names) + text.replace(/[.?]/g, '\\$&');
    }
    const expression = new RegExp(`^(?:${source})$`, 'u');
    const selector = template(value);
    for (let n = 0; n < 4; n++) {
      const topic = Array.from({ length: random(8) }, () => oneOf(pieces)).join('');
      assert.equal(selector.matches(topic), expression.test(topic), JSON.stringify([value, topic, source]));
    }
  }
});

test('no template takes long', () => {
  for (const value of [
    '{a}'.repeat(30),
    '{a}a'.repeat(15),
    `{/${'a,'.repeat(6)}b}x`,
    '{+a}a'.repeat(15),
    '{?a*}'.repeat(4),
  ])
    for (const topic of ['a'.repeat(4096), 'a/'.repeat(2048), '?a&'.repeat(1365), '%41'.repeat(1365)]) {
      const start = performance.now();
      template(value).matches(topic);
      assert.ok(performance.now() - start < 500, value);
    }
});
