/*
 * The protocol of Mercure, draft-08 and 0.x, on each surface of the hub: the tables of fixtures/mercure.js. What an event looks
 * like is compared byte for byte.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as tables from './fixtures/mercure.js';
import { bodyOf } from './helpers/client.js';
import { datasOf, draftToken, legacyToken, PATH } from './helpers/hub.js';
import { SURFACES, startSurface } from './helpers/surfaces.js';
import { until } from './helpers/until.js';

/** @typedef {import('./fixtures/mercure.js').Row} Row */

/**
 * @param {import('node:test').TestContext} t @param {Awaited<ReturnType<typeof startSurface>>} surface @param {readonly Row[]} rows
 */
async function check(t, { ask }, rows) {
  for (const [name, request, given] of rows) {
    const expected = typeof given === 'number' ? { status: given } : given;
    const reply = await ask(request);
    assert.equal(reply.status, expected.status, `${name}: ${reply.received}`);
    const { body, headers = {} } = expected;
    // Others are refused before the hub hears of them.
    if (!request.raw && /^[ -~]*$/.test(request.target ?? ''))
      assert.equal(reply.headers['x-content-type-options'], 'nosniff', `${name}: ${reply.received}`);
    if (typeof body === 'string') assert.equal(reply.body, body, name);
    else if (body) assert.match(reply.body, body, name);
    for (const [header, value] of Object.entries(headers))
      assert.equal(reply.headers[header], value, `${name}: ${header}`);
  }
  t.diagnostic(`${rows.length} requests`);
}

for (const surface of SURFACES) {
  describe(`the protocol on ${surface}`, () => {
    const options = { publishOrigins: ['https://good.example'] };

    test('subscribing: names, values, limits', async (t) =>
      check(t, await startSurface(t, surface), tables.SUBSCRIBING));
    test('heads of responses, and other methods', async (t) =>
      check(t, await startSurface(t, surface), tables.HEADS));
    test('publishing: names, values, limits', async (t) =>
      check(t, await startSurface(t, surface), tables.PUBLISHING));
    test('publishing a JSON array', async (t) => check(t, await startSurface(t, surface), tables.BATCHES));
    test('tokens and cookies', async (t) =>
      check(t, await startSurface(t, surface, options), tables.AUTHORIZATION));
    test('strangers need a token', async (t) =>
      check(t, await startSurface(t, surface, { anonymous: false }), tables.STRANGERS));
    test('pages of other origins', async (t) =>
      check(t, await startSurface(t, surface, { corsOrigins: ['https://good.example'] }), tables.PAGES));
    test('without 0.x', async (t) =>
      check(t, await startSurface(t, surface, { legacy: false }), tables.STRICT));
    test('QUERY', async (t) => check(t, await startSurface(t, surface), tables.QUERIES));
    test('what arrives byte for byte', async (t) => check(t, await startSurface(t, surface), tables.RAW));

    test('without a key for it, publishing is not allowed', async (t) => {
      await check(t, await startSurface(t, surface, { jwt: {} }), tables.NO_KEY);
    });

    test('cursors in every place, and what is reported', async (t) => {
      const { hub, ask } = await startSurface(t, surface);
      await hub.publish([{ topic: 'x' }, { topic: 'x', id: 'urn:grüße', private: true }, { topic: 'x' }]);
      const { cursor } = hub.core;
      for (const [query, headers, expected, isLegacy = false] of tables.CURSORS) {
        const name = `${query} ${headers}`;
        const target = `${PATH}?${query.replace('CURSOR', encodeURIComponent(cursor)).replace('CURSOR', encodeURIComponent(cursor))}`;
        const reply = await ask({ target, headers: headers.map((line) => line.replace('CURSOR', cursor)) });
        const reported = expected?.replace('CURSOR', cursor);
        assert.equal(reply.headers['mercure-last-event-id'], reported, name);
        assert.equal(reply.headers['last-event-id'], isLegacy ? reported : undefined, name);
      }
      const both = { method: 'QUERY', target: `${PATH}?last_event_id=${encodeURIComponent(cursor)}` };
      const reply = await ask({ ...both, body: 'match=a&last_event_id=earliest' });
      assert.equal(reply.headers['mercure-last-event-id'], cursor, 'the query counts more than the body');
      const own = await ask({ target: `${PATH}?match=x&last_event_id=earliest` });
      assert.doesNotMatch(own.received, /urn:gr/, 'the id of a private publication');
    });

    test('an event, byte for byte, live and in a replay', async (t) => {
      const { hub, subscribe, publish } = await startSurface(t, surface);
      const as = { Authorization: `Bearer ${legacyToken({ subscribe: ['*'] })}` };
      const before = hub.core.cursor;
      const client = await subscribe('match=a', as);
      let expected = '';
      for (const [form, event] of tables.EVENTS) {
        const { status, text } = await publish(`topic=a&${form}`);
        assert.equal(status, 200, form);
        expected += event(text);
      }
      const bytes = Buffer.from(expected).toString('latin1');
      // Blocks without data only move the cursor: at the beginning, as a ping, and when a response has caught up.
      const moves = /(?<=^|\n\n)(?:retry: \d+\n)?id: #[\w-]{22}\n\n/g;
      const eventsOf = (/** @type {string} */ received) => bodyOf(received).replace(moves, '');
      await until(() => eventsOf(client.received).length >= bytes.length, 'all events');
      assert.equal(eventsOf(client.received), bytes);
      const again = await subscribe(`match=a&last_event_id=${encodeURIComponent(before)}`, as);
      const last = `id: ${hub.core.cursor}\n\n`;
      await until(() => bodyOf(again.received).endsWith(last), 'the replay');
      assert.equal(eventsOf(again.received), bytes);
    });

    test('who gets what', async (t) => {
      const { subscribe, publish } = await startSurface(t, surface);
      const as = (/** @type {string} */ token) => ({ Authorization: `Bearer ${token}` });
      const clients = {
        nobody: await subscribe('match=a'),
        other: await subscribe('match=a', as(draftToken({ subscribe: ['b'] }))),
        exact: await subscribe('match=a', as(draftToken({ subscribe: ['a'] }))),
        all: await subscribe('match=*', as(legacyToken({ subscribe: ['*'] }))),
        own: await subscribe('match=*', as(draftToken({ subscribe: ['b'] }))),
        both: await subscribe('match=a&match=b', as(draftToken({ subscribe: ['a', 'x'] }))),
        template: await subscribe('topic=*', as(legacyToken({ subscribe: ['users/{id}'] }))),
      };
      for (const [i, [topics, isPrivate]] of tables.DELIVERIES.entries()) {
        const form = new URLSearchParams([
          ['data', String(i)],
          ...topics.map((topic) => ['topic', topic]),
          ...(isPrivate ? [['private', '0']] : []),
        ]);
        assert.equal((await publish(form)).status, 200);
      }
      await publish(
        new URLSearchParams([
          ['topic', 'a'],
          ['data', 'end'],
        ]),
      );
      for (const [name, client] of Object.entries(clients)) {
        await until(() => datasOf(client).includes('end'), `the last one for ${name}`);
        const expected = tables.DELIVERIES.flatMap(([, , who], i) =>
          who.split(' ').includes(name) ? [String(i)] : [],
        );
        assert.deepEqual(datasOf(client), [...expected, 'end'], name);
      }
    });
  });
}
