/*
 * A Hold that listens with TLS.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { describe, test } from 'node:test';
import express from 'express';
import { makeCertificate, NEEDS_TLS } from './helpers/certificates.js';
import { bodyOf, get, rawClient } from './helpers/client.js';
import { startHold } from './helpers/hold.js';
import { tlsClient } from './helpers/tlsclient.js';
import { until } from './helpers/until.js';

/** @typedef {import('node:test').TestContext} TestContext */

/** Streams by target, as in helpers/hold.js; what begins with /pass is passed on. @type {import('holdfast').Policy} */
const POLICY = {
  address: true,
  decide: ({ target, address }) => {
    if (target.startsWith('/pass')) return { pass: true };
    if (target === '/who') return { answer: { body: String(address) } };
    return { hold: 'text', channels: target.slice(1).split(','), welcome: 'Welcome!' };
  },
};

/**
 * @param {TestContext} t
 * @param {import('holdfast').HoldOptions} [options] @param {Partial<import('holdfast').TlsOptions>} [tls]
 */
async function startSecure(t, options = {}, tls = {}) {
  const pair = makeCertificate(t);
  const { hold, closes } = startHold(t, 'native', { policy: POLICY, ...options });
  const port = await hold.listen(0, '127.0.0.1', { tls: { ...pair.read(), ...tls } });
  const ask = (/** @type {string} */ target, how = {}) => {
    const client = tlsClient(port, get().replace('/ HTTP', `${target} HTTP`), how);
    t.after(client.close);
    return client;
  };
  const open = async (/** @type {string} */ target, how = {}) => {
    const client = ask(target, how);
    await client.untilRead(/Welcome!/);
    return client;
  };
  return { hold, closes, port, ask, open, pair };
}

/** @param {number} port @param {string} path @param {import('node:https').RequestOptions} [options] @param {string} [body] @returns {Promise<{ status: number, text: string }>} */
function fetchFrom(port, path, options = {}, body = '') {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      { port, path, host: '127.0.0.1', rejectUnauthorized: false, ...options },
      async (response) => {
        let text = '';
        for await (const chunk of response) text += chunk;
        resolve({ status: response.statusCode ?? 0, text });
      },
    );
    request.on('error', reject);
    request.end(body);
  });
}

