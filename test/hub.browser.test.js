/*
 * The hub in Chromium, with pages on other origins: other ports of localhost, which share cookies with the hub, and other names,
 * which are other sites.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { NEEDS_CHROMIUM, startBrowser } from './helpers/browser.js';
import { KINDS, listening } from './helpers/hold.js';
import { draftToken, legacyToken, PATH, SECRET, startHub } from './helpers/hub.js';
import { until } from './helpers/until.js';

/** Without __Secure-, it needs no TLS. */
const COOKIE = 'token';

/** @typedef {import('playwright-core').Page} Page */

/**
 * A hub, and pages. `good` is an origin that may use it, on another site; `near` may too, and shares the hub's cookies; `evil`
 * may not.
 * @param {import('node:test').TestContext} t @param {import('./helpers/hold.js').Kind} kind
 * @param {Partial<import('../hub/settings.js').HubOptions>} [options] @param {import('holdfast').HoldOptions} [holdOptions]
 */
async function start(t, kind, options, holdOptions) {
  const pages = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/html');
    response.end('<!doctype html><title>page</title>');
  });
  const pagePort = await listening(t, pages);
  const origins = {
    good: `http://a.localhost:${pagePort}`,
    near: `http://localhost:${pagePort}`,
    evil: `http://evil.localhost:${pagePort}`,
  };
  const { good, near } = origins;
  const started = await startHub(
    t,
    kind,
    { corsOrigins: [good, near], publishOrigins: [near], ...options },
    holdOptions,
  );
  const browser = await startBrowser(t);
  const context = await browser.newContext();
  /** @param {string} origin */
  const openPage = async (origin) => {
    const page = await context.newPage();
    await page.goto(`${origin}/`);
    return page;
  };
  const { port } = started;
  return {
    ...started,
    origins,
    context,
    openPage,
    url: `http://b.localhost:${port}${PATH}`,
    nearUrl: `http://localhost:${port}${PATH}`,
  };
}

/** Opens an EventSource in a page, as `globalThis.source`; `got` is what it has seen. @param {Page} page @param {string} url */
const openSource = (page, url, withCredentials = false) =>
  page.evaluate(
    ({ url, withCredentials }) => {
      const source = new EventSource(url, { withCredentials });
      const got = {
        events: /** @type {{ type: string, data: string, id: string }[]} */ ([]),
        opened: 0,
        errors: 0,
      };
      Object.assign(globalThis, { source, got });
      source.onopen = () => got.opened++;
      source.onerror = () => got.errors++;
      for (const type of ['message', 'news', 'ping', 'welcome', ''])
        source.addEventListener(type, ({ data, lastEventId: id }) => got.events.push({ type, data, id }));
    },
    { url, withCredentials },
  );

/** @param {Page} page */
const stateOf = (page) =>
  page.evaluate(() => {
    const { got, source } = /** @type {any} */ (globalThis);
    return { ...got, readyState: source.readyState };
  });

/** @param {Page} page @returns {Promise<string[]>} the data of its events */
const datasIn = async (page) =>
  (await stateOf(page)).events.map((/** @type {{ data: string }} */ { data }) => data);

/** @param {Page} page @param {(state: any) => unknown} condition @param {string} what */
const untilState = (page, condition, what) => until(async () => condition(await stateOf(page)), what);

/**
 * Reads a stream with fetch, as `globalThis.stream`.
 * @param {Page} page @param {string} url @param {RequestInit} [init]
 */
const openFetch = (page, url, init = {}) =>
  page.evaluate(
    async ({ url, init }) => {
      const controller = new AbortController();
      const response = await fetch(url, { ...init, signal: controller.signal });
      const stream = {
        text: '',
        status: response.status,
        headers: Object.fromEntries(response.headers),
        stop: () => controller.abort(),
      };
      Object.assign(globalThis, { stream });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      const read = async () => {
        for (;;) {
          const { value, done } = (await reader?.read()) ?? { done: true };
          if (done) return;
          stream.text += value;
        }
      };
      void read().catch(() => {});
      return { status: stream.status, headers: stream.headers };
    },
    { url, init },
  );

/** @param {Page} page @returns {Promise<string>} */
const streamed = (page) => page.evaluate(() => /** @type {any} */ (globalThis).stream.text);

/** The result of a fetch, or 'blocked'. @param {Page} page @param {string} url @param {Record<string, any>} init */
const fetchIn = (page, url, init) =>
  page.evaluate(
    async ({ url, init: { form, ...init } }) => {
      const body = form && new URLSearchParams(form);
      const response = await fetch(url, { ...init, body }).catch(() => null);
      return response ? { status: response.status, text: await response.text() } : 'blocked';
    },
    { url, init },
  );

