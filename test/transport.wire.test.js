/*
 * The policy of the server, and the responses that both transports write.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withConsent } from '../transport/consent.js';
import {
  answerOf,
  headLines,
  refusal,
  refusalBody,
  streamHeaders,
  withDate,
} from '../transport/responses.js';
import { serverPolicy } from '../transport/wire.js';

const page = { body: '<!doctype html>' };
const policy = serverPolicy({ isAnonymous: true, page });

/** @param {Partial<import('../transport/policy.js').Head>} head */
const decisionOn = (head) =>
  policy.decide({
    method: 'GET',
    target: '/',
    version: '1.1',
    ...head,
    headers: { host: 'a', ...head.headers },
  });

/** @param {number} status @param {string} why in the body */
const refusedWith = (status, why) => ({ refuse: status, body: refusalBody(status, why) });

/** @param {Partial<import('../transport/policy.js').Head>} head @returns {string} the encoding of its stream */
const encodingOf = (head) => {
  const decision = decisionOn(head);
  assert.ok('hold' in decision, JSON.stringify(decision));
  return decision.hold;
};

test('GET / opens a stream of text, or of events if the client accepts them', () => {
  assert.equal(encodingOf({}), 'text');
  for (const accept of [
    'text/event-stream',
    'text/html;q=0.4, Text/Event-Stream;q=0.5',
    'text/html, text/event-stream',
    'text/event-stream;charset=utf-8',
  ]) {
    assert.equal(encodingOf({ headers: { accept } }), 'events', accept);
  }
  for (const accept of ['*/*', 'text/*', 'text/event-stream;q=0', 'text/event-stream-x'])
    assert.equal(encodingOf({ headers: { accept } }), 'text', accept);
});

test('GET / is a poll, lines of JSON or a WebSocket if the client asks for it', () => {
  assert.equal(encodingOf({ headers: { accept: 'application/x-ndjson' } }), 'ndjson');
  assert.equal(encodingOf({ headers: { upgrade: 'websocket', accept: '*/*' } }), 'websocket');
  assert.equal(encodingOf({ headers: { accept: 'text/plain, application/json;q=0.5' } }), 'text');
  const polls = [{ headers: { accept: 'application/json' } }, { target: '/?wait=25' }];
  for (const head of polls)
    assert.deepEqual(decisionOn(head), { hold: 'poll', waitMs: 25_000, always: true });
  const decision = decisionOn({ target: '/?channel=a&wait=1.5', headers: { accept: 'text/html' } });
  assert.deepEqual(decision, { hold: 'poll', waitMs: 1500, always: true, channels: ['a'] });
  const why = 'wait takes 0 to 60 seconds, as in ?wait=25 or ?wait=0.5, not "61"';
  assert.deepEqual(decisionOn({ target: '/?wait=61' }), refusedWith(400, why));
});

test('a browser that opens the address gets a page, and nobody else does', () => {
  const BROWSERS = [
    'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8',
    'Text/HTML',
    'text/html, */*',
    'text/html;q=0.9, text/plain;q=0.8, text/event-stream;q=0.1',
    'text/html, application/json;q=0.9',
  ];
  for (const accept of BROWSERS)
    for (const head of [{}, { method: 'HEAD' }, { target: '/?channel=news' }, { target: 'http://host/?x' }])
      assert.deepEqual(decisionOn({ ...head, headers: { accept } }), { answer: page }, accept);
  const OTHERS = [
    '*/*',
    'text/*',
    'text/html;q=0',
    'text/html;q=0.5, */*',
    'text/html, text/plain',
    'application/xhtml+xml',
    'text/htmlx',
    'text/html;q=x',
  ];
  for (const accept of OTHERS) assert.equal(encodingOf({ headers: { accept } }), 'text', accept);
  const [accept] = BROWSERS;
  assert.deepEqual(decisionOn({ method: 'POST', headers: { accept } }), { refuse: 405 });
  assert.deepEqual(
    decisionOn({ target: '/x', headers: { accept } }),
    refusedWith(404, 'streams are at /, and those of the hub at /.well-known/mercure'),
  );
  const without = serverPolicy({ isAnonymous: true });
  assert.ok(
    'hold' in without.decide({ method: 'GET', target: '/', version: '1.1', headers: { host: 'a', accept } }),
  );
});

test('identical heads get identical decisions, so native may cache them', () => {
  for (const headers of [{}, { accept: 'text/event-stream' }])
    assert.deepEqual({ always: true, ...decisionOn({ headers }) }, decisionOn({ headers }));
});

test('the policy names every header that it reads', () => {
  /** @type {Set<string | symbol>} */
  const read = new Set();
  const headers = new Proxy(
    { host: 'a' },
    {
      get: (all, name) => {
        read.add(name);
        return Reflect.get(all, name);
      },
    },
  );
  policy.decide({ method: 'GET', target: '/', version: '1.1', headers });
  assert.deepEqual([...read].sort(), [...policy.headers].sort());
});

test('the path is found in every form of target', () => {
  for (const target of ['/', '/?a=b', 'http://host/', 'http://host', 'HTTP://host:1/?x'])
    assert.equal(encodingOf({ target }), 'text', target);
  for (const target of ['/x', '//', '*', 'http://host/x', '/%2f'])
    assert.deepEqual(
      decisionOn({ target }),
      refusedWith(404, 'streams are at /, and those of the hub at /.well-known/mercure'),
      target,
    );
});

