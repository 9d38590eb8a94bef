/*
 * What docs/api.md says about requests, as requests: its examples, when which status is answered, and what cursors do.
 */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { KINDS } from './helpers/hold.js';
import { PATH, SECRET, startHub, tokenOf } from './helpers/hub.js';
import { ROOT, run, startServer } from './helpers/server.js';
import { until } from './helpers/until.js';

const API = readFileSync(join(ROOT, 'docs/api.md'), 'utf8');

describe('docs/api.md: the examples', () => {
  const publisher = tokenOf({ mercure: { publish: ['*'] } });

  test('the commands work as they are written', async (t) => {
    const { port, adminPort } = await startServer(t, ['--jwt-secret', SECRET, '--workers', '1']);
    const commands = [...API.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(
      ([, code]) => code.match(/^curl(?:.*\\\n)*.*$/gm) ?? [],
    );
    assert.equal(commands.length, 10);
    const hasDashboard = existsSync(join(ROOT, 'monitor/web'));
    for (const command of commands.filter((one) => hasDashboard || !one.includes('X-Holdfast'))) {
      const ported = command.replaceAll(':8888', `:${port}`).replaceAll(':8890', `:${adminPort}`);
      const { output, exit } = run(t, 'bash', ['-ec', ported.replace('curl', 'curl -f')], {
        env: { ...process.env, TOKEN: publisher },
      });
      if (command.startsWith('curl -N')) await until(() => output.stdout !== '', `${command}: a stream`);
      else assert.equal((await exit).code, 0, `${command}: ${output.stderr}`);
    }
  });

  for (const kind of KINDS)
    test(`the tokens allow what they say, in both dialects (${kind})`, async (t) => {
      const [code] = /const draft = \{.*?^const older = .*?;$/ms.exec(API) ?? [];
      const { draft, older } = new Function(`${code}; return { draft, older };`)();
      const { publish, port } = await startHub(t, kind);
      const exp = Math.floor(Date.now() / 1000) + 60;
      const tokens = {
        draft: tokenOf({ ...draft, exp, aud: `http://localhost:${port}${PATH}` }, { typ: 'at+jwt' }),
        older: tokenOf(older),
      };
      const statuses = (/** @type {string} */ topic) =>
        Promise.all(
          Object.values(tokens).map(async (token) => {
            const { status } = await publish({ topic, data: '' }, { Authorization: `Bearer ${token}` });
            return status;
          }),
        );
      assert.deepEqual(await statuses('news'), [200, 200]);
      assert.deepEqual(await statuses('https://example.com/books/1'), [200, 401]);
      assert.deepEqual(await statuses('other'), [403, 401]);
    });
});

/** A client behind a proxy with the cookie of 0.x. */
const STRANGER = {
  options: { anonymous: false },
  headers: {
    'X-Forwarded-For': '192.0.2.1',
    Cookie: `mercureAuthorization=${tokenOf({ mercure: { subscribe: ['*'] } })}`,
  },
};
/** What 'Statuses' and the sections about requests say, as requests. @type {[what: string, status: number, request: Request & { options?: object }][]} */
const ANSWERS = [
  ['no parameter', 400, { query: '' }],
  ['both dialects', 400, { query: 'match=a&topic=a' }],
  ['too many topics', 400, { query: 'match=a'.concat('&match=b'.repeat(100)) }],
  ['a regular expression in a pattern', 400, { query: 'match_urlpattern=https://x.example/(\\d%2B)' }],
  ['0.x, if it is off', 400, { query: 'topic=a', options: { legacy: false } }],
  [
    'no token',
    401,
    { query: 'match=a', options: { anonymous: false }, headers: { 'X-Forwarded-For': '192.0.2.1' } },
  ],
  ['no token, on this machine', 200, { query: 'match=a', method: 'HEAD', options: { anonymous: false } }],
  ['the cookie of 0.x, with topic', 200, { ...STRANGER, query: 'topic=a', method: 'HEAD' }],
  ['the cookie of 0.x, with match', 401, { ...STRANGER, query: 'match=a' }],
  ['an invalid token', 401, { query: 'match=a', headers: { Authorization: 'Bearer x.y.z' } }],
  ['a malformed token', 400, { query: 'match=a', headers: { Authorization: 'Basic x' } }],
  ['a method that nothing takes', 405, { method: 'DELETE' }],
  ['an unknown path', 404, { path: '/other' }],
  ['presence that is off', 404, { path: `${PATH}/subscriptions` }],
  ['a preflight', 204, { method: 'OPTIONS' }],
  ['a poll without a publication in time', 204, { query: 'match=a&wait=0' }],
  ['a poll that wants to wait for too long', 400, { query: 'match=a&wait=61' }],
  ['parameters in a body', 200, { method: 'QUERY', body: 'match=a', isStream: true }],
  ['too long a body with parameters', 413, { method: 'QUERY', body: `match=${'a'.repeat(65_536)}` }],
  ['a form', 200, { method: 'POST', body: 'topic=a&data=b' }],
  ['a form without a type', 200, { method: 'POST', body: new TextEncoder().encode('topic=a') }],
  ['no topic', 400, { method: 'POST', body: 'data=b' }],
  ['the topic *', 400, { method: 'POST', body: 'topic=*' }],
  ['a topic of the hub', 400, { method: 'POST', body: `topic=${PATH}/x` }],
  ['a long topic', 200, { method: 'POST', body: `topic=${'a'.repeat(4096)}` }],
  ['too long a topic', 413, { method: 'POST', body: `topic=${'a'.repeat(4097)}` }],
  ['too long an id', 413, { method: 'POST', body: `topic=a&id=${'a'.repeat(1025)}` }],
  ['too long a type', 413, { method: 'POST', body: `topic=a&type=${'a'.repeat(1025)}` }],
  ['a reserved id', 400, { method: 'POST', body: 'topic=a&id=earliest' }],
  ['an id of the hub', 400, { method: 'POST', body: 'topic=a&id=%23a' }],
  ['a reserved type', 400, { method: 'POST', body: 'topic=a&type=mercure' }],
  ['the longest retry', 200, { method: 'POST', body: 'topic=a&retry=2147483647' }],
  ['too long a retry', 400, { method: 'POST', body: 'topic=a&retry=2147483648' }],
  ['a thousand publications', 200, { method: 'POST', json: Array(1000).fill({ topic: 'a' }) }],
  ['more publications', 413, { method: 'POST', json: Array(1001).fill({ topic: 'a' }) }],
  ['ten thousand topics', 200, { method: 'POST', json: Array(10).fill({ topics: Array(1000).fill('a') }) }],
  [
    'more topics',
    413,
    { method: 'POST', json: [{ topic: 'a' }, ...Array(10).fill({ topics: Array(1000).fill('a') })] },
  ],
  ['more topics of one publication', 413, { method: 'POST', json: [{ topics: Array(1001).fill('a') }] }],
  ['too long a body', 413, { method: 'POST', body: `topic=a&data=${'a'.repeat(1_048_576)}` }],
  ['another type of body', 415, { method: 'POST', body: 'x', headers: { 'Content-Type': 'text/plain' } }],
  [
    'a body with an encoding',
    415,
    { method: 'POST', body: 'topic=a', headers: { 'Content-Encoding': 'gzip' } },
  ],
  ['publishing without a key', 405, { method: 'POST', body: 'topic=a', options: { jwt: {} } }],
  [
    'a cookie from an unknown origin',
    400,
    {
      method: 'POST',
      body: 'topic=a',
      isCookie: true,
      options: { jwt: { secret: SECRET, cookie: 'token' } },
    },
  ],
  [
    'a cookie from a listed origin',
    200,
    {
      method: 'POST',
      body: 'topic=a',
      isCookie: true,
      options: { jwt: { secret: SECRET, cookie: 'token' }, publishOrigins: ['https://example.com'] },
    },
  ],
];

/** @typedef {{ method?: string, path?: string, query?: string, body?: string | Uint8Array<ArrayBuffer>, json?: unknown, headers?: Record<string, string>, isStream?: boolean, isCookie?: boolean }} Request */

/** @param {number} port @param {Request} request @returns {Promise<number>} */
async function statusOf(port, { method = 'GET', path = PATH, query = '', body, json, headers, isCookie }) {
  const token = tokenOf({ mercure: { publish: ['*'] } });
  /** @type {Record<string, string>} */
  const access = isCookie
    ? { Cookie: `token=${token}`, Origin: 'https://example.com' }
    : { Authorization: `Bearer ${token}` };
  const type = json
    ? 'application/json'
    : typeof body === 'string'
      ? 'application/x-www-form-urlencoded'
      : '';
  /** @type {Record<string, string>} */
  const own = { ...(method === 'POST' ? access : {}), ...(type ? { 'Content-Type': type } : {}), ...headers };
  const sent = json ? JSON.stringify(json) : body;
  const answer = await fetch(`http://localhost:${port}${path}${query && `?${query}`}`, {
    method,
    headers: own,
    ...(sent === undefined ? {} : { body: sent }),
  });
  await answer.body?.cancel();
  return answer.status;
}

describe('docs/api.md: the answers', () => {
  for (const kind of KINDS)
    test(`are as it says (${kind})`, async (t) => {
      /** @type {Map<string, number>} ports by options */
      const ports = new Map();
      for (const [what, expected, { options = {}, ...request }] of ANSWERS) {
        const key = JSON.stringify(options);
        const port = ports.get(key) ?? (await startHub(t, kind, options)).port;
        ports.set(key, port);
        assert.equal(await statusOf(port, request), expected, what);
      }
    });

  for (const kind of KINDS)
    test(`cursors do what it says (${kind})`, async (t) => {
      const { subscribe, publish, hub } = await startHub(t, kind);
      const first = await publish({ topic: 'a', data: 'one', id: 'urn:one' });
      await publish({ topic: 'a', data: 'two' });
      const cursor = encodeURIComponent(hub.cursor);
      const reported = async (/** @type {string} */ query, headers = {}) => {
        const client = await subscribe(`match=a${query}`, headers);
        await client.untilRead(/id: /);
        const datas = client.events().flatMap(({ data }) => (data === undefined ? [] : [data]));
        return [client.head().headers['mercure-last-event-id'] ?? null, datas];
      };
      assert.equal(first.text, 'urn:one');
      assert.deepEqual(await reported(''), [null, []]);
      assert.deepEqual(await reported('&last_event_id=earliest'), ['earliest', ['one', 'two']]);
      assert.deepEqual(await reported('&last_event_id=urn:one'), ['urn:one', ['two']]);
      assert.deepEqual(await reported('&last_event_id=unknown'), ['earliest', []]);
      assert.deepEqual(await reported(`&last_event_id=${cursor}`), [hub.cursor, []]);
      assert.deepEqual(await reported(`&last_event_id=earliest&lastEventID=${cursor}`), [hub.cursor, []]);
      assert.deepEqual(await reported(`&last_event_id=${cursor}`, { 'Last-Event-ID': 'urn:one' }), [
        'urn:one',
        ['two'],
      ]);
    });
});
