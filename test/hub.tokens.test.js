import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { test } from 'node:test';
import { checkClaims } from '../hub/access/claims.js';
import { MOST_TOKEN_BYTES, parseJws } from '../hub/access/jws.js';
import { openKeys } from '../hub/access/keys.js';
import { BusyError, TokenError } from '../hub/access/refusals.js';
import { Signatures } from '../hub/access/signatures.js';
import {
  AT_JWT,
  DETAIL,
  draftClaims,
  HUB,
  keyPair,
  NOW_S,
  SECRET,
  sign,
  tokensWith,
  unsigned,
} from './helpers/tokens.js';

const NOW_MS = NOW_S * 1000;
const SUBSCRIBE_X = draftClaims({ subscribe: [{ match: 'x' }] });
const PUBLIC = /** @type {const} */ (['RS256', 'ES256', 'EdDSA']);

/**
 * @param {import('../hub/access/tokens.js').Tokens} tokens @param {string} token
 * @returns {Promise<string>} why it is refused; '' if it is not
 */
async function refusalOf(tokens, token) {
  try {
    await tokens.verify(token);
    return '';
  } catch (error) {
    assert.ok(error instanceof TokenError, String(error));
    return error.message;
  }
}

test('a token for HS256 is verified at once', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const session = tokens.verify(await sign({ ...SUBSCRIBE_X, sub: 'user', jti: 'id' }, { header: AT_JWT }));
  assert.ok(!(session instanceof Promise));
  assert.deepEqual(
    [session.key, session.dialect, session.expiresAtMs],
    ['=x', 'draft', Number(SUBSCRIBE_X.exp) * 1000],
  );
  assert.ok(session.subject > 0 && session.token > 0 && session.subject !== session.token);
});

for (const alg of PUBLIC) {
  test(`a token for ${alg} is verified later, and its signature counts`, async () => {
    const { privateKey, pem } = await keyPair(alg);
    const other = await keyPair(alg, 'two');
    const tokens = await tokensWith({ subscriberKey: pem });
    const session = tokens.verify(await sign(SUBSCRIBE_X, { key: privateKey, alg, header: AT_JWT }));
    assert.ok(session instanceof Promise);
    assert.equal((await session).key, '=x');
    const foreign = await sign(SUBSCRIBE_X, { key: other.privateKey, alg, header: AT_JWT });
    assert.match(await refusalOf(tokens, foreign), /signature/);
  });
}

test('a token with another signature, claim or header is refused', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const token = await sign(SUBSCRIBE_X, { header: AT_JWT });
  const [header, claims, signature] = token.split('.');
  const longer = Buffer.from(JSON.stringify({ ...SUBSCRIBE_X, exp: NOW_S * 2 })).toString('base64url');
  const flipped = Buffer.from(signature, 'base64url').map((byte, i) => (i === 31 ? byte ^ 1 : byte));
  const short = Buffer.from(signature, 'base64url').subarray(0, 16).toString('base64url');
  const changed = [
    `${header}.${longer}.${signature}`,
    `${header}.${claims}.${Buffer.from(flipped).toString('base64url')}`,
    `${header}.${claims}.${short}`,
    await sign(SUBSCRIBE_X, { header: AT_JWT, key: 'another secret of thirty-two bytes, or more' }),
  ];
  for (const one of changed) assert.match(await refusalOf(tokens, one), /signature/);
});