test('HEAD is held like GET, so that it gets the head of the stream; other methods are refused', () => {
  assert.deepEqual(decisionOn({ method: 'HEAD' }), decisionOn({}));
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'])
    assert.deepEqual(decisionOn({ method }), { refuse: 405 }, method);
  assert.deepEqual(decisionOn({ method: 'CONNECT', target: 'a:1' }), { refuse: 405 });
});

test('other versions of HTTP are refused as such', () => {
  for (const version of ['0.9', '2.0']) assert.deepEqual(decisionOn({ version }), { refuse: 505 }, version);
});

test('HTTP/1.1 needs a Host; HTTP/1.0 does not', () => {
  const head = { method: 'GET', target: '/', headers: {} };
  const why = 'a request of HTTP/1.1 needs a Host header';
  assert.deepEqual(policy.decide({ ...head, version: '1.1' }), refusedWith(400, why));
  assert.ok('hold' in policy.decide({ ...head, version: '1.0' }));
});

test('a request with a body does not open a stream', () => {
  /** @type {Record<string, string>[]} */
  const bodies = [{ 'content-length': '3' }, { 'transfer-encoding': 'chunked' }];
  const refused = refusedWith(400, 'a request for a stream has no body');
  for (const headers of bodies) assert.deepEqual(decisionOn({ headers }), refused);
  assert.equal(encodingOf({ headers: { 'content-length': '0' } }), 'text');
});

test('events begin with a retry between 2 and 5 seconds, in several variants', () => {
  const decision = decisionOn({ headers: { accept: 'text/event-stream' } });
  assert.ok('hold' in decision && Array.isArray(decision.welcome));
  const retries = decision.welcome.map((welcome) =>
    Number(/^retry: (\d+)\nevent: welcome\ndata: Welcome!\n\n$/.exec(String(welcome))?.[1]),
  );
  assert.equal(new Set(retries).size, 16);
  retries.forEach((retryMs, i) => {
    assert.ok(retryMs >= 2000 + (i * 3000) / 16 - 1 && retryMs < 2000 + ((i + 1) * 3000) / 16, `${retries}`);
  });
});

test('a stream listens to the channels in its target, and a refusal says what is wrong with them', () => {
  const decision = decisionOn({ target: '/?channel=news&x=1&channel=a%20b' });
  assert.deepEqual('hold' in decision && decision.channels, ['news', 'a b']);
  const many = (/** @type {number} */ count) => `/?${'channel=a&'.repeat(count)}`;
  assert.equal(encodingOf({ target: many(16) }), 'text');
  for (const [target, why] of [
    [many(17), 'a stream can have at most 16 channels, not 17'],
    ['/?channel=', 'a channel needs a name, as in /?channel=news'],
    ['/?channel', 'a channel needs a name, as in /?channel=news'],
    [`/?channel=a&channel=${'x'.repeat(257)}`, 'the name of a channel can have at most 256 bytes, not 257'],
  ])
    assert.deepEqual(decisionOn({ target }), refusedWith(400, why), target);
});

test('consent to load is an answer of its own, and changes nothing else', () => {
  const consenting = withConsent(policy, { consent: true, pingIntervalMs: 1234 });
  const head = {
    method: 'GET',
    target: '/.well-known/holdfast-load',
    version: '1.1',
    headers: { host: 'a' },
  };
  assert.deepEqual(consenting.decide(head), {
    answer: {
      headers: { 'Content-Type': 'application/json' },
      body: '{"consent":true,"pingIntervalMs":1234}\n',
    },
  });
  const idle = withConsent(policy, { consent: false, pingIntervalMs: 1234, idlePings: true });
  assert.match(JSON.stringify(idle.decide(head)), /pingIntervalMs\\":1234,\\"idlePings\\":true/);
  assert.deepEqual(consenting.decide({ ...head, method: 'POST' }), { refuse: 405 });
  const nowhere = { ...head, target: '/other' };
  assert.deepEqual(consenting.decide(nowhere), policy.decide(nowhere));
  assert.ok('hold' in consenting.decide({ ...head, target: '/' }));
  assert.deepEqual(consenting.headers, policy.headers);
});

test("a stream's own headers replace the defaults of the same name, in any case", () => {
  const headers = streamHeaders('events', { 'cache-control': 'no-cache', 'X-Own': '1' });
  assert.deepEqual(headers, {
    'Content-Type': 'text/event-stream',
    'X-Accel-Buffering': 'no',
    Connection: 'close',
    'cache-control': 'no-cache',
    'X-Own': '1',
  });
});

test('a refusal has what it must: Allow with 405, Retry-After with 503, Date and length always', () => {
  const whole = (/** @type {number} */ status, isHead = false) => {
    const { head, body } = answerOf(refusal({ refuse: status }), isHead);
    return withDate(head, body).toString('latin1');
  };
  assert.match(whole(405), /\r\nAllow: GET, HEAD\r\n/);
  assert.match(whole(503), /\r\nRetry-After: 5\r\n/);
  assert.match(
    whole(431),
    /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n(.+\r\n)*\r\n431 Request Header Fields Too Large: the request head is too large\n$/,
  );
  for (const line of [/\r\nContent-Length: 67\r\n/, /\r\nDate: .+ GMT\r\n/]) assert.match(whole(431), line);
  assert.match(whole(404, true), /\r\nContent-Length: 48\r\n(.+\r\n)*\r\n$/);
});

test('a status without a name has one all the same', () => {
  assert.equal(headLines(299, {}), 'HTTP/1.1 299 Unknown\r\n');
});
