import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Cors } from '../hub/protocol/cors.js';

const PAGE = 'https://app.example.com';
const EXPOSED = 'ETag, Last-Event-ID, Link, Mercure-Last-Event-ID, Retry-After, WWW-Authenticate';

/** @param {string} [origin] */
const from = (origin) => ({ headers: { origin } });

test('a page on the list may send cookies, and read the headers of the hub', () => {
  assert.deepEqual(new Cors([PAGE]).headersFor(from(PAGE)), {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': PAGE,
    'Access-Control-Allow-Credentials': 'true',
    'Access-Control-Expose-Headers': EXPOSED,
  });
});

test('a page that is not on the list, and a request of no page, get nothing; caches are told that others may', () => {
  const cors = new Cors([PAGE]);
  for (const origin of ['https://evil.example', 'null', '', undefined, `${PAGE}.evil.example`, `${PAGE}:444`])
    assert.deepEqual(cors.headersFor(from(origin)), { Vary: 'Origin' });
});

test('with * every page may use the hub, but without cookies', () => {
  const cors = new Cors(['*']);
  assert.deepEqual(cors.headersFor(from('https://any.example')), {
    Vary: 'Origin',
    'Access-Control-Allow-Origin': '*',
    'Access-Control-Expose-Headers': EXPOSED,
  });
  assert.deepEqual(cors.headersFor(from('null'))['Access-Control-Allow-Credentials'], undefined);
});

test('a page on the list may send cookies even if * is on it too', () => {
  const cors = new Cors(['*', PAGE]);
  assert.equal(cors.headersFor(from(PAGE))['Access-Control-Allow-Origin'], PAGE);
  assert.equal(cors.headersFor(from('https://any.example'))['Access-Control-Allow-Origin'], '*');
});

test('without a list there are no headers at all', () => {
  const cors = new Cors([]);
  assert.deepEqual(cors.headersFor(from(PAGE)), {});
  assert.deepEqual(cors.preflight(from(PAGE)), {
    status: 204,
    headers: { Allow: 'GET, HEAD, POST, QUERY, OPTIONS' },
  });
});

test('a preflight request is answered with what the hub understands, not with what was asked for', () => {
  const headers = {
    origin: PAGE,
    'access-control-request-headers': 'x-evil',
    'access-control-request-method': 'PUT',
  };
  assert.deepEqual(new Cors([PAGE]).preflight({ headers }), {
    status: 204,
    headers: {
      Allow: 'GET, HEAD, POST, QUERY, OPTIONS',
      Vary: 'Origin',
      'Access-Control-Allow-Origin': PAGE,
      'Access-Control-Allow-Credentials': 'true',
      'Access-Control-Allow-Methods': 'GET, HEAD, POST, QUERY',
      'Access-Control-Allow-Headers':
        'Authorization, Cache-Control, Content-Type, If-None-Match, Last-Event-ID',
      'Access-Control-Max-Age': '7200',
    },
  });
});

test('the preflight request of a page that is not on the list is answered without permission', () => {
  const { status, headers } = new Cors([PAGE]).preflight(from('https://evil.example'));
  assert.equal(status, 204);
  assert.deepEqual(Object.keys(headers), ['Allow', 'Vary']);
});
