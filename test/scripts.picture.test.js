import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Resvg } from '@resvg/resvg-js';
import { recompressed } from '../scripts/picture/png.js';
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

/** @param {Buffer} png @returns {Buffer} its pixels, as somebody else decodes them */
function pixelsOf(png) {
  const href = `data:image/png;base64,${png.toString('base64')}`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><image href="${href}" width="300" height="200"/></svg>`;
  return new Resvg(svg).render().pixels;
}

test('a PNG that was made smaller is the same picture', () => {
  const squares = Array.from(
    { length: 400 },
    (_, i) =>
      `<rect x="${(i * 37) % 290}" y="${(i * 53) % 190}" width="9" height="7" fill="hsl(${i},80%,50%)"/>`,
  );
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"><rect width="300" height="200" fill="#123"/>${squares.join('')}</svg>`;
  const png = new Resvg(svg).render().asPng();
  const smaller = recompressed(png);
  assert.ok(smaller.length < png.length, `${smaller.length} of ${png.length}`);
  assert.ok(pixelsOf(smaller).equals(pixelsOf(png)));
  assert.equal(recompressed(smaller), smaller, 'once is enough');
});