for (const kind of KINDS) {
  describe(`a page on another origin, with a hub on a Hold in ${kind}`, NEEDS_CHROMIUM, () => {
    test('gets events with EventSource if it is allowed to, and nothing otherwise', async (t) => {
      const { hub, origins, openPage, url } = await start(t, kind);
      const [good, evil] = [await openPage(origins.good), await openPage(origins.evil)];
      for (const page of [good, evil]) await openSource(page, `${url}?match=a&topic_=x`);
      await untilState(good, ({ opened }) => opened === 1, 'it is open');
      await untilState(evil, ({ readyState }) => readyState === 2, 'the other is closed');
      const [id] = await hub.publish([
        { topic: 'a', data: 'grüße\nan alle', type: 'news' },
        { topic: 'a', data: '2' },
      ]);
      await untilState(good, ({ events }) => events.length === 2, 'both events');
      const { events, errors } = await stateOf(good);
      assert.deepEqual(
        [events[0], events[1].data, errors],
        [{ type: 'news', data: 'grüße\nan alle', id }, '2', 0],
      );
      assert.deepEqual((await stateOf(evil)).events, []);
    });

    test('reads a stream with fetch and an Authorization header, and sees where it begins', async (t) => {
      const { hub, origins, openPage, url, port } = await start(t, kind, { anonymous: false });
      const [good, evil] = [await openPage(origins.good), await openPage(origins.evil)];
      const { cursor } = hub.core;
      await hub.publish({ topic: 'a', data: 'before', private: true });
      const aud = `http://b.localhost:${port}${PATH}`;
      const headers = {
        Authorization: `Bearer ${draftToken({ subscribe: ['a'] }, { aud })}`,
        'Last-Event-ID': cursor,
      };
      const { status, headers: seen } = await openFetch(good, `${url}?match=a`, { headers });
      assert.deepEqual(
        [status, seen['content-type'], seen['mercure-last-event-id']],
        [200, 'text/event-stream', cursor],
      );
      await hub.publish({ topic: 'a', data: 'live', private: true });
      await until(async () => (await streamed(good)).includes('data: live'), 'the live one');
      assert.match(
        await streamed(good),
        /^retry: \d+\nid: #.*\n\nid: #.*\ndata: before\n\nid: #.*\n\nid: #.*\ndata: live\n\n$/,
      );
      const lost = await openFetch(good, `${url}?topic=a`, {
        headers: {
          ...headers,
          Authorization: `Bearer ${legacyToken({ subscribe: ['a'] })}`,
          'Last-Event-ID': 'unknown',
        },
      });
      assert.deepEqual(
        [lost.headers['mercure-last-event-id'], lost.headers['last-event-id']],
        ['earliest', 'earliest'],
      );
      assert.equal(await fetchIn(evil, `${url}?match=a`, { headers }), 'blocked');
      const refused = await fetchIn(good, `${url}?match=a`, { headers: { Authorization: 'Bearer x' } });
      assert.deepEqual(refused, { status: 401, text: 'the access token is not valid\n' });
    });

    test('subscribes and publishes with a cookie, if it sends credentials', async (t) => {
      const jwt = { secret: SECRET, cookie: COOKIE };
      const { hub, origins, openPage, nearUrl, context } = await start(t, kind, { jwt });
      const value = draftToken({ subscribe: ['a'], publish: ['a'] }, { aud: nearUrl });
      await context.addCookies([{ name: COOKIE, value, url: nearUrl, httpOnly: true, sameSite: 'Strict' }]);
      const [own, anonymous] = [await openPage(origins.near), await openPage(origins.near)];
      await openSource(own, `${nearUrl}?match=a`, true);
      await openSource(anonymous, `${nearUrl}?match=a`);
      for (const page of [own, anonymous]) await untilState(page, ({ opened }) => opened === 1, 'it is open');
      const init = { method: 'POST', credentials: 'include', form: { topic: 'a', data: '1', private: 'on' } };
      const published = await fetchIn(own, nearUrl, init);
      await hub.publish({ topic: 'a', data: '2' });
      for (const page of [own, anonymous])
        await untilState(page, ({ events }) => events.at(-1)?.data === '2', 'the public one');
      assert.deepEqual(published, { status: 200, text: (await stateOf(own)).events[0].id });
      assert.deepEqual(await datasIn(own), ['1', '2']);
      assert.deepEqual(await datasIn(anonymous), ['2']);
    });

    test('cannot publish with the cookie of its visitor if it is not on the list', async (t) => {
      const { hub, origins, openPage, nearUrl, context } = await start(t, kind, { publishOrigins: [] });
      await context.addCookies([
        { name: 'mercureAuthorization', value: legacyToken({ publish: ['a'] }), url: nearUrl },
      ]);
      const init = { method: 'POST', credentials: 'include', form: { topic: 'a' } };
      const { cursor } = hub.core;
      const [near, evil] = [await openPage(origins.near), await openPage(origins.evil)];
      const refused = 'publishing with a cookie needs an Origin that is listed in publish-origins\n';
      assert.deepEqual(await fetchIn(near, nearUrl, init), { status: 400, text: refused });
      assert.equal(await fetchIn(evil, nearUrl, init), 'blocked');
      // A form needs no permission to be sent, and Chromium adds the cookie if it is new.
      await evil.evaluate((action) => {
        const form = Object.assign(document.createElement('form'), { method: 'POST', action });
        form.append(Object.assign(document.createElement('input'), { name: 'topic', value: 'a' }));
        document.body.append(form);
        form.submit();
      }, nearUrl);
      await evil.waitForURL(nearUrl);
      assert.equal(await evil.locator('body').textContent(), refused);
      assert.equal(hub.core.cursor, cursor, 'nothing was published');
    });

    test('publishes with a token from an allowed origin; a foreign one does not get past the preflight', async (t) => {
      const { hub, origins, openPage, url } = await start(t, kind);
      const [good, evil] = [await openPage(origins.good), await openPage(origins.evil)];
      const headers = { Authorization: `Bearer ${legacyToken({ publish: ['a'] })}` };
      const init = { method: 'POST', headers, form: { topic: 'a', data: 'x', id: 'urn:x' } };
      const { cursor } = hub.core;
      assert.equal(await fetchIn(evil, url, init), 'blocked');
      assert.equal(hub.core.cursor, cursor);
      assert.deepEqual(await fetchIn(good, url, init), { status: 200, text: 'urn:x' });
      const denied = { ...init, form: { topic: 'b' } };
      assert.deepEqual(await fetchIn(good, url, denied), {
        status: 401,
        text: 'the access token does not allow this\n',
      });
    });

    test('subscribes with QUERY, and with any origin without credentials if the hub is open to all', async (t) => {
      const { hub, origins, openPage, url } = await start(t, kind, { corsOrigins: ['*'] });
      const page = await openPage(origins.evil);
      const { status } = await openFetch(page, url, {
        method: 'QUERY',
        body: 'match=a',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
      });
      assert.equal(status, 200);
      await hub.publish({ topic: 'a', data: 'x' });
      await until(async () => (await streamed(page)).includes('data: x'), 'the event');
      await openSource(page, `${url}?match=a`, true);
      await untilState(page, ({ readyState }) => readyState === 2, 'with credentials it is closed');
    });

    test('reconnects after its stream has ended, and misses nothing', async (t) => {
      const { hub, hold, origins, openPage, url } = await start(t, kind);
      const page = await openPage(origins.good);
      await openSource(page, `${url}?match=a`);
      await untilState(page, ({ opened }) => opened === 1, 'it is open');
      /** @type {string[]} */
      const expected = [];
      for (let round = 1; round <= 3; round++) {
        const [before, meanwhile, after] = ['before', 'meanwhile', 'after'].map((when) => `${when} ${round}`);
        expected.push(before, meanwhile, after);
        await hub.publish({ topic: 'a', data: before, retry: 100 });
        await untilState(page, ({ events }) => events.at(-1)?.data === before, 'the one before');
        hub.revoke({ topic: 'a' });
        await until(() => hold.counters().closed.revoked === round, 'it has ended');
        await hub.publish({ topic: 'a', data: meanwhile });
        await untilState(page, ({ opened }) => opened === round + 1, 'it is open again');
        await hub.publish({ topic: 'a', data: after });
        await untilState(page, ({ events }) => events.at(-1)?.data === after, 'the one after');
      }
      assert.deepEqual(await datasIn(page), expected);
    });

    test('has a fresh cursor on a quiet stream, because pings carry one and are no events', async (t) => {
      const { hub, hold, origins, openPage, url } = await start(t, kind, {}, { pingIntervalMs: 50 });
      const page = await openPage(origins.good);
      /** @type {(string | undefined)[]} */
      const sent = [];
      page.on('request', async (request) => {
        if (request.resourceType() === 'eventsource')
          sent.push((await request.allHeaders())['last-event-id']);
      });
      await openSource(page, `${url}?match=quiet`);
      await untilState(page, ({ opened }) => opened === 1, 'it is open');
      await hub.publish(Array.from({ length: 20 }, (_, i) => ({ topic: 'busy', data: String(i) })));
      const { cursor } = hub.core;
      const { pings } = hold.counters();
      await until(() => hold.counters().pings > pings + 3, 'some pings');
      hub.revoke({ topic: 'quiet' });
      await until(() => hold.counters().closed.revoked === 1, 'it has ended');
      await hub.publish({ topic: 'quiet', data: 'missed' });
      await untilState(page, ({ opened }) => opened === 2, 'it is open again');
      await untilState(page, ({ events }) => events.length === 1, 'what it missed');
      assert.deepEqual(sent, [undefined, cursor]);
      assert.deepEqual(await datasIn(page), ['missed']);
    });
  });
}
