/*
 * The recipes of docs/recipes.md, run as they are written there.
 */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../lib/port.js';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { missing } from './helpers/deploy.js';
import { problemsOf, untilTexts } from './helpers/examples.js';
import { listening, NEEDS_NATIVE } from './helpers/hold.js';
import { natsBinaries } from './helpers/nats.js';
import { DISPATCH, missingPhp, ROUTER, SYMFONY_SKELETON } from './helpers/php.js';
import { pythonPackage } from './helpers/python.js';
import { HEADINGS, openRecipe } from './helpers/recipes.js';
import { until } from './helpers/until.js';

/** @typedef {import('./helpers/recipes.js').Recipe} Recipe */
/** @typedef {import('node:test').TestContext} TestContext */

const [{ path: natsPath, problem: noNats }] = await natsBinaries();
const pyjwt = await pythonPackage('pyjwt-2.10.1', 'pyjwt==2.10.1');
/** @type {string[]} */
const tested = [];

/**
 * @param {string} heading
 * @param {string | false} problem why it can't be run here
 * @param {(recipe: Recipe, t: TestContext) => Promise<void>} body
 */
function recipe(heading, problem, body) {
  tested.push(heading);
  test(`the recipe '${heading}' does what it says`, { skip: problem }, async (t) => {
    const opened = await openRecipe(t, heading);
    await body(opened, t);
    opened.end();
  });
}

/** @param {TestContext} t @param {string} url */
async function openPage(t, url) {
  const browser = await startBrowser(t);
  const page = await browser.newPage();
  const problems = problemsOf(page);
  await page.goto(url);
  return { page, problems, browser };
}

/** Opens a page, and waits for its stream. @param {import('playwright-core').Page} page @param {string} url */
async function openStream(page, url) {
  const opened = page.waitForResponse((response) => response.url().includes('mercure?match='));
  await page.goto(url);
  assert.equal((await opened).status(), 200);
}

/**
 * Somebody without a token, who sees only what is public.
 * @param {Recipe} one @param {string} topic
 */
async function follow(one, topic) {
  const follower = one.shell(
    `curl -sN --get --data-urlencode 'match=${topic}' http://localhost:8888/.well-known/mercure`,
  );
  await untilSaid(follower, /^id: /m);
  return {
    /** @param {RegExp} secret was published before */
    untilOnlyPublic: async (secret) => {
      const marker = `curl -sf -d topic=${topic} -d data=public -d type=marker http://127.0.0.1:8890/.well-known/mercure`;
      assert.equal((await one.shell(marker).exit).code, 0);
      await untilSaid(follower, /^data: public$/m);
      assert.doesNotMatch(follower.output.stdout, secret);
    },
  };
}

/**
 * One origin for the hub and an application.
 * @param {TestContext} t @param {{ hub: number, other: number }} ports @returns {Promise<string>} its URL
 */
async function startSite(t, { hub, other }) {
  const server = createServer((incoming, response) => {
    const { method, url = '/', headers } = incoming;
    const port = url.startsWith('/.well-known/') ? hub : other;
    const onward = request(
      { port, host: '127.0.0.1', method, path: url, headers, agent: false },
      (answer) => {
        response.writeHead(answer.statusCode ?? 502, answer.headers);
        response.flushHeaders();
        answer.pipe(response);
      },
    );
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    incoming.pipe(onward);
  });
  t.after(() => server.closeAllConnections());
  return `http://localhost:${await listening(t, server)}/`;
}

/** @param {{ output: { stdout: string } }} program @param {RegExp} pattern */
const untilSaid = ({ output }, pattern) =>
  until(
    () => pattern.exec(output.stdout),
    () => `${pattern} in ${output.stdout}`,
  );

const noBrowser = NEEDS_CHROMIUM.skip;

recipe('Live scores', noBrowser, async (one, t) => {
  await one.startServer();
  await one.finish(/127\.0\.0\.1:8890/);
  const { page, problems } = await openPage(t, `file://${one.folder}/scores.html`);
  await untilTexts(page, '#scores > *', ['Lions – Tigers', '2:1']); // published before the page was opened
  one.env.TOKEN = await one.token();
  await one.finish(/Bearer/);
  await untilTexts(page, '#scores > *', ['Lions – Tigers', '3:1']);
  assert.deepEqual(problems, []);
});

