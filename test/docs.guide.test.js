/*
 * The guide's section about the hub: its commands are run in order, its code in a browser or in Node, and its program is used.
 */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readConfig } from '../lib/config.js';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { get, rawClient } from './helpers/client.js';
import { datasOf, eventsIn, legacyToken, PATH, tokenOf } from './helpers/hub.js';
import { ROOT, run, startServer, temporaryFolder } from './helpers/server.js';
import { until } from './helpers/until.js';

const GUIDE = readFileSync(join(ROOT, 'docs/guide.md'), 'utf8');
const SECTION = GUIDE.slice(GUIDE.indexOf('\n## Hub\n'), GUIDE.indexOf('\n## In your application\n'));
const BOOK = 'https://example.com/books/1';

/** @param {'sh' | 'js'} language @returns {string[]} the code of the section */
const codeIn = (language) =>
  [...SECTION.matchAll(/```(sh|js)\n(.*?)```/gs)]
    .filter(([, found]) => found === language)
    .map(([, , code]) => code);

/** @param {RegExp} pattern @param {'sh' | 'js'} language @returns {string} the one piece of code that matches */
function codeWith(pattern, language) {
  const found = codeIn(language).filter((code) => pattern.test(code));
  assert.equal(found.length, 1, `${pattern}`);
  return found[0];
}

test('the server takes the options for several machines', () => {
  const [, options = ''] = /node server\.js (.*)/.exec(codeWith(/--nats/, 'sh')) ?? [];
  const { nats, natsReplicas } = readConfig(options.split(' '), {}).config;
  assert.deepEqual([nats.length, natsReplicas], [3, 3]);
});

