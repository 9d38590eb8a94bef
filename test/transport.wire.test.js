import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decide, FORMATS, headAnswer, refusal, wireBytes } from '../transport/wire.js';

/** @param {Partial<import('../transport/wire.js').Head>} head */
const decisionOn = (head) =>
  decide({ method: 'GET', target: '/', version: '1.1', ...head, headers: { host: 'a', ...head.headers } });

test('GET / opens a stream, as text or as events by what it accepts', () => {
  assert.deepEqual(decisionOn({}), { hold: FORMATS.text });
  for (const accept of [
    'text/event-stream',
    'text/html, Text/Event-Stream;q=0.5',
    'text/event-stream;charset=utf-8',
  ]) {
    assert.deepEqual(decisionOn({ headers: { accept } }), { hold: FORMATS.events }, accept);
  }
  for (const accept of ['*/*', 'text/*', 'text/event-stream;q=0', 'text/event-stream-x']) {
    assert.deepEqual(decisionOn({ headers: { accept } }), { hold: FORMATS.text }, accept);
  }
});

test('the path is found in every form of target', () => {
  for (const target of ['/', '/?a=b', 'http://host/', 'http://host', 'HTTP://host:1/?x']) {
    assert.deepEqual(decisionOn({ target }), { hold: FORMATS.text }, target);
  }
  for (const target of ['/x', '//', '*', 'http://host/x', '/%2f']) {
    assert.deepEqual(decisionOn({ target }), { refuse: 404 }, target);
  }
});

test('HEAD answers with the head of the stream; other methods are refused', () => {
  assert.deepEqual(decisionOn({ method: 'HEAD' }), { head: FORMATS.text });
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
    assert.deepEqual(decisionOn({ method }), { refuse: 405 }, method);
  }
  assert.deepEqual(decisionOn({ method: 'CONNECT', target: 'a:1' }), { refuse: 405 });
});

test('a version of HTTP that is not ours is refused as such', () => {
  for (const version of ['0.9', '2.0']) assert.deepEqual(decisionOn({ version }), { refuse: 505 }, version);
});

test('HTTP/1.1 needs a Host; HTTP/1.0 does not', () => {
  assert.deepEqual(decide({ method: 'GET', target: '/', version: '1.1', headers: {} }), { refuse: 400 });
  assert.deepEqual(decide({ method: 'GET', target: '/', version: '1.0', headers: {} }), {
    hold: FORMATS.text,
  });
});

test('a request with a body opens no stream', () => {
  assert.deepEqual(decisionOn({ headers: { 'content-length': '3' } }), { refuse: 400 });
  assert.deepEqual(decisionOn({ headers: { 'transfer-encoding': 'chunked' } }), { refuse: 400 });
  assert.deepEqual(decisionOn({ headers: { 'content-length': '0' } }), { hold: FORMATS.text });
});

test('events begin with a retry that is spread over 2 to 5 seconds', () => {
  assert.equal(FORMATS.events.welcome(0), 'retry: 2000\nevent: welcome\ndata: Welcome!\n\n');
  assert.match(FORMATS.events.welcome(0.9999), /^retry: 4999\n/);
  assert.match(FORMATS.events.ping, /^:.*\n\n$/);
});

test('a stream listens to the channels that its target names, few and short ones', () => {
  assert.deepEqual(decisionOn({ target: '/?channel=news&x=1&channel=a%20b' }), {
    hold: FORMATS.text,
    channels: ['news', 'a b'],
  });
  const many = (/** @type {number} */ count) => `/?${'channel=a&'.repeat(count)}`;
  assert.ok('hold' in decisionOn({ target: many(16) }));
  for (const target of [many(17), '/?channel=', `/?channel=${'x'.repeat(257)}`]) {
    assert.deepEqual(decisionOn({ target }), { refuse: 400 }, target);
  }
});

test('a message is a line of data of an event, as many as it has lines', () => {
  assert.equal(FORMATS.text.message('a\nb'), 'a\nb');
  assert.equal(FORMATS.events.message('a\nb\r\nc\rd'), 'data: a\ndata: b\ndata: c\ndata: d\n\n');
});

test('a refusal says what it must: Allow with 405, Retry-After with 503, Date and length always', () => {
  assert.match(refusal(405, false), /\r\nAllow: GET, HEAD\r\n/);
  assert.match(refusal(503, false), /\r\nRetry-After: \d+\r\n/);
  const whole =
    /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n(.+\r\n)*\r\n431 Request Header Fields Too Large\n$/;
  assert.match(refusal(431, false), whole);
  for (const line of [/\r\nContent-Length: 36\r\n/, /\r\nDate: .+ GMT\r\n/, /\r\nConnection: close\r\n/]) {
    assert.match(refusal(431, false), line);
  }
});

test('a HEAD gets the head alone', () => {
  assert.match(
    headAnswer(FORMATS.events),
    /^HTTP\/1\.1 200 OK\r\nContent-Type: text\/event-stream\r\n(.+\r\n)*\r\n$/,
  );
  assert.match(refusal(404, true), /\r\nContent-Length: 14\r\n(.+\r\n)*\r\n$/);
});

test('a chunk on the wire carries its size and two line ends', () => {
  assert.equal(wireBytes('ping', true), '4\r\nping\r\n'.length);
  assert.equal(wireBytes('x'.repeat(31), true), 31 + '1f\r\n\r\n'.length);
  assert.equal(wireBytes('ping', false), 4);
});
