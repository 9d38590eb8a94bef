import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inOrigins, readOrigin } from '../lib/origins.js';

test('a rule is read as browsers write origins', () => {
  /** @type {[string, string][]} */
  const rules = [
    ['https://example.com', 'https://example.com'],
    ['HTTPS://Example.COM/', 'https://example.com'],
    ['https://example.com:443', 'https://example.com'],
    ['http://example.com:443', 'http://example.com:443'],
    ['http://localhost:3000', 'http://localhost:3000'],
    ['http://[::1]:80', 'http://[::1]'],
    ['https://*.example.com', 'https://*.example.com'],
    ['https://*.example.com:8443', 'https://*.example.com:8443'],
    ['capacitor://localhost', 'capacitor://localhost'],
    ['capacitor://', 'capacitor://'],
    ['chrome-extension://abcdef', 'chrome-extension://abcdef'],
    ['null', 'null'],
    ['*', '*'],
  ];
  for (const [text, expected] of rules) assert.equal(readOrigin(text), expected, text);
});

test('what is no origin is no rule', () => {
  const texts = [
    '',
    'example.com',
    'https://',
    'http://',
    'https://*',
    'https://*.',
    'https://a/b',
    'https://a?b',
  ];
  const more = [
    'https://user@a',
    'https://a,b',
    'https://a b',
    '*://a',
    'https://a.*.b',
    'https://a:x',
    'a:b',
    '**',
  ];
  for (const text of [...texts, ...more]) assert.equal(readOrigin(text), undefined, text);
});

test('an exact rule allows exactly one origin', () => {
  const allows = inOrigins(['https://example.com', 'null']);
  assert.deepEqual(['https://example.com', 'null'].map(allows), [true, true]);
  const others = [
    'http://example.com',
    'https://example.com:8443',
    'https://a.example.com',
    'https://example.com.evil',
    '',
  ];
  for (const origin of others) assert.equal(allows(origin), false, origin);
});

test('a wildcard allows subdomains, and nothing that only ends alike', () => {
  const allows = inOrigins(['https://*.example.com', 'http://*.local:3000']);
  for (const origin of ['https://a.example.com', 'https://a.b.example.com', 'http://x.local:3000'])
    assert.equal(allows(origin), true, origin);
  const others = [
    'https://example.com',
    'https://.example.com',
    'https://evilexample.com',
    'https://a.example.com:8443',
    'http://a.example.com',
    'https://evil.com/.example.com',
    'https://evil.com:80.example.com',
    'https://evil.com#.example.com',
    'https://user@.example.com',
    'https://a..example.com',
    'http://x.local',
    'https://',
  ];
  for (const origin of others) assert.equal(allows(origin), false, origin);
});

test('a scheme allows all of its origins; * is for the caller to look at', () => {
  const allows = inOrigins(['capacitor://', '*']);
  assert.equal(allows('capacitor://localhost'), true);
  assert.equal(allows('https://example.com'), false);
});
