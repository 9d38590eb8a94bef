import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:net';
import { test } from 'node:test';
import { parseJws } from '../hub/access/jws.js';
import { openKeys } from '../hub/access/keys.js';
import { BusyError, TokenError } from '../hub/access/refusals.js';
import { Signatures } from '../hub/access/signatures.js';
import { HoldfastError } from '../lib/errors.js';
import { AT_JWT, draftClaims, jwksServer, keyPair, SECRET, sign, tokensWith } from './helpers/tokens.js';
import { until } from './helpers/until.js';

const CLAIMS = draftClaims({ publish: [{ match: 'p' }], subscribe: [{ match: 's' }] });
/** So short that tests needn't wait for it, unless they test it. */
const FAST = { cooldownMs: 1, retryMs: 20, refreshMs: 60_000, fetchMs: 500 };

/** @param {Awaited<ReturnType<typeof keyPair>>} pair @param {object} [header] @param {object} [claims] */
const tokenBy = ({ privateKey, jwk }, header = { kid: jwk.kid }, claims = {}) =>
  sign({ ...CLAIMS, ...claims }, { key: privateKey, alg: 'ES256', header: { ...AT_JWT, ...header } });

/**
 * @param {import('node:test').TestContext} t @param {string} jwksUrl @param {object} [options]
 * @param {import('../hub/access/keys.js').KeySettings} [others]
 */
async function openTokens(t, jwksUrl, options, others) {
  /** @type {string[]} */
  const notes = [];
  const keys = await openKeys(
    { jwksUrl, ...others },
    { ...FAST, onNote: (line) => void notes.push(line), ...options },
  );
  t.after(() => keys.close());
  return { keys, notes, tokens: await tokensWith(keys) };
}

/** @param {import('../hub/access/keys.js').KeySettings} settings @returns {Promise<string>} why they are refused */
async function refusalOf(settings) {
  try {
    await openKeys(settings);
    return '';
  } catch (error) {
    assert.ok(error instanceof HoldfastError && error.code === 'BAD_OPTION', String(error));
    assert.doesNotMatch(error.message, /\n/);
    return error.message;
  }
}

test('a public key may be a PEM, also with \\n as in environment variables, a certificate, a JWK or a set of them', async () => {
  const { pem, jwk, privateKey } = await keyPair('ES256');
  const texts = [
    pem,
    pem.trim().replaceAll('\n', '\\n'),
    JSON.stringify(jwk),
    JSON.stringify({ keys: [jwk] }),
  ];
  for (const text of texts) {
    const tokens = await tokensWith({ subscriberKey: text });
    assert.equal((await tokens.verify(await tokenBy({ privateKey, jwk, pem }))).key, '=s');
  }
  const pkcs1 = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({
    type: 'pkcs1',
    format: 'pem',
  });
  const { fixed } = await openKeys({ publisherKey: String(pkcs1) });
  assert.deepEqual([fixed.length, fixed[0].algorithm, fixed[0].canSubscribe], [1, 'RS256', false]);
});

test('a JWK may also be a secret', async () => {
  const jwk = { kty: 'oct', k: Buffer.from(SECRET).toString('base64url') };
  const tokens = await tokensWith({ subscriberKey: JSON.stringify(jwk) });
  assert.equal((await tokens.verify(await sign(CLAIMS, { header: AT_JWT }))).key, '=s');
});