test('a token that is not the strict compact form is refused', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const token = await sign(SUBSCRIBE_X, { header: AT_JWT });
  const [header, claims, signature] = token.split('.');
  const last = signature.at(-1) ?? '';
  const next = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  const sameBytes = signature.slice(0, -1) + next[next.indexOf(last) + 1]; // 43 characters have two bits left over
  const encoded = (/** @type {string} */ text) => Buffer.from(text).toString('base64url');
  const malformed = [
    '',
    '.',
    '..',
    'x',
    token.slice(0, token.lastIndexOf('.')),
    `${header}.${claims}.`,
    `${header}..${signature}`,
    `.${claims}.${signature}`,
    `${token}.`,
    `${token}.${signature}`,
    `${token}=`,
    `${header}=.${claims}.${signature}`,
    `${header}.${claims}.${sameBytes}`,
    `${header}.${claims}\n.${signature}`,
    `${header}.${claims} .${signature}`,
    `${header}.${claims}+.${signature}`,
    `${header}.${claims}.${signature}%3D`,
    `${header}.${encoded('[]')}.${signature}`,
    `${header}.${encoded('null')}.${signature}`,
    `${header}.${encoded('"text"')}.${signature}`,
    `${header}.${encoded('{"a":')}.${signature}`,
    `${encoded('[]')}.${claims}.${signature}`,
    `${header}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`,
    `${unsigned({ alg: 1 }, {})}${signature}`,
    `${unsigned({}, {})}${signature}`,
    `${unsigned({ alg: 'HS256', kid: 1 }, {})}${signature}`,
    `${unsigned({ alg: 'HS256', typ: ['at+jwt'] }, {})}${signature}`,
  ];
  for (const one of malformed)
    assert.match(await refusalOf(tokens, one), /not a signed token/, JSON.stringify(one));
});

