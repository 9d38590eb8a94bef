import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, verify } from 'node:crypto';
import { test } from 'node:test';
import { changedParams, defaultParams } from '../fleet/drone/params.js';
import { subscriptionOf } from '../fleet/drone/topics/subscription.js';
import { problemOf, signerOf, Tokens } from '../fleet/drone/topics/tokens.js';

const SIGNER = /** @type {const} */ ({ secret: 'a secret', dialect: '0.x', ttlS: 100 });

/** @param {string} token */
function parsed(token) {
  const [head, payload, signature] = token.split('.');
  const objectOf = (/** @type {string} */ text) => JSON.parse(String(Buffer.from(text, 'base64url')));
  return { head: objectOf(head), payload: objectOf(payload), text: `${head}.${payload}`, signature };
}

/** @param {Record<string, string>} changes */
function tokensOf(changes, signer = SIGNER) {
  const given = Object.entries({ topic: 'room/{n%10}', 'token-secret': signer.secret, ...changes });
  const subscription = subscriptionOf(changedParams(defaultParams(), given));
  return new Tokens(signer, subscription ?? assert.fail());
}

test('each stream gets a token for exactly its topics, signed with the secret', () => {
  const tokens = tokensOf({ first: '5', step: '2' });
  const { from, tokens: some } = tokens.next(0, 300) ?? assert.fail();
  assert.deepEqual([from, some.length, tokens.ready], [0, 256, 256]);
  const { head, payload, text, signature } = parsed(some[3]);
  assert.deepEqual(head, { alg: 'HS256', typ: 'JWT' });
  assert.deepEqual([payload.sub, payload.mercure], ['user-11', { subscribe: ['room/1'] }]);
  assert.equal(payload.exp - payload.iat, 100);
  assert.equal(signature, createHmac('sha256', 'a secret').update(text).digest('base64url'));
});

test('tokens are made until all streams have one, and again when half of their time has passed', () => {
  const tokens = tokensOf({});
  assert.deepEqual([0, 0, 0].map((nowMs) => tokens.next(nowMs, 300)?.from), [0, 256, undefined]); // biome-ignore format: a table
  assert.deepEqual([49_000, 51_000, 51_000, 51_000].map((nowMs) => tokens.next(nowMs, 300)?.from), [undefined, 0, 256, undefined]); // biome-ignore format: a table
});

test('one token for all is for all topics', () => {
  const tokens = tokensOf({ 'token-shared': '1' });
  assert.equal(tokens.ready, 0);
  const { tokens: some } = tokens.next(0, 300) ?? assert.fail();
  assert.deepEqual([some.length, parsed(some[0]).payload.mercure], [1, { subscribe: ['*'] }]);
  assert.equal(tokens.ready, Number.POSITIVE_INFINITY);
  assert.equal(tokens.next(0, 300), null);
});

test('in the draft, a token has the details of the authorization, and other claims can be added', () => {
  const create = signerOf({ ...SIGNER, dialect: 'draft-08', claims: { aud: 'hub' } });
  const { head, payload } = parsed(create('user-1', 'publish', ['a', 'b']));
  assert.deepEqual([head.typ, payload.aud, payload.mercure], ['at+jwt', 'hub', undefined]);
  assert.deepEqual(payload.authorization_details, [
    {
      type: 'https://mercure.rocks/authorization-detail',
      actions: ['publish'],
      topics: [{ match: 'a' }, { match: 'b' }],
    },
  ]);
});

/** @type {[string, any][]} */
const KEYS = [
  ['ES256', generateKeyPairSync('ec', { namedCurve: 'P-256' })],
  ['RS256', generateKeyPairSync('rsa', { modulusLength: 2048 })],
  ['EdDSA', generateKeyPairSync('ed25519')],
];

for (const [alg, { privateKey, publicKey }] of KEYS) {
  test(`with a private key in PEM, tokens are signed with ${alg}`, () => {
    const secret = privateKey.export({ type: 'pkcs8', format: 'pem' });
    const { head, text, signature } = parsed(signerOf({ ...SIGNER, secret })('user-1', 'subscribe', ['a']));
    assert.equal(head.alg, alg);
    const key = { key: publicKey, dsaEncoding: /** @type {const} */ ('ieee-p1363') };
    const hash = alg === 'EdDSA' ? null : 'sha256';
    assert.ok(verify(hash, Buffer.from(text), key, Buffer.from(signature, 'base64url')));
  });
}

test('a key that is no key is a problem', () => {
  assert.equal(problemOf('anything'), '');
  assert.notEqual(problemOf('-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----'), '');
});