test('the commands of the guide do what it says', async (t) => {
  const start = codeWith(/server\.js (?!--nats|token)/, 'sh');
  const secret = /HOLDFAST_JWT_SECRET='(.+)'/.exec(start)?.[1] ?? '';
  const [, options = ''] = /^node server\.js (.*?) +#/m.exec(start) ?? [];
  const server = await startServer(t, [...options.split(' '), '--jwt-secret', secret]);
  const ported = (/** @type {string} */ code) =>
    code.replaceAll(':8888', `:${server.port}`).replaceAll(':8890', `:${server.adminPort}`);
  const env = { ...process.env, HOLDFAST_JWT_SECRET: secret };
  const shell = (/** @type {string} */ code) => run(t, 'bash', ['--norc', '-ec', ported(code)], { env });
  const subscriber = shell(codeWith(/curl -N/, 'sh'));
  await until(
    () => subscriber.output.stdout.includes('id: #'),
    () => `its position, not ${subscriber.output.stderr}`,
  );

  const publisher = shell(`${codeWith(/token --publish/, 'sh')}\necho; echo TOKEN=$TOKEN`);
  assert.equal((await publisher.exit).code, 0, publisher.output.stderr);
  const [, id, token] = /^(#[\w-]{22})\nTOKEN=(.+)\n$/.exec(publisher.output.stdout) ?? [];
  assert.ok(token, publisher.output.stdout);
  await until(() => subscriber.output.stdout.includes(`id: ${id}\ndata: hello\n\n`), 'the event');

  const script = join(temporaryFolder(t), 'publish.mjs');
  writeFileSync(script, ported(codeWith(/response\.status/, 'js')));
  const inNode = run(t, process.execPath, [script], { env: { ...env, TOKEN: token } });
  assert.equal((await inNode.exit).code, 0, inNode.output.stderr);
  assert.match(inNode.output.stdout, /^200 #[\w-]{22}\n$/);
  await until(() => subscriber.output.stdout.includes('data: {"sold":3}\n\n'), 'the second event');

  const admin = shell(codeWith(/^curl -d topic/, 'sh'));
  assert.equal((await admin.exit).code, 0);
  assert.match(admin.output.stdout, /^#[\w-]{22}$/);
  await until(() => subscriber.output.stdout.match(/data: hello\n\n/g)?.length === 2, 'the third event');

  const { received, untilClosed } = await subscribed(t, server.port, {
    Authorization: `Bearer ${tokenOf({ sub: 'alice', mercure: {} }, { secret })}`,
  });
  assert.match(received, /id: #/);
  const [revoke] = /curl -d subject=alice [^\s`]+/.exec(SECTION) ?? [];
  const revoked = shell(revoke ?? '');
  assert.equal((await revoked.exit).code, 0);
  assert.match(revoked.output.stdout, /^revoked in /);
  await untilClosed();
});

test('the page of the guide gets events', NEEDS_CHROMIUM, async (t) => {
  const server = await startServer(t, ['--anonymous']);
  const browser = await startBrowser(t);
  const page = await browser.newPage();
  /** @type {string[]} */
  const logged = [];
  page.on('console', (message) => logged.push(message.text()));
  await page.goto(`http://localhost:${server.port}/`);
  await page.evaluate(codeWith(/new EventSource/, 'js').replace(':8888', `:${server.port}`));
  for (const [data, topic] of [
    ['a book', BOOK],
    ['an author', 'https://example.com/authors/7'],
  ])
    await until(async () => {
      const body = new URLSearchParams({ topic, data });
      await fetch(`http://127.0.0.1:${server.adminPort}${PATH}`, { method: 'POST', body });
      return logged.includes(data);
    }, data);
});

test('the tokens of the guide allow what it says, in both dialects', async (t) => {
  const secret = 'a secret of at least thirty-two bytes';
  const code = codeWith(/const older/, 'js');
  const { claims, older } = new Function(`${code}; return { claims, older };`)();
  const server = await startServer(t, ['--jwt-secret', secret, '--jwt-audience', claims.aud]);
  const exp = Math.floor(Date.now() / 1000) + 60;
  const tokens = {
    match: tokenOf({ ...claims, exp }, { secret, typ: 'at+jwt' }),
    topic: tokenOf({ ...older, aud: claims.aud }, { secret }),
  };
  for (const [name, token] of Object.entries(tokens)) {
    const headers = { Authorization: `Bearer ${token}`, Host: 'hub.example.com' };
    const client = await subscribed(t, server.port, headers, `${name}=${BOOK}`);
    const post = (/** @type {string} */ topic) =>
      fetch(`http://127.0.0.1:${server.port}${PATH}`, {
        method: 'POST',
        headers,
        body: new URLSearchParams({ topic, data: 'private', private: 'on' }),
      });
    assert.equal((await post(BOOK)).status, 200);
    assert.notEqual((await post(`${BOOK}0`)).status, 200);
    await until(
      () => datasOf({ events: () => eventsIn(client.received) }).includes('private'),
      'the private one',
    );
  }
});

test('the program of the guide is the one that is tested', () => {
  const text = readFileSync(join(ROOT, 'test/fixtures/ownhub.js'), 'utf8');
  assert.ok(codeIn('js').includes(text.slice(text.indexOf('import '))));
});

test('the program of the guide publishes, subscribes, and ends', async (t) => {
  const secret = 'a secret of at least thirty-two bytes';
  const program = run(t, process.execPath, ['test/fixtures/ownhub.js'], {
    env: { ...process.env, PORT: '0', HOLDFAST_JWT_SECRET: secret },
  });
  const port = await until(
    () => Number(/port: (\d+)/.exec(program.output.stdout)?.[1]),
    () => `a port in ${program.output.stderr}`,
  );
  const url = `http://localhost:${port}`;
  const put = (/** @type {object} */ book) =>
    fetch(`${url}/books/1`, {
      method: 'PUT',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(book),
    });
  assert.equal((await put({ sold: 1 })).status, 204);
  const page = await fetch(`${url}/books/1`);
  assert.deepEqual(await page.json(), { sold: 1 });
  const [, path, cursor] =
    /^<(.+?)>; rel="mercure"; last-event-id="(.+?)", <https:\/\/example\.com\/books\/1>; rel="self"$/.exec(
      page.headers.get('link') ?? '',
    ) ?? [];
  assert.equal(path, PATH);
  await put({ sold: 2 });
  const reader = await subscribed(t, port, {}, `match=${BOOK}&last_event_id=${encodeURIComponent(cursor)}`);
  await put({ sold: 3 });
  await until(() => datasOf({ events: () => eventsIn(reader.received) }).length === 2, 'both');
  assert.deepEqual(datasOf({ events: () => eventsIn(reader.received) }), ['{"sold":2}', '{"sold":3}']);

  assert.equal((await fetch(`${url}/events`)).status, 401, 'nobody in particular');
  const own = rawClient(port, get({ 'X-User': 'alice' }).replace('/ HTTP', '/events HTTP'));
  t.after(own.close);
  await own.untilRead(/id: #/);
  const form = new URLSearchParams({
    topic: 'https://example.com/users/alice',
    data: 'for alice',
    private: 'on',
  });
  const headers = { Authorization: `Bearer ${legacyToken({ publish: ['*'] })}` };
  assert.equal((await fetch(`${url}${PATH}`, { method: 'POST', headers, body: form })).status, 200);
  await own.untilRead(/data: for alice/);
  program.child.kill('SIGTERM');
  assert.equal((await program.exit).code, 0);
  assert.equal(program.output.stderr, '');
});

/** @param {import('node:test').TestContext} t @param {number} port @param {Record<string, string>} headers @param {string} [query] */
async function subscribed(t, port, headers, query = `match=${BOOK}`) {
  const client = rawClient(port, get(headers).replace('/ HTTP', `${PATH}?${query} HTTP`));
  t.after(client.close);
  await client.untilRead(/id: #/);
  return client;
}
