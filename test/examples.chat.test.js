/*
 * The chat of examples/ in Chromium: two people in two pages.
 */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { get, rawClient } from './helpers/client.js';
import { problemsOf, startExample, untilTexts } from './helpers/examples.js';
import { startGate } from './helpers/gate.js';
import { ROOT, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

/** @typedef {import('playwright-core').Page} Page */
/** @typedef {import('node:test').TestContext} TestContext */

/** @param {TestContext} t @returns a chat, and a way into it for new people */
async function startChat(t) {
  const chat = await startExample(t, 'chat');
  const browser = await startBrowser(t);
  /** @param {string} name @param {{ url?: string, room?: string }} [where] */
  const enter = async (name, { url = chat.url, room = '' } = {}) => {
    const page = await browser.newPage();
    const problems = problemsOf(page);
    await page.goto(`${url}${room && `#${room}`}`);
    await page.getByRole('textbox', { name: 'Your name' }).fill(name);
    await page.getByRole('button', { name: 'Join' }).click();
    await untilTexts(page, '#state', ['connected']);
    return { page, problems };
  };
  return { ...chat, enter };
}

/** @param {Page} page @param {string} text */
async function say(page, text) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text);
  await page.keyboard.press('Enter');
}

/** @param {Page} page @param {string[]} texts */
const untilRead = (page, texts) => untilTexts(page, '#log > div > p', texts);

/** @param {Page} page @param {string[]} names */
const untilHere = (page, names) => untilTexts(page, '#people li > :last-child', names);

describe('the chat', NEEDS_CHROMIUM, () => {
  test('lets two people talk, and shows who is here', async (t) => {
    const { enter } = await startChat(t);
    const ann = await enter('Ann');
    await untilHere(ann.page, ['Ann (you)']);
    await say(ann.page, 'Is anybody here?');
    const bo = await enter('Bo');
    await untilRead(bo.page, ['Is anybody here?']);
    await untilHere(ann.page, ['Ann (you)', 'Bo']);
    await untilHere(bo.page, ['Ann', 'Bo (you)']);
    await say(bo.page, 'I am');
    await untilRead(ann.page, ['Is anybody here?', 'I am']);
    await bo.page.close();
    await untilHere(ann.page, ['Ann (you)']);
    assert.deepEqual([ann.problems, bo.problems], [[], []]);
  });

  test('keeps rooms apart', async (t) => {
    const { enter } = await startChat(t);
    const ann = await enter('Ann');
    const bo = await enter('Bo', { room: 'music' });
    await say(ann.page, 'for general');
    await say(bo.page, 'for music');
    await untilRead(ann.page, ['for general']);
    await untilRead(bo.page, ['for music']);
    await bo.page.getByRole('link', { name: '#general' }).click();
    await untilRead(bo.page, ['for general']);
    await untilHere(ann.page, ['Ann (you)', 'Bo']);
  });

  test('loses and repeats nothing when a connection is lost', async (t) => {
    const { port, enter } = await startChat(t);
    const gate = await startGate(t, port);
    const ann = await enter('Ann');
    const bo = await enter('Bo', { url: `http://localhost:${gate.port}/` });
    await say(ann.page, 'one');
    await untilRead(bo.page, ['one']);
    gate.cut();
    await untilHere(ann.page, ['Ann (you)']);
    await untilTexts(bo.page, '#state', ['reconnecting…']);
    await say(bo.page, 'nobody hears this');
    await untilTexts(bo.page, '#state', ['not sent: try again']);
    assert.equal(await bo.page.getByRole('textbox', { name: 'Message' }).inputValue(), 'nobody hears this');
    await say(ann.page, 'two');
    await say(ann.page, 'three');
    await untilRead(ann.page, ['one', 'two', 'three']);
    await gate.restore();
    await untilRead(bo.page, ['one', 'two', 'three']);
    await untilHere(ann.page, ['Ann (you)', 'Bo']);
    assert.deepEqual(bo.problems, []);
  });

  test('shows what people write as text', async (t) => {
    const { enter } = await startChat(t);
    const html = '<img src=x onerror="document.title=1">';
    const ann = await enter('<b>Ann</b>');
    await say(ann.page, html);
    const bo = await enter('Bo');
    await untilRead(bo.page, [html]);
    await untilHere(bo.page, ['<b>Ann</b>', 'Bo (you)']);
    await untilTexts(bo.page, '#log b', ['<b>Ann</b>']);
    assert.equal(await bo.page.locator('#log img, #people b').count(), 0);
    assert.equal(await bo.page.title(), 'Chat');
  });

  test('runs no script that is not its own', async (t) => {
    const { enter } = await startChat(t);
    const { page, problems } = await enter('Ann');
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'document.title = "changed"';
      document.body.append(script);
    });
    await until(() => problems.some((one) => one.includes('Content Security Policy')), 'a refusal');
    assert.equal(await page.title(), 'Chat');
  });
});

test('the server of the chat refuses what it does not know, and goes on', async (t) => {
  const { url, port } = await startExample(t, 'chat');
  const post = async (/** @type {string} */ path, /** @type {string} */ body) =>
    (await fetch(`${url}${path}`, { method: 'POST', body })).status;
  assert.equal(await post('rooms/general?name=Ann', 'x'.repeat(4097)), 413);
  assert.equal(await post('rooms/general', 'hello'), 404);
  assert.equal(await post('rooms/a%20b?name=Ann', 'hello'), 404);
  const odd = rawClient(port, get().replace('/ HTTP', 'http://[ HTTP'));
  t.after(odd.close);
  await odd.untilRead(/^HTTP\/1\.1 404 /);
  assert.equal(await post('rooms/general?name=Ann', 'hello'), 204);
});

for (const name of ['chat', 'ticker'])
  test(`a copy of the folder ${name} runs where the package is installed`, async (t) => {
    const folder = temporaryFolder(t);
    cpSync(join(ROOT, 'examples', name), folder, { recursive: true });
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(ROOT, join(folder, 'node_modules/holdfast'));
    const { url } = await startExample(t, name, { cwd: folder });
    assert.match(await (await fetch(url)).text(), /^<!doctype html>/);
  });