describe('a Hold with TLS', NEEDS_TLS, () => {
  test('holds streams, and publishes to them', async (t) => {
    const { hold, open } = await startSecure(t);
    const client = await open('/news');
    assert.equal(client.socket.getProtocol(), 'TLSv1.3');
    assert.equal(await hold.publish('news', 'hello'), 1);
    await until(() => bodyOf(client.received) === 'Welcome!hello', 'the message');
    const { streams, inJs, handshakes, resumed, handshakeFailures } = hold.counters();
    assert.deepEqual([streams, inJs, handshakes, resumed, handshakeFailures], [1, 0, 1, 0, 0]);
  });

  test('tells the policy the address of the client', async (t) => {
    const { ask } = await startSecure(t);
    const client = ask('/who');
    await client.untilRead(/127\.0\.0\.1$/);
  });

  test('speaks TLS 1.2 only if it is told to', async (t) => {
    const old = /** @type {const} */ ({ maxVersion: 'TLSv1.2' });
    const { ask } = await startSecure(t);
    const refused = ask('/news', old);
    await refused.untilClosed();
    assert.match(refused.problem, /protocol version/);
    const { open } = await startSecure(t, {}, { minVersion: 'TLSv1.2' });
    assert.equal((await open('/news', old)).socket.getProtocol(), 'TLSv1.2');
    assert.equal((await open('/news')).socket.getProtocol(), 'TLSv1.3');
  });

  test('answers plain HTTP with 400', async (t) => {
    const { port } = await startSecure(t);
    const client = rawClient(port, get());
    t.after(client.close);
    await client.untilRead(/^HTTP\/1\.1 400 [\s\S]*plain HTTP request to a TLS port/);
  });

  test('resumes sessions, with the ticket keys of another Hold too', async (t) => {
    const ticketKeys = randomBytes(48);
    const one = await startSecure(t, {}, { ticketKeys });
    const client = await one.open('/news');
    const session = await client.untilSession();
    assert.equal((await one.open('/news', { session })).socket.isSessionReused(), true);
    const two = await startSecure(t, {}, { ticketKeys });
    assert.equal((await two.open('/news', { session })).socket.isSessionReused(), true);
    assert.equal(two.hold.counters().resumed, 1);
    const three = await startSecure(t);
    assert.equal((await three.open('/news', { session })).socket.isSessionReused(), false);
  });

  test('gives new connections other certificates; streams and tickets stay', async (t) => {
    const { hold, open } = await startSecure(t);
    const before = await open('/news');
    const session = await before.untilSession();
    assert.equal(before.nameOfServer(), 'localhost');
    hold.setSecureContext(makeCertificate(t, { names: ['other.example'] }).read());
    const after = await open('/news');
    assert.equal(after.nameOfServer(), 'other.example');
    assert.equal((await open('/news', { session })).socket.isSessionReused(), true);
    assert.equal(await hold.publish('news', 'hello'), 3);
    await before.untilRead(/hello/);
    assert.equal(before.closed, false);
  });

  test('has a certificate for each name, and the first one for all others', async (t) => {
    const pairs = ['a.example', 'b.example'].map((name) => makeCertificate(t, { names: [name] }).read());
    const { hold } = startHold(t, 'native', { policy: POLICY });
    const tls = { cert: pairs.map(({ cert }) => cert), key: pairs.map(({ key }) => Buffer.from(key)) };
    const port = await hold.listen(0, '127.0.0.1', { tls });
    for (const [servername, expected] of [
      ['b.example', 'b.example'],
      ['a.example', 'a.example'],
      ['c.example', 'a.example'],
    ]) {
      const client = tlsClient(port, get(), { servername });
      t.after(client.close);
      await client.untilRead(/Welcome!/);
      assert.equal(client.nameOfServer(), expected, servername);
    }
  });

  test('passes requests on that look like those of node:https', async (t) => {
    const server = createServer((request, response) => {
      const { encrypted, remoteAddress, remotePort, remoteFamily, localPort } =
        /** @type {import('node:tls').TLSSocket} */ (request.socket);
      let body = '';
      request.on('data', (data) => {
        body += data;
      });
      request.on('end', () =>
        response.end(JSON.stringify({ encrypted, remoteAddress, remotePort, remoteFamily, localPort, body })),
      );
    });
    const { port } = await startSecure(t, { server });
    const large = 'x'.repeat(300_000);
    const { text } = await fetchFrom(port, '/pass', { method: 'POST' }, large);
    const { remotePort, body, ...facts } = JSON.parse(text);
    assert.deepEqual(facts, {
      encrypted: true,
      remoteAddress: '127.0.0.1',
      remoteFamily: 'IPv4',
      localPort: port,
    });
    assert.ok(remotePort > 0 && remotePort !== port);
    assert.equal(body.length, large.length);
  });

  test('passes requests on to Express, which knows that they are secure', async (t) => {
    const app = express();
    app.get('/pass', (request, response) => {
      const { secure, protocol, ip } = request;
      response.json({ secure, protocol, ip });
    });
    const { port } = await startSecure(t, { server: createServer(app) });
    const { text } = await fetchFrom(port, '/pass');
    assert.deepEqual(JSON.parse(text), { secure: true, protocol: 'https', ip: '127.0.0.1' });
  });

  test('adopts responses to requests that it passed on', async (t) => {
    const server = createServer((_request, response) => {
      response.write('Written before. ');
      hold.adopt(response, { channels: ['news'], encoding: 'text' });
    });
    const { hold, closes, ask } = await startSecure(t, { server });
    const client = ask('/pass');
    await until(() => hold.counters().streams === 1, 'a stream');
    assert.equal(hold.counters().inJs, 0);
    assert.equal(await hold.publish('news', 'hello'), 1);
    await until(
      () => bodyOf(client.received) === 'Written before. hello',
      () => client.received,
    );
    client.close();
    await until(() => closes.length === 1, 'the end of the stream');
    assert.equal(closes[0].reason, 'client-gone');
    await until(() => hold.counters().connections === 0, 'no connection');
  });

  test('ends adopted streams properly', async (t) => {
    const server = createServer((_request, response) => {
      void hold.adopt(response, { channels: ['news'], encoding: 'text' });
    });
    const { hold, ask } = await startSecure(t, { server });
    const client = ask('/pass');
    await until(() => hold.counters().streams === 1, 'a stream');
    hold.endChannel('news', 'revoked');
    await client.untilClosed();
    assert.match(client.received, /\r\n0\r\n\r\n$/);
    assert.equal(client.problem, '');
  });

  test('refuses what it can not use, and says why', async (t) => {
    const one = makeCertificate(t).read();
    const other = makeCertificate(t).read();
    const { hold } = startHold(t, 'native');
    /** @param {any} tls @param {RegExp} message */
    const refuses = async (tls, message) => {
      await assert.rejects(hold.listen(0, '127.0.0.1', { tls }), { code: 'BAD_ARGUMENT', message });
      assert.throws(() => hold.setSecureContext(tls), { code: 'BAD_ARGUMENT', message });
    };
    await refuses(null, /^tls takes an object of options, not null/);
    await refuses(
      { ...one, certs: 'x' },
      /^tls has no 'certs': it can have cert, key, minVersion, ticketKeys/,
    );
    await refuses({ cert: one.cert }, /^tls: key must be PEM as a string or a Buffer/);
    await refuses({ cert: [], key: [] }, /^tls: cert is an empty array/);
    await refuses(
      { cert: [one.cert, other.cert], key: one.key },
      /^tls has 2 certificates \(cert\) and 1 key:/,
    );
    await refuses({ cert: 'x', key: one.key }, /^tls: cert has no certificate/);
    await refuses({ cert: one.cert, key: one.cert }, /^tls: key has no key/);
    await refuses({ cert: one.cert, key: other.key }, /^tls: key does not belong to tls: cert/);
    await refuses(
      { ...one, minVersion: 'TLSv1.1' },
      /^tls: minVersion must be one of TLSv1.2, TLSv1.3, not 'TLSv1.1'/,
    );
    await refuses({ ...one, ticketKeys: Buffer.alloc(32) }, /^tls: ticketKeys must have 48 bytes, not 32/);
    await assert.rejects(
      hold.listen(0, '127.0.0.1', /** @type {any} */ ({ TLS: one })),
      /listen has no 'TLS'/,
    );
    assert.ok((await hold.listen(0, '127.0.0.1', { tls: one })) > 0);
  });

  test('does not listen without TLS if it has certificates', async (t) => {
    const { hold } = startHold(t, 'native');
    hold.setSecureContext(makeCertificate(t).read());
    await assert.rejects(hold.listen(0, '127.0.0.1'), {
      code: 'BAD_ARGUMENT',
      message: /^this Hold has certificates .*: listen with \{ tls \} too$/,
    });
  });

  test('waits at its end for requests that it encrypts for', async (t) => {
    /** @type {import('node:http').ServerResponse[]} */
    const responses = [];
    const server = createServer((_request, response) => void responses.push(response));
    const { hold, ask } = await startSecure(t, { server });
    const client = ask('/pass');
    await until(() => responses.length === 1, 'the request');
    const closed = hold.close();
    responses[0].setHeader('Connection', 'close').end('an answer');
    await closed;
    await client.untilClosed();
    assert.match(client.received, /an answer$/);
    assert.equal(client.problem, '');
  });

  test('needs the native core', async (t) => {
    const { hold } = startHold(t, 'JS');
    const tls = makeCertificate(t).read();
    await assert.rejects(hold.listen(0, '127.0.0.1', { tls }), { code: 'NOT_NATIVE' });
    assert.throws(() => hold.setSecureContext(tls), { code: 'NOT_NATIVE' });
  });
});