test("a key that can't be used is an error of one line that names the option, and not the key", async () => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  const privatePem = String(privateKey.export({ type: 'pkcs8', format: 'pem' }));
  const publicPem = String(publicKey.export({ type: 'spki', format: 'pem' }));
  const small = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey;
  const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey;
  const ed448 = generateKeyPairSync('ed448').publicKey;
  const pemOf = (/** @type {import('node:crypto').KeyObject} */ key) =>
    String(key.export({ type: 'spki', format: 'pem' }));
  const jwk = publicKey.export({ format: 'jwk' });
  /** @type {[string, RegExp][]} */
  const bad = [
    [privatePem, /--jwt-publisher-key\) is a private key/],
    [publicPem.replace(/[A-Z]{6}/, '!!!!!!'), /not a valid PEM/],
    ['-----BEGIN PUBLIC KEY-----', /not a valid PEM/],
    [pemOf(small), /not a public key for RS256 \(2,048/],
    [pemOf(p384), /not a public key/],
    [pemOf(ed448), /not a public key/],
    [JSON.stringify({ ...jwk, alg: 'RS512' }), /not a public key/],
    [JSON.stringify({ ...jwk, use: 'enc' }), /not a public key/],
    [JSON.stringify(privateKey.export({ format: 'jwk' })), /not a public key/],
    [JSON.stringify({ keys: [jwk, null] }), /not a public key/],
    [JSON.stringify({ keys: [] }), /has no keys/],
    [JSON.stringify({ kty: 'oct', k: 'AAAA', alg: 'HS512' }), /not a public key/],
  ];
  for (const [text, expected] of bad) {
    const message = await refusalOf({ publisherKey: text });
    assert.match(message, expected);
    assert.ok(message.length < 160 && !message.includes(text.slice(30, 60) || '?'), message);
  }
  assert.match(await refusalOf({ secret: publicPem }), /--jwt-secret\) is a PEM, which everybody may know/);
  assert.match(await refusalOf({ subscriberKey: privatePem }), /--jwt-subscriber-key\) is a private key/);
});

test('what is public is refused as a secret: whoever knows it could sign tokens', async () => {
  const { pem, jwk } = await keyPair('RS256');
  const body = pem.replace(/-----[^-]+-----/g, '').trim();
  const mistakes = [
    body,
    body.replaceAll('\n', ''),
    JSON.stringify(jwk).slice(0, -1),
    JSON.stringify({ ...jwk, kty: undefined }),
    JSON.stringify([jwk]),
    'https://issuer.example/.well-known/jwks.json',
    'ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQ user@host',
    pem.replace('PUBLIC', '?'),
  ];
  for (const text of mistakes) {
    assert.match(await refusalOf({ secret: text }), /--jwt-secret\) is .*can't be a secret$/, text);
    assert.match(await refusalOf({ subscriberKey: text }), /--jwt-subscriber-key\) is /, text);
  }
  for (const secret of ['short', 'MIIB', 'bm90IGEga2V5LCBidXQgYmFzZTY0', '[', '{x"', SECRET])
    assert.equal(await refusalOf({ secret }), '', secret);
});

test('a role with a key of its own is closed to the keys that are for both', async (t) => {
  const pair = await keyPair('ES256');
  const { url } = await jwksServer(t, [pair.jwk]);
  const { tokens, keys } = await openTokens(t, url, {}, { publisherKey: SECRET });
  assert.equal(keys.canPublish, true);
  const remote = await tokens.verify(await tokenBy(pair));
  assert.deepEqual([remote.publish.length, remote.subscribe.length], [0, 1]);
  const own = await tokens.verify(await sign(CLAIMS, { header: AT_JWT }));
  assert.deepEqual([own.publish.length, own.subscribe.length], [1, 0]);
});

test('keys of a JWKS URL that are not for our signatures are left out', async (t) => {
  const good = await keyPair('ES256');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const odd = [
    null,
    'text',
    {},
    { kty: 'oct', k: Buffer.from(SECRET).toString('base64url') },
    privateKey.export({ format: 'jwk' }),
    { ...good.jwk, use: 'enc' },
    { ...good.jwk, alg: 'ES384' },
    { ...good.jwk, key_ops: ['sign'] },
    { ...good.jwk, crv: 'P-521' },
    { ...good.jwk, x: 'AAAA' },
  ];
  const { url } = await jwksServer(t, [...odd, { ...good.jwk, use: 'sig', alg: 'ES256' }]);
  const { tokens, keys } = await openTokens(t, url);
  assert.deepEqual(
    keys.remote?.keys.map(({ kid, algorithm }) => [kid, algorithm]),
    [['one', 'ES256']],
  );
  await assert.rejects(async () => tokens.verify(await sign(CLAIMS, { header: AT_JWT })), TokenError);
});