recipe('Notifications per user', noBrowser, async (one, t) => {
  await one.startServer();
  await one.startApplication();
  const { page, problems } = await openPage(t, 'about:blank');
  await openStream(page, one.url('/'));
  const other = await follow(one, 'https://example.com/users/ann');
  await page.getByRole('button', { name: 'Order' }).click();
  await untilTexts(page, '#list li', ['Thank you for your order']);
  assert.match(await one.finish(/revoke/), /^revoked in 1 worker/);
  await page.getByRole('button', { name: 'Order' }).click();
  await untilTexts(page, '#list li', ['Thank you for your order', 'Thank you for your order']);
  await other.untilOnlyPublic(/Thank you/);
  assert.deepEqual(problems, []);
});

recipe('Rooms with presence', noBrowser, async (one, t) => {
  await one.startServer();
  await one.startApplication();
  const ann = await openPage(t, one.url('/?name=Ann'));
  await untilTexts(ann.page, '#people', ['Ann']);
  const bo = await openPage(t, one.url('/?name=Bo'));
  for (const { page } of [ann, bo]) await untilTexts(page, '#people', ['Ann, Bo']);
  const { exit } = one.shell(
    'curl -d topic=https://example.com/rooms/7 -d data=hello http://127.0.0.1:8890/.well-known/mercure',
  );
  assert.equal((await exit).code, 0);
  for (const { page } of [ann, bo]) await untilTexts(page, '#messages li', ['hello']);
  await bo.page.getByRole('textbox').fill('hello Ann');
  await bo.page.getByRole('button', { name: 'Say' }).click();
  for (const { page } of [ann, bo]) await untilTexts(page, '#messages li', ['hello', 'hello Ann']);
  const revoked = one.shell('curl -d subject=Ann http://127.0.0.1:8890/revoke'); // ends her stream; she comes back
  assert.equal((await revoked.exit).code, 0);
  const again = one.shell(
    'curl -d topic=https://example.com/rooms/7 -d data=again http://127.0.0.1:8890/.well-known/mercure',
  );
  assert.equal((await again.exit).code, 0);
  await untilTexts(ann.page, '#messages li', ['hello', 'hello Ann', 'again']);
  for (const { page } of [ann, bo]) await untilTexts(page, '#people', ['Ann, Bo']);
  await bo.browser.close();
  await untilTexts(ann.page, '#people', ['Ann']);
  assert.deepEqual(ann.problems, []);
});

recipe('Behind nginx', noBrowser || missing('nginx'), async (one, t) => {
  await one.startServer();
  const nginx = one.begin(/^nginx/);
  const url = one.url('/', '8080');
  await until(
    () =>
      fetch(url).then(
        ({ ok }) => ok,
        () => false,
      ),
    () => `nginx answers: ${nginx.output.stderr}`,
  );
  const { page, problems } = await openPage(t, 'about:blank');
  await openStream(page, url);
  const published = one.begin(/-d topic=news/);
  assert.equal((await published.exit).code, 0);
  await untilTexts(page, '#news li', ['nginx passes it on']);
  assert.deepEqual(problems, []);
});

