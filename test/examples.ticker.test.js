/*
 * The price ticker of examples/ in Chromium.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { problemsOf, startExample, textsIn, untilTexts } from './helpers/examples.js';
import { startGate } from './helpers/gate.js';
import { until } from './helpers/until.js';

const SYMBOLS = ['ANVL', 'BOLT', 'CORK', 'FERN', 'KITE', 'OAR'];
/** No price changes after the first ones. */
const STILL = { TICK_MS: '86400000' };

/** @typedef {import('playwright-core').Page} Page */

/** @param {import('node:test').TestContext} t @param {{ env?: Record<string, string> }} [options] */
async function startTicker(t, { env = { TICK_MS: '50' } } = {}) {
  const ticker = await startExample(t, 'ticker', { env });
  const browser = await startBrowser(t);
  const open = async (url = ticker.url) => {
    const page = await browser.newPage();
    const problems = problemsOf(page);
    await page.goto(url);
    await untilTexts(page, 'tbody th', SYMBOLS);
    return { page, problems };
  };
  return { ...ticker, open };
}

/** @param {Page} page */
const pricesIn = (page) => textsIn(page, '.price');
/** @param {Page} page */
const linesIn = (page) =>
  page.locator('polyline').evaluateAll((lines) => lines.map((line) => line.getAttribute('points')));

/** @param {Page} page @param {string[]} before */
const untilMoved = (page, before) =>
  until(
    async () => (await pricesIn(page)).every((price, i) => price !== before[i]),
    'all prices move',
    30_000,
  );

describe('the ticker', NEEDS_CHROMIUM, () => {
  test('shows prices that move, and their lines', async (t) => {
    const { open } = await startTicker(t);
    const { page, problems } = await open();
    const lines = await linesIn(page);
    await untilMoved(page, await pricesIn(page));
    const isNew = (/** @type {string | null} */ line, /** @type {number} */ i) => line !== lines[i];
    await until(async () => (await linesIn(page)).every(isNew), 'all lines move', 30_000);
    assert.ok((await linesIn(page)).every((line) => line?.split(' ').length === 40));
    assert.ok((await textsIn(page, '.change')).every((text) => /^[▲▼] \d+\.\d %$/.test(text)));
    assert.deepEqual(problems, []);
  });

  test('shows a new visitor the last prices, although none has changed since', async (t) => {
    const { open } = await startTicker(t, { env: STILL });
    const first = await open();
    const second = await open();
    assert.deepEqual(await pricesIn(second.page), await pricesIn(first.page));
    assert.deepEqual(await linesIn(second.page), await linesIn(first.page));
  });

  test('can be paused, and then has the last prices at once', async (t) => {
    const { open } = await startTicker(t);
    const { page } = await open();
    await page.getByRole('button', { name: 'Pause' }).click();
    await untilTexts(page, '#state', ['paused']);
    const paused = await pricesIn(page);
    const other = await open();
    await untilMoved(other.page, paused);
    assert.deepEqual(await pricesIn(page), paused);
    await page.getByRole('button', { name: 'Continue' }).click();
    await untilMoved(page, paused);
  });

  test('goes on after a connection was lost', async (t) => {
    const { port, open } = await startTicker(t);
    const gate = await startGate(t, port);
    const { page, problems } = await open(`http://localhost:${gate.port}/`);
    gate.cut();
    await untilTexts(page, '#state', ['reconnecting…']);
    const lost = await pricesIn(page);
    await gate.restore();
    await untilTexts(page, '#state', ['live']);
    await untilMoved(page, lost);
    assert.deepEqual(problems, []);
  });
});
