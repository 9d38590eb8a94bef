/*
 * The dashboard in Chromium, with a real server behind it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { get, rawClient } from './helpers/client.js';
import { listening } from './helpers/hold.js';
import { startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TOKEN = 'correct-horse-battery-staple';
const WIDTHS = { desk: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {Awaited<ReturnType<typeof startServer>>} Server */

describe('the dashboard in a browser', NEEDS_CHROMIUM, () => {
  /** One for all tests; each has pages of its own. @type {import('playwright-core').Browser} */
  let browser;
  /** @type {(() => void | Promise<void>)[]} */
  const endings = [];
  before(async () => {
    const scope = { after: (/** @type {() => Promise<void>} */ end) => void endings.push(end) };
    browser = await startBrowser(/** @type {any} */ (scope));
  });
  after(async () => {
    for (const end of endings) await end();
  });

  /**
   * @param {import('node:test').TestContext} t @param {number} port of the admin
   * @param {import('playwright-core').BrowserContextOptions} [options]
   */
  async function open(t, port, options = {}) {
    const context = await browser.newContext({ viewport: WIDTHS.desk, reducedMotion: 'reduce', ...options });
    t.after(() => context.close());
    const page = await context.newPage();
    /** @type {string[]} */
    const problems = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => {
      if (/Content.Security|Trusted/i.test(message.text())) problems.push(message.text());
    });
    await page.goto(`http://127.0.0.1:${port}/`);
    return { page, problems };
  }

  /** @param {Page} page @param {string} text */
  const untilStatus = (page, text) =>
    until(
      async () => (await page.locator('#status-text').textContent())?.includes(text),
      `the status: ${text}`,
    );

  /** @param {Page} page @param {string} name @returns {Promise<string>} one of the figures at the top */
  const figureOf = async (page, name) =>
    (await page.locator(`[data-figure="${name}"]`).textContent({ timeout: 10_000 })) ?? '';

  /** @param {Page} page @param {string} id @returns {Promise<string>} what is drawn; the number of pixels, and a hash of them */
  const drawnIn = (page, id) =>
    page.evaluate((chart) => {
      const canvas = /** @type {HTMLCanvasElement} */ (document.querySelector(`#chart-${chart} canvas`));
      const { data } = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d')).getImageData(
        0,
        0,
        canvas.width,
        canvas.height,
      );
      let [pixels, hash] = [0, 0];
      for (let i = 3; i < data.length; i += 4)
        if (data[i] > 0) {
          pixels++;
          hash = (hash * 31 + i + data[i - 1]) | 0;
        }
      return `${pixels} ${hash}`;
    }, id);

  /** @param {Server} server @param {number} count */
  async function openStreams(server, count, target = '/') {
    const clients = Array.from({ length: count }, () =>
      rawClient(server.port, get().replace('/ HTTP', `${target} HTTP`)),
    );
    for (const client of clients) await client.untilRead(/200 OK/);
    return clients;
  }

  test('draws all charts, and shows the values of /frame', async (t) => {
    const server = await startServer(t, ['--refresh', '1000', '--workers', '2']);
    const clients = await openStreams(server, 7);
    const { page, problems } = await open(t, server.adminPort);
    await until(async () => (await figureOf(page, 'Streams')) === '7', 'seven streams');
    await untilStatus(page, 'live');
    for (const id of ['streams', 'opens', 'memory', 'cpu', 'ticks', 'lateness', 'pings', 'queues'])
      assert.ok(Number.parseInt(await drawnIn(page, id), 10) > 500, id);
    const { workers } = await server.frame();
    const rows = await page.locator('#workers tbody tr').allTextContents();
    assert.equal(rows.length, 3);
    for (const { id, pid } of workers)
      assert.ok(
        rows.some((row) => row.startsWith(`worker ${id}ready${pid}`)),
        rows.join(),
      );
    assert.match((await page.locator('#events').textContent()) ?? '', /dashboard on http:\/\/127\.0\.0\.1/);
    assert.match(
      (await page.locator('#chart-streams .plot').getAttribute('aria-label')) ?? '',
      /Chart: Streams\. open \d/,
    );
    assert.deepEqual(problems, []);
    for (const client of clients) client.close();
  });

  test('moves with every frame: values, charts, closes and topics', async (t) => {
    const server = await startServer(t, ['--anonymous']);
    const { page } = await open(t, server.adminPort);
    await until(async () => (await figureOf(page, 'Streams')) === '0', 'no streams');
    const drawn = await drawnIn(page, 'streams');
    const clients = await openStreams(server, 5, '/.well-known/mercure?topic=https://example.com/a');
    await until(async () => (await figureOf(page, 'Streams')) === '5', 'five streams');
    await until(async () => (await drawnIn(page, 'streams')) !== drawn, 'another picture');
    await until(
      async () => /example\.com\/a5$/.test((await page.locator('#subscribers tbody').textContent()) ?? ''),
      'its topic',
    );
    for (const client of clients) client.close();
    await until(
      async () => /client-gone5/.test((await page.locator('#closes tbody').textContent()) ?? ''),
      'the reason',
    );
  });

  test('recovers when the server restarts on the same port, and says that the history begins anew', async (t) => {
    const first = await startServer(t, ['--drain', '0']);
    const { page } = await open(t, first.adminPort);
    await untilStatus(page, 'live');
    await first.stop();
    await untilStatus(page, 'server stopped');
    const second = await startServer(t, ['--admin-port', String(first.adminPort)]);
    const clients = await openStreams(second, 3);
    await until(async () => (await figureOf(page, 'Streams')) === '3', 'the streams of the second one');
    await untilStatus(page, 'live');
    assert.match((await page.locator('#result').textContent()) ?? '', /restarted: its history begins here/);
    const { workers } = await second.frame();
    assert.ok((await page.locator('#workers tbody').textContent())?.includes(String(workers[0].pid)));
    for (const client of clients) client.close();
  });

  test('says when the server hangs, and goes on when it does', async (t) => {
    const server = await startServer(t, ['--refresh', '500']);
    const { page } = await open(t, server.adminPort);
    await untilStatus(page, 'live');
    process.kill(server.pid, 'SIGSTOP');
    await untilStatus(page, 'no frame for');
    process.kill(server.pid, 'SIGCONT');
    await untilStatus(page, 'live');
    assert.equal(await page.locator('#result').textContent(), '', 'it is the same server');
  });

  test('asks before it collects garbage: Esc and Cancel do nothing, and the focus returns', async (t) => {
    const server = await startServer(t);
    const { page } = await open(t, server.adminPort);
    await untilStatus(page, 'live');
    const dialog = page.locator('#dialog');
    await page.locator('#gc').focus();
    await page.keyboard.press('Enter');
    assert.equal(await dialog.isVisible(), true);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'dialog-no', 'Cancel has the focus');
    await page.keyboard.press('Escape');
    assert.equal(await dialog.isVisible(), false);
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'gc');
    await page.locator('#gc').click();
    await page.locator('#dialog-no').click();
    assert.ok(!server.output.stderr.includes('requested GC'));
    await page.locator('#gc').click();
    await page.locator('#dialog-yes').click();
    await until(
      async () => (await page.locator('#result').textContent()) === 'Server: requested GC in every worker',
      'the result',
    );
    await until(() => server.output.stderr.includes('requested GC'), 'it was done');
    assert.equal(server.output.stderr.split('requested GC').length, 2, 'once');
  });

  test('drains the server after a confirmation, and says so', async (t) => {
    const server = await startServer(t, ['--drain', '1500']);
    const clients = await openStreams(server, 3);
    const { page } = await open(t, server.adminPort);
    await untilStatus(page, 'live');
    await page.locator('#drain').click();
    await page.keyboard.press('Escape');
    await page.locator('#drain').click();
    assert.equal(server.child.exitCode, null);
    await page.locator('#dialog-yes').click();
    await untilStatus(page, 'server draining');
    assert.equal((await server.exit).code, 0);
    await untilStatus(page, 'server stopped');
    for (const client of clients) assert.ok(client);
  });

  for (const colorScheme of /** @type {const} */ (['light', 'dark']))
    for (const [name, viewport] of Object.entries(WIDTHS))
      test(`has nothing that axe finds serious, and no horizontal scrolling (${colorScheme}, ${name})`, async (t) => {
        const server = await startServer(t, ['--anonymous']);
        const long = `https://example.com/${'a-very-long-topic-name/'.repeat(8)}`;
        const clients = [
          ...(await openStreams(server, 2, `/.well-known/mercure?topic=${long}`)),
          ...(await openStreams(server, 1, `/?channel=${'c'.repeat(120)}`)),
        ];
        const { page } = await open(t, server.adminPort, { colorScheme, viewport, bypassCSP: true });
        await until(
          async () => (await page.locator('#subscribers tbody').textContent())?.includes('a-very-long'),
          'topics',
        );
        await page.evaluate(AXE);
        const problemsNow = () =>
          page.evaluate(async () => {
            const { violations } = await /** @type {any} */ (globalThis).axe.run();
            return violations
              .filter((/** @type {any} */ { impact }) => impact === 'serious' || impact === 'critical')
              .map(
                (/** @type {any} */ { id, nodes }) =>
                  `${id}: ${nodes.map((/** @type {any} */ one) => one.html).join(' ')}`,
              );
          });
        assert.deepEqual(await problemsNow(), []);
        const width = await page.evaluate(() => document.documentElement.scrollWidth);
        assert.ok(width <= viewport.width, `${width} px`);
        await page.locator('#drain').click();
        assert.deepEqual(await problemsNow(), [], 'with the dialog');
        assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), colorScheme);
        for (const client of clients) client.close();
      });

  test('can be used by keyboard: the range, the pause, the theme and the crosshair', async (t) => {
    const server = await startServer(t);
    const { page } = await open(t, server.adminPort, { colorScheme: 'light' });
    await untilStatus(page, 'live');
    await until(
      async () => Number(await page.evaluate(() => document.querySelectorAll('.legend b').length)) > 10,
      'legends',
    );
    await page.locator('input[name=range]').first().focus();
    await page.keyboard.press('ArrowRight');
    assert.equal(await page.locator('input[name=range]:checked').getAttribute('value'), '900');
    await page.locator('#chart-cpu .plot').focus();
    await until(async () => {
      await page.keyboard.press('ArrowLeft');
      const times = await page.locator('.chart .when').allTextContents();
      return times.length === 8 && times.every((time) => /^\d\d:\d\d:\d\d$/.test(time));
    }, 'the time at the crosshair of every chart');
    await page.keyboard.press('Escape');
    await until(
      async () => (await page.locator('.chart .when').allTextContents()).every((time) => time === ''),
      'no crosshair',
    );
    await page.locator('#theme').selectOption('dark');
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark');
    await page.reload();
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark', 'it was kept');
  });

  test('stands still while it is paused, and continues with what has come meanwhile', async (t) => {
    const server = await startServer(t);
    const { page } = await open(t, server.adminPort);
    await until(async () => (await figureOf(page, 'Streams')) === '0', 'no streams');
    await page.locator('#pause').click();
    const before_ = await drawnIn(page, 'streams');
    const clients = await openStreams(server, 4);
    await server.untilTotals(({ streams }) => streams === 4, 'the streams');
    const { totals } = await server.frame();
    await server.untilTotals(
      ({ elapsedMs }) => elapsedMs > Number(totals.elapsedMs) + 500,
      'some more frames',
    );
    assert.deepEqual([await figureOf(page, 'Streams'), await drawnIn(page, 'streams')], ['0', before_]);
    assert.match((await page.locator('#status-text').textContent()) ?? '', /paused/);
    await page.locator('#pause').click();
    await until(async () => (await figureOf(page, 'Streams')) === '4', 'it goes on');
    for (const client of clients) client.close();
  });

  test('can not be used, read or framed by pages of other origins, under whatever name', async (t) => {
    const server = await startServer(t, ['--anonymous', '--drain', '0']);
    const { page } = await open(t, server.adminPort);
    await untilStatus(page, 'live');
    const pages = createServer((_, response) =>
      response.setHeader('Content-Type', 'text/html').end('<title>evil</title>'),
    );
    const port = await listening(t, pages);
    const admin = `http://127.0.0.1:${server.adminPort}`;
    for (const origin of [`http://evil.localhost:${port}`, `http://127.0.0.1:${port}`]) {
      await page.goto(origin);
      const got = await page.evaluate(async (url) => {
        const get = (/** @type {string} */ path, /** @type {RequestInit} */ init) =>
          fetch(url + path, init).then(
            ({ type, status }) => `${type} ${status}`,
            () => 'blocked',
          );
        const post = { method: 'POST', headers: { 'X-Holdfast': '1' } };
        const form = Object.assign(document.createElement('form'), {
          method: 'POST',
          action: `${url}/drain`,
          target: 'f',
        });
        document.body.append(Object.assign(document.createElement('iframe'), { name: 'f' }), form);
        form.submit();
        return [
          await get('/drain', post),
          await get('/drain', { method: 'POST', mode: 'no-cors' }),
          await get('/history', {}),
        ];
      }, admin);
      assert.deepEqual(got, ['blocked', 'opaque 0', 'blocked'], origin);
      await page.evaluate(
        (src) => document.body.append(Object.assign(document.createElement('iframe'), { src })),
        `${admin}/`,
      );
      await until(
        () => page.frames().some((frame) => frame.url().startsWith('chrome-error:')),
        'the frame is refused',
      );
      assert.ok(!page.frames().some((frame) => frame.url() === `${admin}/`), origin);
    }
    const rebound = await page.goto(`http://rebound.localhost:${server.adminPort}/`);
    assert.equal(rebound?.status(), 403);
    assert.equal((await server.admin('/readyz')).status, 200, 'the server runs');
    assert.ok(!server.output.stderr.includes('draining'));
  });

  test('has nothing that moves for those who do not want that', async (t) => {
    const server = await startServer(t);
    for (const [reducedMotion, expected] of /** @type {const} */ ([
      ['reduce', 'none'],
      ['no-preference', 'pulse'],
    ])) {
      const { page } = await open(t, server.adminPort, { reducedMotion });
      await untilStatus(page, 'live');
      assert.equal(
        await page.evaluate(
          () => getComputedStyle(document.querySelector('.dot') ?? document.body).animationName,
        ),
        expected,
      );
    }
  });

  test('has a login with --admin-token, which says when the token is wrong', async (t) => {
    const server = await startServer(t, ['--admin-token', TOKEN]);
    const { page, problems } = await open(t, server.adminPort);
    await page.locator('#token').fill('wrong');
    await page.locator('button').click();
    await page.locator('[role=alert]').waitFor();
    await page.locator('#token').fill(TOKEN);
    await page.locator('button').click();
    await untilStatus(page, 'live');
    await page.locator('#gc').click();
    await page.locator('#dialog-yes').click();
    await until(() => server.output.stderr.includes('requested GC'), 'the session may do that');
    await page.context().clearCookies();
    await page.reload();
    await page.locator('#token').waitFor();
    assert.deepEqual(problems, []);
  });
});
