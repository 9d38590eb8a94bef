import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { plot } from '../scripts/plot/index.js';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { ROOT, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const FIXTURES = join(ROOT, 'test/fixtures/plot');

/**
 * @param {import('node:test').TestContext} t @param {string[]} names of fixtures, or paths
 * @returns {Promise<string>} the path of the page
 */
async function makePage(t, ...names) {
  const paths = names.map((name) => (name.includes('/') ? name : join(FIXTURES, `${name}.csv`)));
  const { written } = await plot(paths, { out: temporaryFolder(t), formats: ['html'] });
  return written[0];
}

/** @param {import('node:test').TestContext} t @param {string} path @param {'light' | 'dark'} [colorScheme] */
async function openPage(t, path, colorScheme = 'light') {
  const browser = await startBrowser(t);
  const page = await browser.newPage({ viewport: { width: 1000, height: 1400 }, colorScheme });
  /** @type {string[]} */
  const problems = [];
  /** @type {string[]} */
  const requests = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => problems.push(message.text()));
  page.on('request', (request) => requests.push(request.url()));
  await page.goto(pathToFileURL(path).href);
  /** @returns {Promise<number[][]>} from and to of each chart, s */
  const ranges = () => page.evaluate('plots.map(({ scales }) => [scales.x.min, scales.x.max])');
  /** @returns {Promise<string[]>} the time in the legend of each chart */
  const times = () =>
    page.$$eval('.u-legend', (legends) =>
      legends.map((one) => one.querySelector('.u-value')?.textContent ?? ''),
    );
  /** @param {number} share of the width of the first chart */
  const pointAt = async (share) => {
    const box = await page.locator('.u-over').first().boundingBox();
    assert.ok(box);
    return /** @type {[number, number]} */ ([box.x + box.width * share, box.y + box.height / 2]);
  };
  return { page, problems, requests, ranges, times, pointAt };
}

/** @param {string} html @returns {any} */
function dataOf(html) {
  return JSON.parse(/<script type="application\/json" id="data">(.*?)<\/script>/s.exec(html)?.[1] ?? '');
}

test('the page is self-contained', async (t) => {
  const html = readFileSync(await makePage(t, 'hold'), 'utf8');
  assert.ok(
    !/(?:src|href)\s*=|@import|url\(/.test(html.replace(/<script>.*?<\/script>/s, '')),
    'a reference to another file',
  );
  assert.match(html, /default-src 'none'/);
  assert.match(html, /machine: 2 x a CPU of the fixture/);
});

test('its points are those of the CSV, and the legend of a stack shows the value of each part', async (t) => {
  const { panels, times } = dataOf(readFileSync(await makePage(t, 'hold'), 'utf8'));
  assert.equal(times[0].length, 60);
  const [kernel, native] = panels[0].lines;
  assert.ok(Math.abs(native.tops[30] - kernel.values[30] - native.values[30]) < 2000);
});

test('names and notes are escaped', async (t) => {
  const path = join(temporaryFolder(t), '<b>&"x.csv');
  writeFileSync(path, 'streams,</script><i>\r\n1,2\r\n');
  const html = readFileSync(await makePage(t, path), 'utf8');
  assert.ok(!html.includes('<b>') && !html.includes('<i>'));
  assert.match(html, /unknown columns, ignored: &#60;\/script&#62;&#60;i&#62;/);
});

test('the page of a run without rows says so', async (t) => {
  const path = join(temporaryFolder(t), 'empty.csv');
  writeFileSync(path, '');
  assert.match(readFileSync(await makePage(t, path), 'utf8'), /empty: the file is empty/);
});

test(
  'in a browser it draws its charts, requests nothing, and one crosshair shows the same time in all charts',
  NEEDS_CHROMIUM,
  async (t) => {
    const { page, problems, requests, times, pointAt } = await openPage(t, await makePage(t, 'hold'));
    assert.equal(await page.locator('canvas').count(), 5);
    await page.mouse.move(...(await pointAt(0.5)));
    const said = await until(async () => {
      const all = await times();
      return all[0] !== '–' && new Set(all).size === 1 && all;
    }, 'the crosshair appears in all charts');
    assert.equal(said.length, 5);
    assert.match(said[0], /^0:(29|30)$/);
    const values = await page.$$eval('#memory .u-value', (cells) =>
      cells.slice(1).map((cell) => cell.textContent),
    );
    for (const value of values.slice(0, 4)) assert.match(value ?? '', /^[\d.,]+ MB$/);
    assert.deepEqual(problems, []);
    assert.equal(requests.length, 1);
  },
);

test('a drag zooms all charts, and the button shows the whole run again', NEEDS_CHROMIUM, async (t) => {
  const { page, ranges, pointAt, problems } = await openPage(t, await makePage(t, 'hold'));
  const whole = await ranges();
  await page.mouse.move(...(await pointAt(0.25)));
  await page.mouse.down();
  await page.mouse.move(...(await pointAt(0.5)), { steps: 5 });
  await page.mouse.up();
  const zoomed = await until(async () => {
    const all = await ranges();
    return all.every(([from, to]) => from > 10 && to < 35) && all;
  }, 'all charts are zoomed');
  assert.equal(new Set(zoomed.map(String)).size, 1);
  await page.click('#whole');
  await until(async () => String(await ranges()) === String(whole), 'the whole run');
  assert.deepEqual(problems, []);
});

test('compared runs share a crosshair, and one that has ended shows no value', NEEDS_CHROMIUM, async (t) => {
  const { page, problems, pointAt } = await openPage(t, await makePage(t, 'hold', 'http'));
  assert.equal(await page.locator('canvas').count(), 17);
  await page.mouse.move(...(await pointAt(0.98)));
  const cells = await until(async () => {
    const all = await page.$$eval('#memory .u-legend:first-of-type .u-value', (ones) =>
      ones.slice(0, 3).map((one) => one.textContent ?? ''),
    );
    return all[0] !== '–' && all;
  }, 'the crosshair');
  assert.match(cells[1], / MB$/);
  assert.equal(cells[2], '–');
  assert.deepEqual(problems, []);
});

test('it is light on a light screen and dark on a dark one', NEEDS_CHROMIUM, async (t) => {
  const path = await makePage(t, 'hold');
  for (const [scheme, expected] of /** @type {const} */ ([
    ['light', 'rgb(255, 255, 255)'],
    ['dark', 'rgb(16, 17, 20)'],
  ])) {
    const { page } = await openPage(t, path, scheme);
    assert.equal(await page.evaluate('getComputedStyle(document.body).backgroundColor'), expected);
  }
});