test('a token whose claims are not UTF-8 is refused, even with a good signature', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { rules: { audience: '' } });
  for (const [byte, expected] of /** @type {const} */ ([
    [0xff, /not a signed token/],
    [0x20, /^$/],
  ])) {
    const claims = Buffer.concat([
      Buffer.from('{"mercure":{},"x":"'),
      Buffer.from([byte]),
      Buffer.from('"}'),
    ]);
    const signed = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${claims.toString('base64url')}`;
    const signature = createHmac('sha256', SECRET).update(signed).digest('base64url');
    assert.match(await refusalOf(tokens, `${signed}.${signature}`), expected);
  }
});

test('a truncated token is refused wherever it ends', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const token = await sign(SUBSCRIBE_X, { header: AT_JWT });
  for (let length = 0; length < token.length; length++)
    assert.notEqual(await refusalOf(tokens, token.slice(0, length)), '');
});

test('a token that is too long is refused before it is read', async () => {
  const long = await sign({ ...SUBSCRIBE_X, filler: 'x'.repeat(MOST_TOKEN_BYTES) }, { header: AT_JWT });
  assert.throws(() => parseJws(long), /more than 16384 bytes/);
});

test('a header with crit is refused', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const header = `${unsigned({ alg: 'HS256', typ: 'at+jwt', crit: ['b64'], b64: true }, SUBSCRIBE_X, '').slice(0, -1)}`;
  const signature = createHmac('sha256', SECRET).update(header).digest('base64url');
  assert.match(await refusalOf(tokens, `${header}.${signature}`), /crit/);
});

test('the algorithm comes from the key: a public key is no secret', async () => {
  for (const alg of PUBLIC) {
    const { pem, jwk } = await keyPair(alg);
    const tokens = await tokensWith({ publisherKey: pem, subscriberKey: JSON.stringify(jwk) });
    const der = Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    for (const secret of [pem, pem.trim(), `${pem}\n`, JSON.stringify(jwk), der]) {
      const signed = unsigned({ alg: 'HS256', typ: 'at+jwt', kid: jwk.kid }, SUBSCRIBE_X).slice(0, -1);
      const token = `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`;
      assert.match(await refusalOf(tokens, token), /signature/, alg);
    }
  }
});

test('alg none, and algorithms that are not on the list, are refused', async () => {
  const { pem } = await keyPair('RS256');
  const tokens = await tokensWith({ secret: SECRET, subscriberKey: pem });
  const signature = 'c2lnbmF0dXJl';
  for (const alg of [
    'none',
    'None',
    'NONE',
    '',
    'hs256',
    'HS384',
    'RS512',
    'PS256',
    'ES384',
    'constructor',
  ]) {
    const token = unsigned({ alg, typ: 'at+jwt' }, SUBSCRIBE_X, signature);
    assert.match(await refusalOf(tokens, token), /signature/, alg);
    assert.match(
      await refusalOf(tokens, unsigned({ alg, typ: 'at+jwt' }, SUBSCRIBE_X)),
      /not a signed token/,
      alg,
    );
  }
  const other = await keyPair('ES256');
  const mixed = await sign(SUBSCRIBE_X, { key: other.privateKey, alg: 'ES256', header: AT_JWT });
  assert.match(await refusalOf(tokens, mixed), /signature/);
});

test('a key that the token brings along is ignored', async () => {
  const ours = await keyPair('ES256');
  const theirs = await keyPair('ES256', 'two');
  const tokens = await tokensWith({ subscriberKey: JSON.stringify(ours.jwk) });
  const headers = [
    { jwk: theirs.jwk, kid: ours.jwk.kid },
    { jku: 'http://127.0.0.1:9/', kid: theirs.jwk.kid },
    { x5u: 'http://127.0.0.1:9/', x5c: ['AAAA'] },
  ];
  for (const header of headers) {
    const how = { key: theirs.privateKey, alg: 'ES256', header: { ...AT_JWT, ...header } };
    assert.match(await refusalOf(tokens, await sign(SUBSCRIBE_X, how)), /signature/);
    const own = { key: ours.privateKey, alg: 'ES256', header: { ...AT_JWT, ...header, kid: ours.jwk.kid } };
    assert.equal(await refusalOf(tokens, await sign(SUBSCRIBE_X, own)), '');
  }
});

test('a kid is only a name to compare with', async () => {
  const { privateKey, jwk, pem } = await keyPair('ES256');
  const named = await tokensWith({ subscriberKey: JSON.stringify(jwk) });
  const unnamed = await tokensWith({ subscriberKey: pem });
  for (const kid of ['../../etc/passwd', "' or 1=1 --", '__proto__', 'constructor', '', 'x'.repeat(5000)]) {
    const token = await sign(SUBSCRIBE_X, { key: privateKey, alg: 'ES256', header: { ...AT_JWT, kid } });
    assert.match(await refusalOf(named, token), /signature/);
    assert.equal(await refusalOf(unnamed, token), '');
  }
});

test('only the roles of the key that signed it count', async () => {
  const { privateKey, pem } = await keyPair('EdDSA');
  const tokens = await tokensWith({ publisherKey: SECRET, subscriberKey: pem });
  const claims = draftClaims({ publish: [{ match: '*' }], subscribe: [{ match: 'x' }] });
  const publisher = await tokens.verify(await sign(claims, { header: AT_JWT }));
  assert.deepEqual([publisher.publish.length, publisher.subscribe.length, publisher.key], [1, 0, '']);
  const subscriber = await tokens.verify(
    await sign(claims, { key: privateKey, alg: 'EdDSA', header: AT_JWT }),
  );
  assert.deepEqual([subscriber.publish.length, subscriber.subscribe.length], [0, 1]);
});

test('a secret that is given for both roles has both', async () => {
  const claims = draftClaims({ publish: [{ match: '*' }], subscribe: [{ match: 'x' }] });
  for (const keys of [
    { publisherKey: SECRET, subscriberKey: SECRET },
    { secret: SECRET, publisherKey: SECRET },
  ]) {
    const session = await (await tokensWith(keys)).verify(await sign(claims, { header: AT_JWT }));
    assert.deepEqual([session.publish.length, session.subscribe.length], [1, 1]);
  }
});

test('Ed25519 is another name of EdDSA', async () => {
  const { privateKey, pem } = await keyPair('EdDSA');
  const tokens = await tokensWith({ subscriberKey: pem });
  const token = await sign(SUBSCRIBE_X, { key: privateKey, alg: 'Ed25519', header: AT_JWT });
  assert.equal(await refusalOf(tokens, token), '');
});

const RULES = { issuer: '', audience: '', isLegacyAllowed: true };
const DRAFT = { authorization_details: [], exp: NOW_S + 60, aud: HUB };
const LEGACY = { mercure: {} };

/** @typedef {[what: string, typ: string, claims: object, rules: object, outcome: RegExp | 'draft' | 'legacy']} ClaimsCase */

/** The rule of hub/access/claims.js, one row per case. @type {ClaimsCase[]} */
// biome-ignore format: a table reads best with one row per line
const CLAIMS = [
  ['a token of draft-08', 'at+jwt', DRAFT, {}, 'draft'],
  ['draft-08 without typ', '', DRAFT, {}, /typ is not at\+jwt/],
  ['draft-08 with the typ of an ID token', 'jwt', DRAFT, {}, /typ is not at\+jwt/],
  ['draft-08 without exp', 'at+jwt', { ...DRAFT, exp: undefined }, {}, /no exp/],
  ['draft-08 without aud', 'at+jwt', { ...DRAFT, aud: undefined }, {}, /audience/],
  ['draft-08 for another hub', 'at+jwt', DRAFT, { audience: 'https://other.example' }, /audience/],
  ['draft-08 with our hub in a list', 'at+jwt', { ...DRAFT, aud: ['x', HUB] }, { audience: HUB }, 'draft'],
  ['draft-08 with a list that is no list of texts', 'at+jwt', { ...DRAFT, aud: [HUB, 1] }, { audience: HUB }, /audience/],
  ['draft-08 with an empty list', 'at+jwt', { ...DRAFT, aud: [] }, { audience: HUB }, /audience/],
  ['draft-08 with our hub as a part of aud', 'at+jwt', { ...DRAFT, aud: `${HUB}/x` }, { audience: HUB }, /audience/],
  ['draft-08 without iss', 'at+jwt', DRAFT, { issuer: 'https://i' }, /issuer/],
  ['draft-08 of another issuer', 'at+jwt', { ...DRAFT, iss: 'https://i/' }, { issuer: 'https://i' }, /issuer/],
  ['draft-08 of our issuer', 'at+jwt', { ...DRAFT, iss: 'https://i' }, { issuer: 'https://i' }, 'draft'],
  ['draft-08 with 0.x off', 'at+jwt', DRAFT, { isLegacyAllowed: false }, 'draft'],
  ['an access token without our claims', 'at+jwt', { exp: NOW_S + 60, aud: HUB }, {}, 'draft'],
  ['a token of 0.x', '', LEGACY, {}, 'legacy'],
  ['a token of 0.x with typ JWT', 'jwt', LEGACY, {}, 'legacy'],
  ['a token of 0.x with the namespaced claim', '', { 'https://mercure.rocks/': {} }, {}, 'legacy'],
  ['a token of 0.x with the typ of something else', 'logout+jwt', LEGACY, {}, /neither JWT nor at\+jwt/],
  ['a token of 0.x with 0.x off', '', LEGACY, { isLegacyAllowed: false }, /no claims of Mercure/],
  ['a token of 0.x that has expired', '', { ...LEGACY, exp: NOW_S - 1 }, {}, /expired/],
  ['a token of 0.x without aud, if one is required', '', LEGACY, { audience: HUB }, /audience/],
  ['a token of 0.x with aud, if one is required', '', { ...LEGACY, aud: HUB }, { audience: HUB }, 'legacy'],
  ['a token of 0.x for another hub, if none is required', '', { ...LEGACY, aud: 'x' }, {}, 'legacy'],
  ['a token of 0.x without iss, if one is required', '', LEGACY, { issuer: 'https://i' }, /issuer/],
  ['an ID token', 'jwt', { sub: 'user', exp: NOW_S + 60 }, {}, /no claims of Mercure/],
  ['both claims: draft-08 counts', 'at+jwt', { ...DRAFT, ...LEGACY }, {}, 'draft'],
  ['both claims, without typ: no way around the rules of draft-08', '', { ...DRAFT, ...LEGACY }, {}, /typ is not at\+jwt/],
  ['both claims, details null: no way around either', '', { ...LEGACY, authorization_details: null }, {}, /typ is not at\+jwt/],
  ['an access token with the claim of 0.x', 'at+jwt', { ...LEGACY, exp: NOW_S + 60, aud: HUB }, {}, 'legacy'],
  ['an access token with the claim of 0.x, without exp', 'at+jwt', { ...LEGACY, aud: HUB }, {}, /no exp/],
  ['an access token with the claim of 0.x, without aud', 'at+jwt', { ...LEGACY, exp: NOW_S + 60 }, {}, /audience/],
  ['exp now', 'at+jwt', { ...DRAFT, exp: NOW_S }, {}, /expired/],
  ['exp in a moment', 'at+jwt', { ...DRAFT, exp: NOW_S + 0.5 }, {}, 'draft'],
  ['exp as a text', 'at+jwt', { ...DRAFT, exp: String(NOW_S + 60) }, {}, /not a number/],
  ['exp null in 0.x', '', { ...LEGACY, exp: null }, {}, /not a number/],
  ['nbf within 5 seconds', 'at+jwt', { ...DRAFT, nbf: NOW_S + 5 }, {}, 'draft'],
  ['nbf after that', 'at+jwt', { ...DRAFT, nbf: NOW_S + 6 }, {}, /not valid yet/],
  ['nbf in 0.x too', '', { ...LEGACY, nbf: NOW_S + 6 }, {}, /not valid yet/],
  ['nbf as a text', 'at+jwt', { ...DRAFT, nbf: 'now' }, {}, /not a number/],
  ['iat in the future', 'at+jwt', { ...DRAFT, iat: NOW_S + 3600 }, {}, 'draft'],
];

for (const [what, typ, claims, rules, outcome] of CLAIMS) {
  test(`claims: ${what}`, () => {
    const check = () =>
      checkClaims(typ, /** @type {Record<string, unknown>} */ (claims), { ...RULES, ...rules }, NOW_MS);
    if (outcome instanceof RegExp) assert.throws(check, outcome);
    else assert.equal(check().dialect, outcome);
  });
}

test('the typ is compared in any case, with or without application/', () => {
  for (const typ of ['at+jwt', 'AT+JWT', 'application/at+jwt', 'Application/AT+jwt'])
    assert.equal(parseJws(unsigned({ alg: 'HS256', typ }, {}, 'AAAA')).header.typ, 'at+jwt');
  assert.notEqual(parseJws(unsigned({ alg: 'HS256', typ: 'text/at+jwt' }, {}, 'AAAA')).header.typ, 'at+jwt');
});

test('numbers as sub and jti count like texts', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { rules: { audience: '' } });
  const [number, text, odd] = await Promise.all(
    [42, '42', { a: 1 }].map(async (sub) => tokens.verify(await sign({ mercure: {}, sub }))),
  );
  assert.equal(number.subject, text.subject);
  assert.equal(odd.subject, 0);
});

/**
 * A token is remembered when it comes for the second time.
 * @param {import('../hub/access/tokens.js').Tokens} tokens @param {string} token
 */
async function known(tokens, token) {
  await tokens.verify(token);
  return tokens.verify(token);
}

test('a token that came twice gives the same session from then on, without looking at it again', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const token = await sign(SUBSCRIBE_X, { header: AT_JWT });
  tokens.verify(token);
  assert.equal(tokens.sessions.size, 0, 'most tokens come once');
  assert.equal(tokens.verify(token), tokens.verify(token));
  assert.equal(tokens.sessions.size, 1);
});

test('thousands of different tokens displace nothing, and are not kept', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { rules: { audience: '' } });
  const shared = await sign({ mercure: {} });
  const session = await known(tokens, shared);
  for (let i = 0; i < 3000; i++) tokens.verify(await sign({ mercure: {}, jti: String(i) }));
  assert.equal(tokens.sessions.size, 1);
  assert.equal(tokens.verify(shared), session);
});

test('equal tokens that arrive together are verified once', async () => {
  const { privateKey, pem } = await keyPair('ES256');
  const signatures = new Signatures();
  const tokens = await tokensWith({ subscriberKey: pem }, { signatures });
  const token = await sign(SUBSCRIBE_X, { key: privateKey, alg: 'ES256', header: AT_JWT });
  const [one, other] = [tokens.verify(token), tokens.verify(token)];
  assert.equal(signatures.running, 1);
  assert.equal(await one, await other);
  assert.equal(tokens.pending.size, 0);
});

/** A clock that can be set. @param {number} [nowMs] */
function clockAt(nowMs = NOW_MS) {
  const clock = { nowMs, now: () => clock.nowMs };
  return clock;
}

test('a session is forgotten after 5 minutes, or when its token expires', async () => {
  const clock = clockAt();
  const tokens = await tokensWith({ secret: SECRET }, { now: clock.now, rules: { audience: '' } });
  const long = await sign({ mercure: {} });
  const short = await sign({ mercure: {}, exp: NOW_S + 10 });
  const first = await known(tokens, long);
  await known(tokens, short);
  clock.nowMs += 9000;
  assert.equal(await refusalOf(tokens, short), '');
  clock.nowMs += 1000;
  assert.match(await refusalOf(tokens, short), /expired/);
  clock.nowMs += 289_000;
  assert.equal(tokens.verify(long), first);
  clock.nowMs += 1000;
  assert.notEqual(tokens.verify(long), first);
});

test('a bad signature is remembered for 10 seconds', async () => {
  const clock = clockAt();
  const { pem, jwk } = await keyPair('ES256');
  const other = await keyPair('ES256', 'two');
  const tokens = await tokensWith({ subscriberKey: pem }, { now: clock.now, rules: { audience: '' } });
  const header = { kid: jwk.kid };
  const token = await sign({ mercure: {} }, { key: other.privateKey, alg: 'ES256', header });
  for (let i = 0; i < 2; i++) await assert.rejects(async () => tokens.verify(token), /signature/);
  assert.throws(() => tokens.verify(token), /signature/, 'at once');
  clock.nowMs += 10_000;
  const again = tokens.verify(token);
  assert.ok(again instanceof Promise);
  await assert.rejects(again, /signature/);
});

test('sessions take a bounded amount of memory, and those in use stay', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { mostBytes: 20_000, rules: { audience: '' } });
  const kept = await sign({ mercure: { subscribe: ['kept'] } });
  const session = await known(tokens, kept);
  for (let i = 0; i < 500; i++) {
    await known(tokens, await sign({ mercure: { subscribe: [`topic-${i}`] } }));
    assert.ok(tokens.sessions.bytes <= 20_000);
    assert.equal(tokens.verify(kept), session);
  }
  assert.ok(tokens.sessions.size > 20 && tokens.sessions.size < 100, String(tokens.sessions.size));
});

test('bad tokens take a bounded amount of memory, and displace no good ones', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { rules: { audience: '' } });
  const good = await sign({ mercure: {} });
  const session = await known(tokens, good);
  const signed = unsigned({ alg: 'HS256' }, { mercure: {} });
  for (let i = 0; i < 40_000; i++) {
    const bad = signed + Buffer.from(`signature ${i >> 1}`).toString('base64url'); // each twice
    assert.throws(() => tokens.verify(bad), TokenError);
  }
  assert.ok(tokens.failures.size > 1000);
  assert.ok(tokens.failures.bytes <= 1_048_576);
  assert.ok(tokens.failures.size < 10_000);
  assert.equal(tokens.verify(good), session);
});

test('tokens of a subject, or with an id, are forgotten when they are revoked', async () => {
  const tokens = await tokensWith({ secret: SECRET }, { rules: { audience: '' } });
  const made = [{ sub: 'a' }, { sub: 'b', jti: '1' }, { sub: 'b', jti: '2' }, {}];
  const all = await Promise.all(made.map((claims) => sign({ mercure: {}, ...claims })));
  const before = await Promise.all(all.map((token) => known(tokens, token)));
  const kept = () => all.map((token, i) => tokens.verify(token) === before[i]);
  tokens.forget({ subject: 'c', tokenId: '3' });
  tokens.forget({});
  assert.deepEqual(kept(), [true, true, true, true]);
  tokens.forget({ subject: 'a' });
  tokens.forget({ tokenId: '2' });
  assert.equal(tokens.sessions.size, 2);
  assert.deepEqual(kept(), [false, true, false, true]);
});

test('what was verified before a revocation is not remembered after it', async () => {
  const { privateKey, pem } = await keyPair('ES256');
  const tokens = await tokensWith({ subscriberKey: pem });
  const token = await sign(SUBSCRIBE_X, { key: privateKey, alg: 'ES256', header: AT_JWT });
  await tokens.verify(token);
  const session = tokens.verify(token);
  tokens.forget({ subject: 'a' });
  assert.equal((await session).key, '=x');
  assert.equal(tokens.sessions.size, 0);
});

test('when too many tokens wait for verification, others are told to come back', async () => {
  const { privateKey, pem } = await keyPair('RS256');
  const signatures = new Signatures(1);
  const tokens = await tokensWith({ subscriberKey: pem }, { signatures, mostQueuedBytes: 3200 });
  const signed = await Promise.all(
    [1, 2, 3, 4].map((n) => sign({ ...SUBSCRIBE_X, n }, { key: privateKey, alg: 'RS256', header: AT_JWT })),
  );
  const results = await Promise.allSettled(signed.map(async (token) => tokens.verify(token)));
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected'],
  );
  assert.ok(/** @type {PromiseRejectedResult} */ (results[3]).reason instanceof BusyError);
  const { running, waiting } = signatures;
  assert.deepEqual([running, waiting.length, tokens.pending.size, tokens.queued.bytes], [0, 0, 0, 0]);
  assert.equal(await refusalOf(tokens, signed[3]), '', 'being busy is not remembered');
});

test('thousands of tokens that arrive together are all verified, in order', async () => {
  const { privateKey, pem } = await keyPair('RS256');
  const signatures = new Signatures(1);
  const { fixed } = await openKeys({ subscriberKey: pem });
  const token = await sign(SUBSCRIBE_X, { key: privateKey, alg: 'RS256', header: AT_JWT });
  const { signed, signature } = parseJws(token);
  /** @type {number[]} */
  const order = [];
  const all = Array.from({ length: 4000 }, (_, i) =>
    signatures.verify(fixed[0], signed, signature).then((isValid) => isValid && order.push(i)),
  );
  await Promise.all(all);
  assert.equal(order.length, 4000);
  assert.ok(order.every((n, i) => n === i));
  assert.deepEqual([signatures.running, signatures.waiting.length, signatures.first], [0, 0, 0]);
});

test('a signature of any length is refused without an error of the pool', async () => {
  for (const alg of PUBLIC) {
    const { pem } = await keyPair(alg);
    const tokens = await tokensWith({ subscriberKey: pem });
    for (const bytes of [1, 63, 64, 65, 256, 1000]) {
      const token = unsigned(
        { alg, typ: 'at+jwt' },
        SUBSCRIBE_X,
        Buffer.alloc(bytes, 1).toString('base64url'),
      );
      assert.match(await refusalOf(tokens, token), /signature/);
    }
  }
});

test('a bad grant of a valid token is remembered like a bad signature', async () => {
  const tokens = await tokensWith({ secret: SECRET });
  const claims = { ...SUBSCRIBE_X, authorization_details: [{ type: DETAIL }] };
  const token = await sign(claims, { header: AT_JWT });
  for (let i = 0; i < 2; i++) assert.match(await refusalOf(tokens, token), /authorization_details/);
  assert.equal(tokens.failures.size, 1);
});

test('without any key every token is refused', async () => {
  const keys = await openKeys({});
  assert.deepEqual([keys.exist, keys.canPublish], [false, false]);
  const tokens = await tokensWith(keys);
  assert.match(await refusalOf(tokens, await sign(SUBSCRIBE_X, { header: AT_JWT })), /signature/);
});