test('rotation: while tokens flow, keys come and go, and none is refused', async (t) => {
  const pairs = await Promise.all(['k1', 'k2', 'k3', 'k4'].map((name) => keyPair('ES256', name)));
  const jwks = await jwksServer(t, [pairs[0].jwk]);
  const { tokens } = await openTokens(t, jwks.url, { cooldownMs: 50 });
  let accepted = 0;
  for (const [i, pair] of pairs.entries()) {
    jwks.keys = pairs.slice(Math.max(0, i - 1), i + 1).map(({ jwk }) => jwk); // the one before stays for a while
    const signed = await Promise.all(
      Array.from({ length: 40 }, (_, n) =>
        tokenBy(pairs[n % 4 === 0 && i > 0 ? i - 1 : i], undefined, { n }),
      ),
    );
    await tokenBy(pair).then((token) => tokens.verify(token));
    await Promise.all(signed.map(async (token) => tokens.verify(token)));
    accepted += signed.length;
  }
  assert.equal(accepted, 160);
  assert.equal(jwks.requests, 4, 'one request per rotation');
});

test('rotation: a token of a new key is accepted even while others invent key ids', async (t) => {
  const [old, fresh] = await Promise.all(['k1', 'k2'].map((name) => keyPair('ES256', name)));
  const jwks = await jwksServer(t, [old.jwk]);
  const { tokens } = await openTokens(t, jwks.url, { cooldownMs: 100 });
  const invented = await Promise.all(
    Array.from({ length: 50 }, (_, i) => tokenBy(old, { kid: `invented-${i}` })),
  );
  const refused = Promise.allSettled(invented.map(async (token) => tokens.verify(token)));
  jwks.keys = [old.jwk, fresh.jwk];
  assert.equal((await tokens.verify(await tokenBy(fresh))).key, '=s');
  assert.ok((await refused).every(({ status }) => status === 'rejected'));
  assert.ok(jwks.requests <= 3, `${jwks.requests} requests`);
});

test('rotation: a token whose key comes while it waits for the thread pool is accepted', async (t) => {
  const [fixed, old, fresh] = await Promise.all(['k0', 'k1', 'k2'].map((name) => keyPair('ES256', name)));
  const jwks = await jwksServer(t, [old.jwk]);
  const { keys } = await openTokens(t, jwks.url, {}, { publisherKey: fixed.pem });
  const signatures = new Signatures(1);
  const tokens = await tokensWith(keys, { signatures });
  const { signed, signature } = parseJws(await tokenBy(fixed));
  const others = Array.from({ length: 300 }, () => signatures.verify(keys.fixed[0], signed, signature));
  const session = tokens.verify(await tokenBy(fresh));
  jwks.keys = [fresh.jwk];
  await keys.refetch();
  assert.equal(jwks.requests, 2);
  assert.ok(signatures.waiting.length > 0, 'it still waits for the pool');
  assert.equal((await session).key, '=s');
  assert.equal(jwks.requests, 2);
  await Promise.all(others);
});

test('rotation: keys without ids too', async (t) => {
  const [old, fresh] = await Promise.all(['k1', 'k2'].map((name) => keyPair('ES256', name)));
  const unnamed = (/** @type {{ jwk: object }} */ { jwk }) => ({ ...jwk, kid: undefined });
  const jwks = await jwksServer(t, [unnamed(old)]);
  const { tokens } = await openTokens(t, jwks.url);
  assert.equal((await tokens.verify(await tokenBy(old, {}))).key, '=s');
  jwks.keys = [unnamed(fresh)];
  assert.equal((await tokens.verify(await tokenBy(fresh, {}))).key, '=s');
});

test('a token that was refused before its key was there is accepted when the keys change, or a second later', async (t) => {
  const [old, fresh] = await Promise.all(['k1', 'k2'].map((name) => keyPair('ES256', name)));
  for (const isTold of [true, false]) {
    const jwks = await jwksServer(t, [old.jwk]);
    const { keys } = await openTokens(t, jwks.url);
    const clock = { nowMs: Date.now() };
    const tokens = await tokensWith(keys, { now: () => clock.nowMs });
    const token = await tokenBy(fresh);
    for (let i = 0; i < 2; i++) await assert.rejects(async () => tokens.verify(token), TokenError);
    assert.throws(() => tokens.verify(token), TokenError, 'at once');
    jwks.keys = [fresh.jwk];
    if (isTold) await keys.refetch();
    else clock.nowMs += 1000;
    assert.equal((await tokens.verify(token)).key, '=s');
  }
});

