/*
 * What a policy gets, and what each of its decisions does. Every test runs with the native core and without.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, STATUS_CODES } from 'node:http';
import { connect } from 'node:net';
import { describe, test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { runInNewContext } from 'node:vm';
import { chunksOf, get, rawClient } from './helpers/client.js';
import { withCode } from './helpers/codes.js';
import { KINDS, startHold, startListening } from './helpers/hold.js';
import { until } from './helpers/until.js';

/** @typedef {import('holdfast').Decision} Decision */

/** Statuses of refusals whose body also says what they usually mean. */
const EXPLAINED = [400, 404, 405, 408, 426, 431, 503, 505];

/** For clients that wait until the connection ends. */
const CLOSE = { Connection: 'close' };

/** @param {string} received @returns {Record<string, string>} header lines by lower-case name */
function headersOf(received) {
  const [, ...lines] = received.slice(0, received.indexOf('\r\n\r\n')).split('\r\n');
  return Object.fromEntries(
    lines.map((line) => [
      line.slice(0, line.indexOf(':')).toLowerCase(),
      line.slice(line.indexOf(':') + 1).trim(),
    ]),
  );
}

for (const kind of KINDS) {
  /** @param {import('node:test').TestContext} t @param {import('holdfast').Policy['decide']} decide */
  const startDeciding = (t, decide, options = {}) =>
    startListening(t, kind, { policy: { decide }, ...options });

  describe(`a policy (${kind})`, () => {
    test('gets only the headers that it names, with repeated ones joined', async (t) => {
      /** @type {import('holdfast').Head[]} */
      const heads = [];
      const { port } = await startListening(t, kind, {
        policy: {
          headers: ['cookie', 'last-event-id'],
          decide: (head) => {
            heads.push(head);
            return { refuse: 404 };
          },
        },
      });
      const extra = 'Cookie: a=1\r\nX-Other: x\r\ncookie: b=ü\r\n';
      const client = rawClient(port);
      client.socket.write(Buffer.from(get(CLOSE).replace('\r\n\r\n', `\r\n${extra}\r\n`), 'latin1'));
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 404 /);
      assert.deepEqual(heads, [
        { method: 'GET', target: '/', version: '1.1', headers: { cookie: 'a=1, b=ü' } },
      ]);
      assert.ok(Object.isFrozen(heads[0]) && Object.isFrozen(heads[0].headers));
    });

    test('gets a header that has the name of a property of every object', async (t) => {
      /** @type {unknown[]} */
      const values = [];
      const { ask } = await startListening(t, kind, {
        policy: {
          headers: ['__proto__'],
          decide: ({ headers }) => {
            values.push(Object.entries(headers));
            return { refuse: 404 };
          },
        },
      });
      const client = ask('/', { ['__proto__']: 'a value', ...CLOSE });
      await client.untilClosed();
      assert.deepEqual(values, [[['__proto__', 'a value']]]);
    });

    test('can give bytes of another realm, such as a context of node:vm', async (t) => {
      const bytes = runInNewContext('Uint8Array.of(104, 101, 108, 108, 111)');
      const { ask } = await startDeciding(t, ({ target }) =>
        target === '/hold' ? { hold: 'text', welcome: bytes } : { answer: { body: bytes } },
      );
      for (const target of ['/hold', '/answer']) {
        const client = ask(target);
        await client.untilRead(/^HTTP\/1\.1 200 .*\r\n\r\n(5\r\n)?hello/s);
      }
    });

    test('gets the address of the client if it asks for it, IPv4 without its IPv6 prefix', async (t) => {
      /** @type {unknown[]} */
      const addresses = [];
      const { hold } = startHold(t, kind, {
        policy: {
          address: true,
          decide: (head) => {
            assert.ok(Object.isFrozen(head) && head.target === '/');
            addresses.push(head.address);
            return { refuse: 404 };
          },
        },
      });
      const port = await hold.listen();
      for (const from of ['127.0.0.1', '127.0.0.2', '127.0.0.1']) {
        const socket = connect({ port, host: '127.0.0.1', localAddress: from });
        socket.resume().write(get(CLOSE));
        await once(socket, 'close');
      }
      assert.deepEqual(addresses, ['127.0.0.1', '127.0.0.2', '127.0.0.1']);
      // In one batch, which natively has identical heads only once.
      const clients = Array.from({ length: 20 }, (_, i) =>
        connect({ port, host: '127.0.0.1', localAddress: `127.0.0.${1 + (i % 2)}` }),
      );
      for (const socket of clients) socket.resume().write(get(CLOSE));
      await Promise.all(clients.map((socket) => once(socket, 'close')));
      const count = (/** @type {string} */ address) => addresses.filter((one) => one === address).length;
      assert.deepEqual([count('127.0.0.1'), count('127.0.0.2')], [12, 11]);
    });

    test('is read once, so that nothing wrong gets past the checks', async (t) => {
      /** @type {unknown[]} */
      const errors = [];
      /** A value on the first reading, another one later. @param {unknown} good @param {() => unknown} bad */
      const changing = (good, bad) => {
        let readings = 0;
        return () => (readings++ === 0 ? good : bad());
      };
      const oops = () => {
        throw new Error('read twice');
      };
      /** @type {Record<string, PropertyDescriptor>} */
      const changes = {
        '/hold': { get: changing('text', oops) },
        '/channels': { get: changing(['a'], () => Array(70_000).fill('a')) },
        '/headers': { get: changing({ a: 'b' }, () => ({ a: 'b\r\nevil: 1' })) },
        '/welcome': { get: changing('Welcome!', () => [5]) },
      };
      const { hold, ask } = await startDeciding(
        t,
        ({ target }) => {
          const decision = { hold: 'text', welcome: 'Welcome!' };
          const change = changes[target];
          if (change) Object.defineProperty(decision, target.slice(1), { enumerable: true, ...change });
          return /** @type {Decision} */ (decision);
        },
        { onError: (/** @type {unknown} */ error) => errors.push(error) },
      );
      for (const target of [...Object.keys(changes), '/plain']) {
        const client = ask(target);
        await client.untilRead(/^HTTP\/1\.1 200 [\s\S]*Welcome!/);
        assert.doesNotMatch(client.received, /evil/);
      }
      assert.equal(hold.counters().streams, 5);
      assert.deepEqual(errors, []);
    });

    test('can change its objects once they were decided on', async (t) => {
      const channels = ['a'];
      const decision = /** @type {Decision} */ ({ hold: 'text', channels, welcome: 'Welcome!' });
      const { hold, ask } = await startDeciding(t, () => {
        const promise = Promise.resolve(decision);
        void promise.then(() => {}).then(() => channels.push(.../** @type {any[]} */ ([5])));
        return promise;
      });
      const client = ask('/');
      await client.untilRead(/Welcome!/);
      hold.publish('a', 'news');
      await client.untilRead(/news/);
    });

    test('can be an object of a class, with state of its own', async (t) => {
      class Door {
        headers = ['cookie'];
        welcome = 'Welcome!';
        /** @returns {Decision} */
        decide() {
          return { hold: 'text', welcome: this.welcome };
        }
      }
      const { open } = await startListening(t, kind, { policy: new Door() });
      await open('/');
    });

    test('may not announce trailers, which HTTP/1.0 has none of', async (t) => {
      const { ask } = await startDeciding(t, () => ({ hold: 'text', headers: { Trailer: 'a' } }), {
        onError: () => {},
      });
      for (const version of ['1.0', '1.1']) await ask('/', {}, version).untilRead(/^HTTP\/1\.1 503 /);
    });

    test('that holds a CONNECT learns that its client has left', async (t) => {
      const { closes, port } = await startDeciding(t, () => ({ hold: 'text', welcome: 'Welcome!' }));
      const client = rawClient(port, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
      await client.untilRead(/Welcome!/);
      client.socket.end();
      await until(() => closes.length === 1, 'onClose');
      assert.equal(closes[0].reason, 'client-gone');
    });

    test('opens streams with the default headers of their encoding', async (t) => {
      const { ask } = await startDeciding(t, ({ target }) => ({
        hold: target === '/text' ? 'text' : 'events',
        welcome: 'hello',
      }));
      for (const [target, type] of [
        ['/text', 'text/plain; charset=utf-8'],
        ['/events', 'text/event-stream'],
      ]) {
        const client = ask(target);
        await client.untilRead(/hello/);
        const { date, ...headers } = headersOf(client.received);
        assert.deepEqual(headers, {
          'content-type': type,
          'cache-control': 'no-store',
          'x-accel-buffering': 'no',
          ...(target === '/text' ? { 'x-content-type-options': 'nosniff' } : {}),
          connection: 'close',
          'transfer-encoding': 'chunked',
        });
        assert.match(date, /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
      }
      const old = ask('/text', {}, '1.0');
      await old.untilRead(/\r\n\r\nhello$/);
      assert.equal(headersOf(old.received)['transfer-encoding'], undefined);
    });

    test('can give a stream its own headers and welcome', async (t) => {
      const { ask } = await startDeciding(t, ({ target }) => ({
        hold: 'events',
        headers: { 'X-Stream': target, 'content-type': 'text/event-stream; charset=utf-8' },
        welcome: target === '/bytes' ? Buffer.from('data: grüß dich\n\n') : `data: ${target} ü\n\n`,
      }));
      for (const [target, text] of [
        ['/one', '/one ü'],
        ['/two', '/two ü'],
        ['/bytes', 'grüß dich'],
      ]) {
        const client = ask(target);
        await until(() => chunksOf(client.received).length === 1, 'a welcome');
        const headers = headersOf(client.received);
        assert.equal(headers['x-stream'], target);
        assert.equal(headers['content-type'], 'text/event-stream; charset=utf-8');
        assert.equal(client.received.match(/content-type/gi)?.length, 1);
        assert.equal(headers['cache-control'], 'no-store');
        assert.deepEqual(chunksOf(client.received), [Buffer.from(`data: ${text}\n\n`).toString('latin1')]);
      }
    });

    test('uses the variants of a welcome in turn for streams that begin alike', async (t) => {
      const { ask } = await startDeciding(t, () => ({ hold: 'text', welcome: ['one', 'two', 'three'] }));
      const clients = Array.from({ length: 6 }, () => ask('/'));
      for (const client of clients) await until(() => chunksOf(client.received).length === 1, 'a welcome');
      const welcomes = clients.map(({ received }) => chunksOf(received)[0]).sort();
      assert.deepEqual(welcomes, ['one', 'one', 'three', 'three', 'two', 'two']);
    });

    test('can open a stream without a welcome', async (t) => {
      const { hold, ask } = await startDeciding(t, ({ target }) => ({
        hold: 'text',
        channels: ['all'],
        ...(target === '/empty' ? { welcome: '' } : {}),
      }));
      for (const target of ['/none', '/empty']) {
        const client = ask(target);
        await client.untilRead(/\r\n\r\n/);
        hold.publish('all', 'first');
        await client.untilRead(/first/);
        assert.deepEqual(chunksOf(client.received), ['first']);
        client.close();
      }
    });

    test('that holds a HEAD request sends only the head', async (t) => {
      const { hold, port } = await startDeciding(t, () => ({ hold: 'events', headers: { 'X-Own': '1' } }));
      const client = rawClient(port, get(CLOSE).replace('GET', 'HEAD'));
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n$/);
      assert.equal(headersOf(client.received)['x-own'], '1');
      assert.equal(headersOf(client.received)['content-type'], 'text/event-stream');
      assert.equal(hold.counters().opened, 0);
    });

    test('refuses with a status, what it means and the headers that belong to it', async (t) => {
      const { hold, port, ask } = await startDeciding(t, ({ target }) => ({
        refuse: Number(target.slice(1)),
      }));
      for (const status of [400, 401, 404, 405, 408, 426, 429, 431, 500, 503, 505, 599]) {
        const client = ask(`/${status}`, CLOSE);
        await client.untilClosed();
        const headers = headersOf(client.received);
        const [head, body] = client.received.split('\r\n\r\n');
        const name = head.split('\r\n')[0].slice('HTTP/1.1 '.length);
        assert.equal(name, `${status} ${STATUS_CODES[status] ?? 'Unknown'}`);
        assert.match(body, EXPLAINED.includes(status) ? /^[^:]+: [^\n]+\n$/ : /^[^:]+\n$/);
        assert.equal(body.split(/[:\n]/)[0], name);
        assert.equal(headers['content-length'], String(body.length));
        assert.equal(headers['content-type'], 'text/plain; charset=utf-8');
        assert.equal(headers.connection, 'close');
        assert.ok(headers.date);
        assert.equal(headers.allow, status === 405 ? 'GET, HEAD' : undefined);
        assert.equal(headers['retry-after'], status === 503 ? '5' : undefined);
      }
      const head = rawClient(port, get(CLOSE).replace('GET /', 'HEAD /404'));
      await head.untilClosed();
      assert.match(head.received, /^HTTP\/1\.1 404 [\s\S]*\r\n\r\n$/);
      assert.deepEqual(hold.counters().refused, {
        ...Object.fromEntries(
          [400, 401, 405, 408, 426, 429, 431, 500, 503, 505, 599].map((status) => [status, 1]),
        ),
        404: 2,
      });
    });

    test('refuses with its own headers and body', async (t) => {
      /** @type {Record<string, Decision>} */
      const decisions = {
        '/login': { refuse: 401, headers: { 'WWW-Authenticate': 'Bearer' }, body: 'who are you? grüße\n' },
        '/json': { refuse: 429, headers: { 'content-type': 'application/json' }, body: Buffer.from('{}') },
        '/busy': { refuse: 503, headers: { 'retry-after': '60' } },
        '/silent': { refuse: 404, body: '' },
        '/later': { refuse: 403, body: 'not yet' },
      };
      const { hold, port, ask } = await startDeciding(t, ({ target, method }) =>
        target === '/later' || method === 'HEAD' ? Promise.resolve(decisions[target]) : decisions[target],
      );
      const clients = Object.keys(decisions).map((target) => ask(target, CLOSE));
      const head = rawClient(port, get(CLOSE).replace('GET /', 'HEAD /login'));
      for (const client of [...clients, head]) await client.untilClosed();
      const [login, json, busy, silent, later] = clients.map(({ received }) => received);
      const bytes = Buffer.from('who are you? grüße\n').toString('latin1');
      assert.ok(login.startsWith('HTTP/1.1 401 Unauthorized\r\n') && login.endsWith(`\r\n\r\n${bytes}`));
      assert.equal(headersOf(login)['www-authenticate'], 'Bearer');
      assert.equal(headersOf(login)['content-length'], String(bytes.length));
      assert.match(json, /^HTTP\/1\.1 429 Too Many Requests\r\n[\s\S]*\r\n\r\n\{\}$/);
      assert.equal(json.match(/content-type/gi)?.length, 1);
      assert.equal(headersOf(busy)['retry-after'], '60');
      assert.match(busy, /\r\n\r\n503 Service Unavailable: no stream can be opened now, try again later\n$/);
      assert.match(silent, /^HTTP\/1\.1 404 [\s\S]*Content-Length: 0\r\n[\s\S]*\r\n\r\n$/);
      assert.match(later, /^HTTP\/1\.1 403 Forbidden\r\n[\s\S]*\r\n\r\nnot yet$/);
      assert.match(head.received, /^HTTP\/1\.1 401 [\s\S]*\r\n\r\n$/);
      const { refused } = hold.counters();
      assert.deepEqual(
        [refused[401], refused[403], refused[404], refused[429], refused[503]],
        [2, 1, 1, 1, 1],
      );
    });

    test('can put no character into a head that is not one byte of it, and no line end', async (t) => {
      /** @type {unknown[]} */
      const errors = [];
      const headers = () => ({ 'X-From': 'b'.padStart(2, String.fromCharCode(code)) });
      /** @type {((headers: Record<string, string>) => Decision)[]} */
      const kinds = [
        (headers) => ({ hold: 'text', headers, welcome: 'Welcome!' }),
        (headers) => ({ refuse: 401, headers }),
        (headers) => ({ answer: { headers } }),
      ];
      let code = 0;
      const { ask, hold } = await startDeciding(
        t,
        ({ target }) => kinds[Number(target.slice(1))](headers()),
        {
          onError: (/** @type {unknown} */ error) => errors.push(error),
        },
      );
      // U+010D U+010A are CR LF if they are truncated to one byte.
      for (code of [0x0a, 0x0d, 0x00, 0x7f, 0x10a, 0x10d, 0x20ac, 0xd800]) {
        for (const kind of kinds.keys()) {
          const client = ask(`/${kind}`);
          await client.untilClosed();
          assert.match(client.received, /^HTTP\/1\.1 503 /);
          assert.doesNotMatch(client.received, /x-from/i);
        }
      }
      assert.equal(errors.filter(withCode('BAD_ARGUMENT')).length, 8 * kinds.length);
      for (code of [0x09, 0x20, 0x7e, 0x80, 0xff]) {
        for (const kind of kinds.keys()) {
          const client = ask(`/${kind}`);
          await client.untilRead(/\r\n\r\n/);
          const line = `X-From: ${String.fromCharCode(code)}b\r\n`;
          assert.ok(client.received.includes(line), JSON.stringify(client.received));
          client.close();
        }
      }
      assert.equal(hold.counters().opened, 5);
    });

    test('answers with a complete response', async (t) => {
      const body = 'grüße';
      /** @type {Record<string, Decision>} */
      const decisions = {
        '/text': { answer: { status: 401, headers: { 'WWW-Authenticate': 'Bearer' }, body } },
        '/bytes': { answer: { body: new Uint8Array([0xff, 0]) } },
        '/nothing': { answer: { status: 204 } },
        '/default': { answer: {} },
      };
      const { port, ask } = await startDeciding(t, ({ target }) => decisions[target]);
      const [text, bytes, nothing, byDefault] = Object.keys(decisions).map((target) => ask(target, CLOSE));
      for (const client of [text, bytes, nothing, byDefault]) await client.untilClosed();
      const utf8 = Buffer.from(body).toString('latin1');
      assert.match(text.received, new RegExp(`^HTTP/1\\.1 401 Unauthorized\r\n[\\s\\S]*\r\n\r\n${utf8}$`));
      assert.equal(headersOf(text.received)['www-authenticate'], 'Bearer');
      assert.equal(headersOf(text.received)['content-length'], String(utf8.length));
      assert.ok(headersOf(text.received).date);
      assert.match(bytes.received, /^HTTP\/1\.1 200 OK\r\n[\s\S]*\r\n\r\n\xff\0$/);
      assert.match(nothing.received, /^HTTP\/1\.1 204 No Content\r\n[\s\S]*\r\n\r\n$/);
      assert.equal(headersOf(nothing.received)['content-length'], undefined);
      assert.equal(headersOf(byDefault.received)['content-length'], '0');
      const head = rawClient(port, get(CLOSE).replace('GET /', 'HEAD /text'));
      await head.untilClosed();
      assert.match(head.received, /^HTTP\/1\.1 401 [\s\S]*\r\nContent-Length: 7\r\n[\s\S]*\r\n\r\n$/i);
    });

    test('passes on a body of megabytes, later requests on the connection, and one that is then adopted', async (t) => {
      const server = createServer(async (request, response) => {
        if (request.method === 'POST') return request.pipe(response);
        response.write('first ');
        await hold.adopt(response, { channels: ['news'], encoding: 'text' });
        hold.publish('news', 'published');
      });
      const { hold, closes } = startHold(t, kind, {
        server,
        policy: { decide: ({ target }) => (target === '/held' ? { hold: 'text' } : { pass: true }) },
      });
      const port = await hold.listen(0, '127.0.0.1');
      const body = 'x'.repeat(3_000_000);
      const post = `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`;
      const client = rawClient(port);
      for (let count = 0; count < 2; count++) {
        client.received = '';
        client.send(post + body);
        await until(() => client.received.endsWith('\r\n0\r\n\r\n'), 'the end of the echo');
        assert.ok(chunksOf(client.received).join('') === body);
      }
      client.received = '';
      client.send(get().replace('/ HTTP', '/held HTTP')); // which the policy is not asked about
      await client.untilRead(/published/);
      assert.deepEqual(chunksOf(client.received), ['first ', 'published']);
      client.close();
      await until(() => closes.length === 1, 'the stream that was adopted has ended');
    });

    for (const cookieBytes of [100, 1_000_000]) {
      test(`passes on a head of ${cookieBytes} bytes that comes in pieces, its body, and requests behind it`, async (t) => {
        const server = createServer({ maxHeaderSize: 2 ** 21 }, (request, response) => {
          if (request.method === 'POST') {
            response.setHeader('X-Cookie-Length', String(request.headers.cookie?.length));
            return request.pipe(response);
          }
          response.end('second');
        });
        const { hold } = startHold(t, kind, {
          server,
          maxHeadBytes: 2 ** 20,
          policy: { decide: () => ({ pass: true }) },
        });
        const port = await hold.listen(0, '127.0.0.1');
        const client = rawClient(port, 'POST /echo HTTP/1.1\r\nHo');
        t.after(client.close);
        await until(() => hold.counters().connections === 1, 'it has sent a piece');
        const cookie = 'c'.repeat(cookieBytes);
        for (const piece of ['st: a\r\nContent-Length: 8\r\nCook', `ie: ${cookie}\r\n\r`, '\nbo', 'dy, al']) {
          client.send(piece);
          await nextTurn();
        }
        client.send(get());
        await client.untilRead(/second/);
        const [echo, second] = client.received.split(/(?=HTTP\/1\.1 200 OK)/);
        assert.match(echo, new RegExp(`X-Cookie-Length: ${cookieBytes}\\r\\n`));
        assert.equal(chunksOf(echo).join(''), 'body, al');
        assert.match(second, /\r\n\r\nsecond$/);
      });
    }

    test('passes on upgrades, CONNECT and requests with Expect to the listeners of the server', async (t) => {
      const server = createServer((request, response) => {
        response.end(`${request.method} ${request.headers.expect}`);
      });
      const greet = (
        /** @type {import('node:http').IncomingMessage} */ { method },
        /** @type {import('node:stream').Duplex} */ socket,
      ) => void socket.end(`HTTP/1.1 101 Hello\r\n\r\n${method}`);
      const { port } = await startListening(t, kind, {
        server,
        policy: { decide: () => ({ pass: true }) },
      });
      server.on('upgrade', greet).on('connect', greet);
      const upgrade = rawClient(port, get({ Connection: 'Upgrade', Upgrade: 'websocket' }));
      await upgrade.untilRead(/^HTTP\/1\.1 101 Hello\r\n\r\nGET$/);
      const tunnel = rawClient(port, 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n');
      await tunnel.untilRead(/^HTTP\/1\.1 101 Hello\r\n\r\nCONNECT$/);
      const asking = rawClient(port, get({ Expect: '100-continue' }));
      await asking.untilRead(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK[\s\S]*GET 100-continue/);
      const odd = rawClient(port, get({ Expect: 'miracles' }));
      await odd.untilRead(/^HTTP\/1\.1 417 /);
      for (const client of [upgrade, tunnel, asking, odd]) client.close();
      server.closeAllConnections();
    });

    test('passes on connections that outlive the Hold', async (t) => {
      /** @type {import('node:http').ServerResponse[]} */
      const responses = [];
      const server = createServer((_request, response) => void responses.push(response));
      const { hold, ask } = await startListening(t, kind, {
        server,
        policy: { decide: () => ({ pass: true }) },
      });
      const client = ask('/slow');
      await until(() => responses.length === 1, 'the request');
      await hold.close();
      responses[0].end('answered after the Hold was closed');
      await client.untilRead(/answered after the Hold was closed/);
    });

    test('answers 404 if there is no server to pass to', async (t) => {
      const { hold } = startHold(t, kind);
      const client = rawClient(await hold.listen(0, '127.0.0.1'), get(CLOSE));
      await client.untilClosed();
      assert.match(client.received, /^HTTP\/1\.1 404 /);
    });

    test('that throws or returns an invalid decision is reported, and only that request gets 503', async (t) => {
      /** @type {unknown[]} */
      const errors = [];
      /** @type {Record<string, () => unknown>} */
      const bad = {
        '/throw': () => assert.fail('a fault of the application'),
        '/reject': () => Promise.reject(new Error('a fault of the application')),
        '/nothing': () => undefined,
        '/promise of nothing': async () => undefined,
        '/empty': () => ({}),
        '/both': () => ({ pass: true, hold: 'text' }),
        '/misspelled': () => ({ hold: 'text', channel: ['a'] }),
        '/unknown': () => ({ answer: { code: 200 } }),
        '/status': () => ({ refuse: 200 }),
        '/high': () => ({ refuse: 600 }),
        '/text': () => ({ refuse: '401' }),
        '/why': () => ({ refuse: 401, body: 5 }),
        '/where': () => ({ refuse: 401, headers: { Location: '/a\r\nb' } }),
        '/encoding': () => ({ hold: 'json' }),
        '/prototype': () => ({ hold: 'constructor' }),
        '/channels': () => ({ hold: 'text', channels: ['a', 5] }),
        '/many': () => ({ hold: 'text', channels: Array(1025).fill('a') }),
        '/gap': () => ({ hold: 'text', channels: Object.assign(['a'], { 2: 'b' }) }),
        '/welcome': () => ({ hold: 'text', welcome: 5 }),
        '/welcomes': () => ({ hold: 'text', welcome: ['a', null] }),
        '/header': () => ({ hold: 'text', headers: { 'X-A': 'a\r\nb' } }),
        '/name': () => ({ hold: 'text', headers: { 'X A': 'a' } }),
        '/map': () => ({ hold: 'text', headers: new Map([['X-A', 'a']]) }),
        '/fetch': () => ({ refuse: 401, headers: new Headers({ 'X-A': 'a' }) }),
        '/number': () => ({ hold: 'text', headers: { 'X-A': 1 } }),
        '/length': () => ({ hold: 'text', headers: { 'content-length': '1' } }),
        '/chunks': () => ({ answer: { headers: { 'Transfer-Encoding': 'chunked' } } }),
        '/answer': () => ({ answer: 'text' }),
        '/early': () => ({ answer: { status: 101 } }),
        '/body': () => ({ answer: { body: 5 } }),
        '/bodiless': () => ({ answer: { status: 204, body: 'a' } }),
      };
      const { hold, ask } = await startListening(t, kind, {
        onError: (error) => errors.push(error),
        policy: {
          decide: ({ target }) => {
            if (target !== '/') return /** @type {any} */ (bad)[target.replaceAll('%20', ' ')]();
            hold.publish('all', 'said in the same batch');
            return { hold: 'text', channels: ['all'], welcome: 'Welcome!' };
          },
        },
      });
      const targets = Object.keys(bad).map((target) => target.replaceAll(' ', '%20'));
      const clients = targets.flatMap((target) => [ask(target), ask('/')]);
      for (const [i, client] of clients.entries())
        await client.untilRead(i % 2 === 0 ? /^HTTP\/1\.1 503 / : /Welcome!/);
      hold.publish('all', 'last');
      for (const [i, client] of clients.entries()) if (i % 2 === 1) await client.untilRead(/last/);
      assert.equal(errors.length, targets.length);
      assert.equal(errors.filter((error) => /a fault of the application/.test(String(error))).length, 2);
      assert.equal(errors.filter(withCode('BAD_ARGUMENT')).length, targets.length - 2);
      const { refused, streams } = hold.counters();
      assert.deepEqual([refused[503], streams], [targets.length, targets.length]);
    });

    test('opens a stream with 1024 channels', async (t) => {
      const { hold, ask } = await startDeciding(t, () => ({
        hold: 'text',
        channels: Array.from({ length: 1024 }, (_, i) => `${i}`),
        welcome: 'Welcome!',
      }));
      const client = ask('/');
      await client.untilRead(/Welcome!/);
      hold.publish('1023', 'to the last');
      await client.untilRead(/to the last/);
    });
  });

  describe(`a promised decision (${kind})`, () => {
    test('holds, refuses, answers and passes on like an immediate one', async (t) => {
      /** @type {Record<string, Decision>} */
      const decisions = {
        '/hold': { hold: 'text', channels: ['all'], welcome: 'Welcome!' },
        '/refuse': { refuse: 404 },
        '/answer': { answer: { body: 'answered' } },
        '/pass': { pass: true },
      };
      const server = createServer((_request, response) => response.end('passed on'));
      const { hold, ask } = await startListening(t, kind, {
        server,
        policy: {
          decide: async ({ target }) => {
            await new Promise((resolve) => setImmediate(resolve));
            return decisions[target];
          },
        },
      });
      const [held, refused, answered, passed] = Object.keys(decisions).map((target) => ask(target));
      await held.untilRead(/Welcome!/);
      hold.publish('all', 'hello');
      await held.untilRead(/hello/);
      await refused.untilRead(/^HTTP\/1\.1 404 /);
      await answered.untilRead(/answered$/);
      await passed.untilRead(/passed on/);
      for (const client of [held, passed]) client.close();
      server.closeAllConnections();
    });

    test('is replaced by 503 after its deadline, and opens nothing then', async (t) => {
      /** @type {number[]} */
      const ids = [];
      /** @type {((decision: Decision) => void)[]} */
      const resolves = [];
      /** @type {unknown[]} */
      const errors = [];
      const { hold, closes, ask, open } = await startListening(t, kind, {
        answerTimeoutMs: 50,
        onError: (error) => errors.push(error),
        policy: {
          decide: ({ target }, id) => {
            if (target === '/now') return { hold: 'text', welcome: 'Welcome!' };
            ids.push(id);
            return new Promise((resolve) => resolves.push(resolve));
          },
        },
      });
      const late = ['/late', '/later'].map((target) => ask(target));
      for (const client of late) await client.untilRead(/^HTTP\/1\.1 503 [\s\S]*Retry-After/i);
      assert.equal(resolves.length, 2);
      await until(() => errors.length > 0, 'onError');
      const numbers = () =>
        errors.map((error) =>
          /^decide did not answer (\d+) requests? within 50 ms/.exec(String(error).slice(15)),
        );
      await until(
        () => numbers().reduce((sum, found) => sum + Number(found?.[1]), 0) === 2,
        () => `both are reported: ${errors}`,
      );
      assert.ok(errors.every(withCode('DECISION_TIMEOUT')));
      resolves[0]({ hold: 'text', welcome: 'too late' });
      resolves[1]({ refuse: 403 });
      await open('/now');
      await until(() => closes.length > 0, 'onClose');
      for (const client of late) {
        await client.untilClosed();
        assert.doesNotMatch(client.received, /too late/);
      }
      const { opened, refused } = hold.counters();
      assert.deepEqual([opened, refused[503], refused[403]], [1, 2, undefined]);
      assert.deepEqual(closes, [{ id: ids[0], reason: 'over-capacity' }]);
    });

    test('that comes after its client has disconnected opens nothing', async (t) => {
      /** @type {((decision: Decision) => void)[]} */
      const resolves = [];
      const { hold, closes, ask } = await startDeciding(
        t,
        () => new Promise((resolve) => resolves.push(resolve)),
      );
      const client = ask('/');
      await until(() => resolves.length === 1, 'the question');
      client.socket.resetAndDestroy();
      await until(() => hold.counters().connections === 0, 'the connection is gone');
      resolves[0]({ hold: 'text' });
      const other = ask('/');
      await until(() => resolves.length === 2, 'the next question');
      resolves[1]({ hold: 'text', welcome: 'Welcome!' });
      await other.untilRead(/Welcome!/);
      assert.equal(hold.counters().opened, 1);
      await until(() => closes.length > 0, 'onClose');
      assert.equal(closes.length, 1, 'none for the other');
      // Natively it may have been answered with 503 before: a client that waits for a decision is not watched.
      assert.ok(['client-gone', 'over-capacity'].includes(closes[0].reason), closes[0].reason);
    });

    test('passes on the requests that its client sent in the meantime too', async (t) => {
      const server = createServer((request, response) => response.end(`served ${request.url};`));
      const { ask } = await startDeciding(
        t,
        async () => {
          await new Promise((resolve) => setTimeout(resolve, 50));
          return { pass: true };
        },
        { server },
      );
      const client = ask('/one');
      client.send(get().replace('/ HTTP', '/two HTTP') + get().replace('/ HTTP', '/three HTTP'));
      await client.untilRead(/served \/one;[\s\S]*served \/two;[\s\S]*served \/three;/);
    });

    test('opens a stream that ends as a bad request if its client has sent more in the meantime', async (t) => {
      /** @type {((decision: Decision) => void)[]} */
      const resolves = [];
      const { closes, ask } = await startDeciding(t, () => new Promise((resolve) => resolves.push(resolve)));
      const client = ask('/');
      await until(() => resolves.length === 1, 'the question');
      client.send(get());
      await new Promise((resolve) => setImmediate(resolve));
      resolves[0]({ hold: 'text', welcome: 'Welcome!' });
      await client.untilClosed();
      await until(() => closes.length === 1, 'onClose');
      assert.equal(closes[0].reason, 'bad-request');
      assert.equal(resolves.length, 1);
    });
  });
}