recipe('Several nodes', noNats || false, async (one) => {
  one.env.PATH = `${join(natsPath, '..')}:${one.env.PATH}`;
  await one.start(/^nats-server/, /Server is ready/);
  await one.startServer(/--port 8888/);
  await one.startServer(/--port 8889/);
  const follower = one.begin(/^curl -N/);
  await untilSaid(follower, /^id: /m);
  assert.match(await one.finish(/-d topic=news/), /^#/);
  await untilSaid(follower, /^data: from the first node$/m);
});

recipe('Express', noBrowser, async (one, t) => {
  await one.startApplication();
  const first = await openPage(t, one.url('/'));
  const second = await openPage(t, one.url('/'));
  for (const [i, { page }] of [first, second].entries()) {
    await page.getByRole('textbox', { name: 'Task' }).fill(`task ${i}`);
    await page.keyboard.press('Enter');
    await untilTexts(second.page, '#tasks li', ['task 0', 'task 1'].slice(0, i + 1));
  }
  await untilTexts(first.page, '#tasks li', ['task 0', 'task 1']);
  await first.page.route('**/tasks', async (route) => {
    const response = await route.fetch();
    const body = JSON.stringify({ title: 'in between' });
    await fetch(one.url('/tasks'), { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    await route.fulfill({ response });
  });
  await first.page.reload();
  await untilTexts(first.page, '#tasks li', ['task 0', 'task 1', 'in between']);
  assert.deepEqual([first.problems, second.problems], [[], []]);
});

recipe('Fastify', false, async (one) => {
  const application = await one.startApplication();
  const events = one.begin(/^curl -N/);
  await untilSaid(events, /^id: /m);
  assert.match(await one.finish(/^curl --json/), /^\{"id":"#/);
  await untilSaid(events, /^data: \{"text":"hello"\}$/m);
  assert.equal((await fetch(one.url('/events'))).status, 401);
  assert.equal((await fetch(one.url('/.well-known/mercure?match=news'), { method: 'HEAD' })).status, 200);
  assert.equal((await fetch(one.url('/users/ann/logout'), { method: 'POST' })).status, 204);
  assert.equal((await events.exit).code, 0);
  application.child.kill('SIGTERM');
  assert.deepEqual(await application.exit, { code: 0, signal: null });
});

recipe('Deploying an Express application', NEEDS_NATIVE.skip, async (one) => {
  // Connections that are open stay with the old version.
  const users = async () => (await fetch(one.url('/users'), { headers: { Connection: 'close' } })).json();
  const old = await one.start(/^node server\.js/, /^version 1: http/m);
  const stream = one.begin(/^curl -N/);
  await until(async () => (await users()).users.length === 1, 'the stream is open');
  const next = await one.start(/^VERSION=2/, /^version 2: http/m);
  assert.deepEqual(await users(), { version: '2', users: ['ann'] });
  await one.finish(/^curl -d/);
  await untilSaid(stream, /^data: version 2 is here$/m);
  assert.deepEqual(await old.exit, { code: 0, signal: null });
  assert.match(old.output.stdout, /^version 1: streams moved: 1$/m);
  next.child.kill('SIGTERM');
  assert.deepEqual(await next.exit, { code: 0, signal: null });
  assert.equal((await stream.exit).code, 0);
});

recipe('Symfony', missingPhp(), async (one) => {
  for (const [name, text] of Object.entries(SYMFONY_SKELETON)) {
    mkdirSync(join(one.folder, name, '..'), { recursive: true });
    writeFileSync(join(one.folder, name), text);
  }
  await one.startServer();
  one.env.TOKEN = await one.token();
  one.env.APP_CACHE_DIR = join(one.folder, 'cache');
  const follower = one.shell(
    "curl -sN 'http://localhost:8888/.well-known/mercure?match=https://example.com/scores/7'",
  );
  await untilSaid(follower, /^id: /m);
  await one.start(/^export MERCURE_URL/, /Development Server .* started/);
  assert.match(await one.finish(/-d score/), /^\{"id":"#/);
  await untilSaid(follower, /^data: \{"game":"7","score":"2:1"\}$/m);
});

recipe('Laravel', noBrowser || missingPhp(), async (one, t) => {
  writeFileSync(join(one.folder, 'dispatch.php'), DISPATCH);
  writeFileSync(join(one.folder, 'router.php'), ROUTER);
  one.env.HOLDFAST_URL = one.url('/.well-known/mercure', '8888');
  await one.startServer();
  const phpPort = await freePort(0, '127.0.0.1');
  const php = one.shell(`php -S 127.0.0.1:${phpPort} router.php`);
  await until(
    () => /started/.test(php.output.stderr),
    () => `PHP listens: ${php.output.stderr}`,
  );
  const site = await startSite(t, { hub: one.port('8888'), other: phpPort });
  const { page, problems } = await openPage(t, 'about:blank');
  await openStream(page, site);
  const other = await follow(one, 'private-orders.7');
  const { exit, output } = one.shell('php dispatch.php');
  assert.equal((await exit).code, 0, output.stdout + output.stderr);
  await untilTexts(page, '#state', ['order 7 was shipped']);
  await other.untilOnlyPublic(/OrderShipped/);
  const body = new URLSearchParams({ channel_name: 'private-orders.7' });
  const refused = await fetch(`${site}broadcasting/auth`, {
    method: 'POST',
    body,
    headers: { 'X-User': '2' },
  });
  assert.deepEqual([refused.status, refused.headers.get('set-cookie')], [403, null]);
  assert.deepEqual(problems, []);
});

recipe('A Python publisher', pyjwt.problem || false, async (one) => {
  one.env.PATH = `${pyjwt.folder}:${one.env.PATH}`;
  await one.startServer();
  const follower = one.begin(/^curl -N/);
  await untilSaid(follower, /^id: /m);
  const id = (await one.finish(/^python3/)).trim();
  assert.match(id, /^#[\w-]{22}$/);
  await untilSaid(
    follower,
    new RegExp(`^event: temperature\nid: ${id}\ndata: \\{"celsius": 21\\.5\\}$`, 'm'),
  );
});

test('every recipe is tested', () => {
  assert.deepEqual(tested, HEADINGS);
});