test('requests to the JWKS URL begin no more often than allowed', async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  const { tokens } = await openTokens(t, jwks.url, { cooldownMs: 100 });
  const startedMs = performance.now();
  for (const kid of ['a', 'b', 'c']) {
    const token = await tokenBy(pair, { kid });
    await assert.rejects(async () => tokens.verify(token), TokenError);
  }
  assert.equal(jwks.requests, 4);
  assert.ok(performance.now() - startedMs > 250);
});

test('an answer of the JWKS URL that is late does not replace a newer one', async (t) => {
  const [old, fresh] = await Promise.all(['k1', 'k2'].map((name) => keyPair('ES256', name)));
  const jwks = await jwksServer(t, [old.jwk]);
  const { keys, tokens } = await openTokens(t, jwks.url, { fetchMs: 5000 });
  /** @type {import('node:http').ServerResponse[]} */
  const held = [];
  jwks.answer = (_, response) => void held.push(response);
  const first = keys.refetch();
  await until(() => held.length === 1, 'the request arrived');
  jwks.answer = null;
  jwks.keys = [fresh.jwk];
  const session = tokens.verify(await tokenBy(fresh)); // what is under way may be older than its key
  await new Promise((resolve) => setTimeout(resolve, 50));
  held[0].end(JSON.stringify({ keys: [old.jwk, { ...old.jwk, kid: 'k0' }] }));
  await first;
  assert.equal((await session).key, '=s');
  assert.deepEqual(
    keys.remote?.keys.map(({ kid }) => kid),
    ['k2'],
  );
});

test('a key that is gone from the JWKS URL is not accepted any more after the next request, and its sessions are forgotten', async (t) => {
  const [old, fresh] = await Promise.all(['k1', 'k2'].map((name) => keyPair('ES256', name)));
  const jwks = await jwksServer(t, [old.jwk]);
  const { tokens, keys } = await openTokens(t, jwks.url, { refreshMs: 20 });
  const token = await tokenBy(old);
  for (let i = 0; i < 2; i++) await tokens.verify(token);
  assert.equal(tokens.sessions.size, 1);
  const { generation } = tokens;
  jwks.keys = [fresh.jwk];
  await until(() => tokens.generation > generation, 'the keys changed');
  assert.equal(tokens.sessions.size, 0);
  await assert.rejects(async () => tokens.verify(token), TokenError);
  keys.close();
});

test('while the JWKS URL is down its keys stay, and the log says so once', async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  const { tokens, notes } = await openTokens(t, jwks.url, { refreshMs: 10, retryMs: 5 });
  jwks.answer = (_, response) => void response.writeHead(500).end('no');
  const { requests } = jwks;
  await until(() => jwks.requests > requests + 4, 'it was asked again and again');
  assert.equal((await tokens.verify(await tokenBy(pair))).key, '=s');
  const unknown = await tokenBy(pair, { kid: 'unknown' });
  await assert.rejects(async () => tokens.verify(unknown), BusyError, 'nobody can say whether it is valid');
  assert.equal(notes.length, 1);
  assert.match(
    notes[0],
    /^can't get the keys of http:\/\/127[^?]*\/jwks \(status 500\): its last keys stay in use$/,
  );
  jwks.answer = null;
  await until(() => notes.length === 2, 'it is back');
  assert.match(notes[1], /is back$/);
});

test("a JWKS URL that is down at the start is asked again; until then tokens can't be checked", async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  jwks.answer = (_, response) => void response.destroy();
  const { tokens, notes } = await openTokens(t, jwks.url);
  const token = await tokenBy(pair);
  await assert.rejects(async () => tokens.verify(token), BusyError);
  assert.match(notes[0], /tokens get 503 until it answers$/);
  jwks.answer = null;
  assert.equal((await tokens.verify(token)).key, '=s');
});

test("a JWKS URL that doesn't answer, or never ends, is given up in time", async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  const slow = [
    () => {},
    (/** @type {unknown} */ _, /** @type {import('node:http').ServerResponse} */ response) =>
      void response.write('{'),
  ];
  for (const answer of slow) {
    jwks.answer = answer;
    const startedMs = performance.now();
    const { notes } = await openTokens(t, jwks.url, { fetchMs: 100, retryMs: 60_000 });
    assert.ok(performance.now() - startedMs < 2000);
    assert.match(notes[0], /no answer within 100 ms/);
  }
});

