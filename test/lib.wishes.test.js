/*
 * What a client wants a stream as, by its headers and its query.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatOf, TYPES } from '../lib/wishes.js';

/** @param {string} accept @param {Parameters<typeof formatOf>[2]} [types] */
const formatFor = (accept, types) => formatOf({ accept }, [], types).format;

test('the type in Accept decides, in any case and with parameters', () => {
  assert.equal(formatFor('text/event-stream'), 'events');
  assert.equal(formatFor('Application/X-NDJSON'), 'ndjson');
  assert.equal(formatFor('application/json; charset=utf-8'), 'poll');
  assert.deepEqual(formatOf({ accept: 'application/json' }, []), { format: 'poll', waitMs: 25_000 });
});

test('the most wanted of the types that there are wins, and of equal ones events', () => {
  assert.equal(formatFor('application/json;q=0.5, application/x-ndjson;q=0.8'), 'ndjson');
  assert.equal(formatFor('text/event-stream;q=0.1, application/json;q=0.2'), 'poll');
  assert.equal(formatFor('application/json, application/x-ndjson, text/event-stream'), 'events');
  assert.equal(formatFor('text/plain, application/json;q=0.5'), 'poll');
  assert.equal(formatFor('text/plain, application/json;q=0.5', { ...TYPES, text: 'text/plain' }), 'text');
  assert.equal(formatFor('application/json;q=0, application/x-ndjson;q=x'), '');
});

test('wildcards, other types and no Accept at all leave it to the default', () => {
  for (const accept of ['*/*', 'application/*', 'text/html', 'application/jsonp', ''])
    assert.equal(formatFor(accept), '', accept);
  assert.deepEqual(formatOf({}, []), { format: '' });
});

test('wait in the query asks for a poll, whatever Accept says', () => {
  for (const [wait, waitMs] of /** @type {[string, number][]} */ ([
    ['0', 0],
    ['25', 25_000],
    ['60', 60_000],
    ['0.5', 500],
    ['60.0', 60_000],
    ['1.2345', 1235],
  ]))
    assert.deepEqual(
      formatOf({ accept: 'text/event-stream' }, [['wait', wait]]),
      { format: 'poll', waitMs },
      wait,
    );
  assert.deepEqual(formatOf({}, new URLSearchParams('a=b&wait=7&wait=8')), { format: 'poll', waitMs: 7000 });
});

test('a wait that is no time says so in one line', () => {
  for (const wait of ['', '-1', '61', '60.001', '1e1', '5s', ' 5', '.5', '5.', 'Infinity', 'a\nb']) {
    const { problem = '' } = formatOf({}, [['wait', wait]]);
    assert.ok(problem.startsWith('wait takes 0 to 60 seconds'), wait);
    assert.ok(problem.endsWith(JSON.stringify(wait)) && !problem.includes('\n'), problem);
  }
});

test('Upgrade: websocket comes first; other protocols are ignored', () => {
  for (const upgrade of ['websocket', 'WebSocket', 'h2c, websocket'])
    assert.deepEqual(formatOf({ upgrade, accept: 'application/json' }, [['wait', 'x']]), {
      format: 'websocket',
    });
  for (const upgrade of ['h2c', 'websockets', '']) assert.equal(formatOf({ upgrade }, []).format, '');
});
