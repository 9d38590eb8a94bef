import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseScreen } from '../scripts/picture/screen.js';
import { renderScreen } from '../scripts/picture/svg.js';

test('a colour applies across lines until it is reset', () => {
  const [first, second] = parseScreen('a\x1b[32mb\nc\x1b[0md\x1b[38;5;1me\n');
  assert.equal(first.length, 2);
  assert.notEqual(first[1].style.color, first[0].style.color);
  assert.equal(second[0].style.color, first[1].style.color);
  assert.equal(second[1].style.color, first[0].style.color);
  assert.notEqual(second[2].style.color, second[1].style.color);
});

test('text is escaped, box characters become lines, braille becomes dots', () => {
  const svg = renderScreen(parseScreen('<&\n─│\n\u2803'));
  assert.match(svg, /textLength="18" [^>]*>&#60;&#38;<\/text>/);
  assert.equal(svg.match(/<path /g)?.length, 2);
  assert.equal(svg.match(/<circle /g)?.length, 2);
});

test('a background is one rectangle behind its text, and inverse text swaps the colours', () => {
  const svg = renderScreen(parseScreen('\x1b[46mab \x1b[0mc\x1b[7mde'));
  assert.equal(svg.match(/<rect x=/g)?.length, 2);
  assert.match(svg, /<rect x="9" [^>]*width="27"/);
});