test('an answer of the JWKS URL that is too large, no JWK set, or a redirection, is refused', async (t) => {
  const pair = await keyPair('ES256');
  const good = await jwksServer(t, [pair.jwk]);
  const jwks = await jwksServer(t, []);
  /** @type {[import('node:http').RequestListener, RegExp][]} */
  const answers = [
    [(_, response) => void response.end(' '.repeat(300_000)), /more than 262144 bytes/],
    [(_, response) => void response.end('<html>'), /JSON/],
    [(_, response) => void response.end('null'), /not a JWK set/],
    [(_, response) => void response.end('{"keys":{}}'), /not a JWK set/],
    [(_, response) => void response.writeHead(302, { Location: good.url }).end(), /redirect/],
    [(_, response) => void response.writeHead(204).end(), /status 204/],
  ];
  for (const [answer, expected] of answers) {
    jwks.answer = answer;
    const { keys, notes } = await openTokens(t, jwks.url, { retryMs: 60_000 });
    assert.match(notes[0], expected);
    assert.equal(keys.remote?.keys.length, 0);
  }
  assert.equal(good.requests, 0);
});

test('no more than 100 keys are read', async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(
    t,
    Array.from({ length: 150 }, (_, i) => ({ ...pair.jwk, kid: `k${i}` })),
  );
  const { keys } = await openTokens(t, jwks.url);
  assert.equal(keys.remote?.keys.length, 100);
});

test('a token without a kid is tried with no more than 8 keys', async (t) => {
  const pairs = await Promise.all(Array.from({ length: 9 }, (_, i) => keyPair('EdDSA', `many-${i}`)));
  const { keys } = await openTokens(
    t,
    (
      await jwksServer(
        t,
        pairs.map(({ jwk }) => jwk),
      )
    ).url,
  );
  assert.equal(keys.candidates({ alg: 'EdDSA', typ: '' }).length, 8);
  assert.equal(keys.candidates({ alg: 'EdDSA', typ: '', kid: 'many-8' }).length, 1);
});

test('no more than so many tokens wait for the JWKS URL', async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  const { keys } = await openTokens(t, jwks.url, { cooldownMs: 200 });
  const tokens = await tokensWith(keys, { mostUnknownBytes: 2500 });
  const unknown = await Promise.all(['a', 'b', 'c'].map((kid) => tokenBy(pair, { kid })));
  const results = await Promise.allSettled(unknown.map(async (token) => tokens.verify(token)));
  const reasons = results.map((result) => /** @type {PromiseRejectedResult} */ (result).reason.constructor);
  assert.deepEqual(reasons, [TokenError, TokenError, BusyError]);
});

test("tokens that wait for the JWKS URL are in nobody's way", async (t) => {
  const pair = await keyPair('ES256');
  const jwks = await jwksServer(t, [pair.jwk]);
  const { keys } = await openTokens(t, jwks.url, { cooldownMs: 200 });
  const tokens = await tokensWith(keys, { mostUnknownBytes: 2500, mostQueuedBytes: 2500 });
  const unknown = await Promise.all(['a', 'b', 'c'].map((kid) => tokenBy(pair, { kid })));
  const refused = Promise.allSettled(unknown.map(async (token) => tokens.verify(token)));
  assert.equal((await tokens.verify(await tokenBy(pair))).key, '=s');
  assert.ok((await refused).every(({ status }) => status === 'rejected'));
});

test('closing ends a request to the JWKS URL that is under way', async (t) => {
  const jwks = await jwksServer(t, []);
  const { keys, notes } = await openTokens(t, jwks.url, { fetchMs: 60_000 });
  jwks.answer = () => {};
  const { requests } = jwks;
  const refetched = keys.refetch();
  await until(() => jwks.requests > requests, 'the request arrived');
  keys.close();
  await assert.rejects(refetched);
  assert.equal(notes.length, 1, 'the set had no keys; closing is no trouble');
});

test('a connection that is refused is named by its cause', async (t) => {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)));
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address());
  await new Promise((resolve) => server.close(resolve));
  const { notes } = await openTokens(t, `http://127.0.0.1:${port}/jwks`, { retryMs: 60_000 });
  assert.match(notes[0], /ECONNREFUSED/);
});
