/*
 * The page that a browser gets that opens the port.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { PAGE } from '../hub/protocol/page.js';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { get, rawClient } from './helpers/client.js';
import { clientsOf, SECRET } from './helpers/hub.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };
const TOPIC = 'https://example.com/books/1';

/** @param {import('node:test').TestContext} t @param {string} url @param {'light' | 'dark'} [colorScheme] */
async function openPage(t, url, colorScheme = 'light') {
  const browser = await startBrowser(t);
  const page = await browser.newPage({ viewport: { width: 900, height: 1300 }, colorScheme });
  /** @type {string[]} */
  const problems = [];
  /** @type {string[]} */
  const origins = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => problems.push(message.text()));
  page.on('request', (request) => origins.push(new URL(request.url()).origin));
  await page.goto(url); // resolves when it is loaded, so it is finite
  const textOf = (/** @type {string} */ id) =>
    page
      .locator(`#${id}`)
      .textContent()
      .then((text) => text ?? '');
  return { page, problems, origins, textOf };
}

test('the page allows its own script and style only, and loads nothing from elsewhere', () => {
  const policy = PAGE.headers['Content-Security-Policy'];
  assert.match(
    policy,
    /^default-src 'none'; script-src 'sha256-[\w+/]{43}='; style-src 'sha256-[\w+/]{43}='; connect-src 'self'; img-src data:; /,
  );
  assert.doesNotMatch(PAGE.body, /\b(src|onclick|onload|style)=|@import|url\(/);
  assert.equal(PAGE.body.match(/<script/g)?.length, 1);
  assert.equal(PAGE.body.match(/<style/g)?.length, 1);
  assert.ok(PAGE.body.length < 16_384, `${PAGE.body.length} bytes`);
});

for (const transport of TRANSPORTS) {
  describe(`a browser that opens a server with the ${transport} transport`, () => {
    const args = [
      '--transport',
      transport,
      '--workers',
      '1',
      '--ping-interval',
      '100',
      '--jwt-secret',
      SECRET,
    ];

    test('gets a page, and streams stay streams', async (t) => {
      const server = await startServer(t, args);
      const page = rawClient(server.port, get(HTML));
      await page.untilClosed();
      assert.match(page.received, /^HTTP\/1\.1 200 OK\r\n/);
      for (const [name, value] of Object.entries(PAGE.headers))
        assert.ok(page.received.includes(`\r\n${name}: ${value}\r\n`), name);
      assert.ok(page.received.endsWith(PAGE.body));
      const head = rawClient(server.port, get(HTML).replace('GET', 'HEAD'));
      await head.untilClosed();
      assert.match(head.received, new RegExp(`\r\nContent-Length: ${PAGE.body.length}\r\n`));
      assert.ok(head.received.endsWith('\r\n\r\n'));
      for (const Accept of ['*/*', 'text/event-stream']) {
        const stream = rawClient(server.port, get({ Accept }));
        await stream.untilRead(/Welcome!/);
        stream.close();
      }
    });

    test('sees a live stream with its pings, and can subscribe to a topic', NEEDS_CHROMIUM, async (t) => {
      const server = await startServer(t, args);
      const { publish } = clientsOf(t, server.port);
      const { page, problems, origins, textOf } = await openPage(t, `http://localhost:${server.port}/`);
      await until(async () => Number(await textOf('pings')) >= 3, 'three pings');
      assert.equal(await textOf('state'), 'open');
      assert.match(await textOf('stream'), /event: welcome\s+data: Welcome!/);
      await until(async () => (await textOf('subscription')) === 'subscribed to all topics', 'it subscribes');
      await publish({ topic: 'any', data: 'first' });
      await until(async () => /first$/.test(await textOf('events')), 'an event of any topic');
      await page.getByLabel('Topic').fill(TOPIC);
      await page.getByRole('button', { name: 'Subscribe' }).click();
      await until(
        async () => (await textOf('subscription')) === `subscribed to ${TOPIC}`,
        'the subscription',
      );
      await publish({ topic: TOPIC, data: '<b>hello</b>' });
      await publish({ topic: 'other', data: 'no' });
      await until(async () => /<b>hello<\/b>$/.test(await textOf('events')), 'the event');
      await page.getByLabel('Topic').fill('https://example.com/books/:id');
      await page.getByLabel('Kind').selectOption('URL pattern');
      await page.getByLabel('Topic').press('Enter');
      await until(async () => (await textOf('subscription')).endsWith(':id'), 'the next subscription');
      await publish({ topic: 'https://example.com/books/2', data: 'two' });
      await until(async () => /two$/.test(await textOf('events')), 'the event of the pattern');
      await page.getByLabel('Kind').selectOption('exact');
      await page.getByLabel('Topic').fill('a\u200eb');
      await page.getByRole('button', { name: 'Subscribe' }).click();
      await until(async () => (await textOf('subscription')) === 'the server refused this', 'the refusal');
      assert.deepEqual(new Set(origins), new Set([`http://localhost:${server.port}`]));
      assert.deepEqual(
        problems.filter((text) => !text.includes('400')),
        [],
      );
    });
  });
}

test(
  'a browser that may not subscribe without a token learns that, and how to change it',
  NEEDS_CHROMIUM,
  async (t) => {
    const server = await startServer(t, ['--workers', '1', '--jwt-secret', SECRET]);
    // A name that is not of this machine, as far as the server can see.
    const { page } = await openPage(t, `http://hub.localhost:${server.port}/`);
    await page.getByText('Started with --anonymous').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Subscribe' }).isVisible(), false);
  },
);

test('a link can have the topic', NEEDS_CHROMIUM, async (t) => {
  const server = await startServer(t, ['--workers', '1', '--anonymous']);
  const publish = (/** @type {string} */ topic) =>
    fetch(`http://127.0.0.1:${server.adminPort}/.well-known/mercure`, {
      method: 'POST',
      body: new URLSearchParams({ topic, data: topic }),
    });
  // Names that are not of this machine, as far as the page can see.
  const { textOf } = await openPage(t, `http://hub.localhost:${server.port}/#topic=news`);
  await until(async () => (await textOf('subscription')) === 'subscribed to news', 'the subscription');
  const other = await openPage(t, `http://hub.localhost:${server.port}/`);
  await other.page.getByRole('button', { name: 'Subscribe' }).waitFor();
  await publish('other');
  await publish('news');
  await until(async () => /news$/.test(await textOf('events')), 'the event');
  assert.doesNotMatch(await textOf('events'), /other/);
  assert.equal(await other.textOf('subscription'), '', 'without one, it waits for the user');
});

test(
  'the page reconnects when its stream ends, and follows the channels in its address',
  NEEDS_CHROMIUM,
  async (t) => {
    const server = await startServer(t, ['--workers', '1']);
    const { textOf } = await openPage(t, `http://localhost:${server.port}/?channel=news`);
    const publish = (/** @type {string} */ body) =>
      fetch(`http://127.0.0.1:${server.adminPort}/publish?channel=news`, { method: 'POST', body });
    await until(async () => (await textOf('state')) === 'open', 'it is open');
    await publish('first');
    await until(async () => (await textOf('stream')).includes('data: first'), 'the first message');
    process.kill(server.workerPids[0], 'SIGKILL');
    await until(async () => /again$/.test(await textOf('state')), 'it notices');
    await until(async () => (await textOf('state')) === 'open', 'it is open again');
    await publish('second');
    await until(async () => (await textOf('stream')).includes('data: second'), 'the second message');
  },
);
