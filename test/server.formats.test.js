/*
 * What `/` of the server can be: text, events, lines of JSON, polls and WebSockets, on connections of its own and after a publication.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { WebSocket } from 'ws';
import { chunksOf, get, rawClient } from './helpers/client.js';
import { handshake, messagesIn } from './helpers/frames.js';
import { legacyToken, PATH, SECRET } from './helpers/hub.js';
import { startServer, TRANSPORTS } from './helpers/server.js';
import { until } from './helpers/until.js';

const ARGS = ['--workers', '1', '--jwt-secret', SECRET];
const FORM = 'topic=a&data=1';
/** A publication, which is passed on to node:http; what follows it on the connection is, too. */
const POST = `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${legacyToken({ publish: ['*'] })}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: ${FORM.length}\r\n\r\n${FORM}`;

/** @param {string} query @param {Record<string, string>} [headers] */
const ask = (query, headers = {}) => get(headers).replace('/ HTTP', `/${query} HTTP`);

for (const transport of TRANSPORTS) {
  describe(`a server with the ${transport} transport`, () => {
    /** @param {import('node:test').TestContext} t */
    const start = async (t) => {
      const server = await startServer(t, [...ARGS, '--transport', transport]);
      const publish = async (/** @type {string} */ body) => {
        const url = `http://127.0.0.1:${server.adminPort}/publish?channel=news`;
        assert.equal((await fetch(url, { method: 'POST', body })).status, 202);
      };
      /** Opens a connection, after a publication if `isPassed`. */
      const open = async (/** @type {string} */ request, /** @type {boolean} */ isPassed) => {
        const client = rawClient(server.port, isPassed ? POST : request);
        t.after(client.close);
        if (!isPassed) return client;
        await client.untilRead(/#[\w-]{22}$/);
        client.received = '';
        client.send(request);
        return client;
      };
      return { server, publish, open };
    };

    for (const isPassed of [false, true]) {
      const where = isPassed ? 'after a publication' : 'on its own connection';

      test(`is lines of JSON for those who accept them, ${where}`, async (t) => {
        const { publish, open } = await start(t);
        const client = await open(ask('?channel=news', { Accept: 'application/x-ndjson' }), isPassed);
        await client.untilRead(
          /\r\nContent-Type: application\/x-ndjson\r\n[\s\S]*\{"type":"welcome","data":"Welcome!"\}\n/,
        );
        await publish('one\ntwo');
        await until(() => chunksOf(client.received).includes('{"data":"one\\ntwo"}\n'), 'the message');
      });

      test(`is a poll for those who accept JSON or wait, ${where}`, async (t) => {
        const { server, publish, open } = await start(t);
        const polls = [
          await open(ask('?channel=news', { Accept: 'application/json' }), isPassed),
          await open(ask('?channel=news&wait=60'), isPassed),
        ];
        const empty = await open(ask('?wait=0'), isPassed);
        await empty.untilRead(/^HTTP\/1\.1 204 No Content\r\n[\s\S]*\r\n\r\n/);
        await server.untilTotals(({ streams }) => streams === 2, 'two polls');
        await publish('x');
        for (const client of polls) {
          await client.untilRead(/\r\n\r\n\{"messages":\[\{"data":"x"\}\]\}\n$/);
          assert.match(client.received, /\r\nContent-Type: application\/json\r\n/i);
          client.received = '';
          client.send(ask('?channel=news&wait=0.1'));
          await client.untilRead(/^HTTP\/1\.1 204 /);
        }
        await until(async () => {
          const { totals } = await server.frame();
          return totals.streams === 0 && totals.opened === 5;
        }, 'five polls came and went');
      });

      test(`is a WebSocket for those who ask for one, ${where}`, async (t) => {
        const { publish, open } = await start(t);
        const client = await open(handshake('/?channel=news'), isPassed);
        await until(() => messagesIn(client.received).length === 1, 'the welcome');
        await publish('one\ntwo');
        await until(() => messagesIn(client.received).length === 2, 'the message');
        assert.deepEqual(messagesIn(client.received), ['Welcome!', 'one\ntwo']);
        assert.match(client.received, /^HTTP\/1\.1 101 Switching Protocols\r\n/);
      });

      test(`says what is wrong with a request, ${where}`, async (t) => {
        const { open } = await start(t);
        const bad = await open(ask('?wait=61'), isPassed);
        await bad.untilRead(/^HTTP\/1\.1 400 [\s\S]*wait takes 0 to 60 seconds/);
        const old = await open(handshake('/', { 'Sec-WebSocket-Version': '8' }), isPassed);
        await old.untilRead(/^HTTP\/1\.1 426 [\s\S]*\r\nSec-WebSocket-Version: 13\r\n/);
        const other = await open(ask('', { Connection: 'Upgrade', Upgrade: 'h2c' }), isPassed);
        await other.untilRead(/Welcome!/);
      });
    }

    test('takes a publication that offers an upgrade to HTTP/2, as that of Java', async (t) => {
      const { server } = await start(t);
      const client = rawClient(
        server.port,
        POST.replace('Host:', 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHost:'),
      );
      t.after(client.close);
      await client.untilRead(/^HTTP\/1\.1 200 [\s\S]*#[\w-]{22}$/);
    });

    test('talks with a client of WebSockets', async (t) => {
      const { server, publish } = await start(t);
      const client = new WebSocket(`ws://127.0.0.1:${server.port}/?channel=news`);
      t.after(() => client.terminate());
      /** @type {string[]} */
      const heard = [];
      client.onmessage = ({ data }) => void heard.push(String(data));
      await until(() => heard.length === 1, 'the welcome');
      await publish('x');
      await until(() => heard.length === 2, 'the message');
      const ended = new Promise((resolve) => client.once('close', (code) => resolve(code)));
      server.child.kill('SIGTERM');
      assert.equal(await ended, 1001);
    });
  });
}
