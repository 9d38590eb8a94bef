import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayPublish } from '../hub/access/grants.js';
import { Access, COOKIE } from '../hub/access/index.js';
import { AccessError } from '../hub/access/refusals.js';
import {
  AT_JWT,
  DETAIL,
  draftClaims,
  HUB,
  jwksServer,
  keyPair,
  SECRET,
  sign,
  unsigned,
} from './helpers/tokens.js';

const PATH = '/.well-known/mercure';
const PAGE = 'https://app.example.com';
const METADATA = `resource_metadata="https://hub.example.com/.well-known/oauth-protected-resource${PATH}"`;
const SIGNATURE = Buffer.alloc(32, 1).toString('base64url');

/** @typedef {import('../hub/access/index.js').Request} Request */

/** @param {Partial<Omit<import('../hub/access/index.js').Options, 'baseUrl'>>} [options] */
const open = ({ jwt, ...options } = {}) =>
  Access.open({
    hubPath: PATH,
    baseUrl: HUB,
    publishOrigins: [PAGE],
    ...options,
    jwt: { secret: SECRET, audience: HUB, ...jwt },
  });

/** @param {Partial<Request>} request @returns {Request} */
const request = ({ headers, ...rest }) => ({
  method: 'GET',
  query: [],
  address: '192.0.2.1',
  ...rest,
  headers: { host: 'hub.example.com', ...headers },
});

/**
 * @param {Access} access @param {Partial<Request>} given @param {string} [topic] to publish to, as the hub does it
 * @returns {Promise<{ status: number, challenge?: string }>} 200 if it is let in
 */
async function outcomeOf(access, given, topic) {
  const complete = request(given);
  try {
    if (topic === undefined) await access.sessionOf(complete);
    else {
      const session = await access.publisherOf(complete);
      if (!mayPublish(session, [topic])) throw access.insufficient(complete, session);
    }
    return { status: 200 };
  } catch (error) {
    assert.ok(error instanceof AccessError, String(error));
    return { status: error.status, challenge: error.headers['WWW-Authenticate'] };
  }
}

const draft = await sign(draftClaims({ publish: [{ match: 'p' }], subscribe: [{ match: 's' }] }), {
  header: AT_JWT,
});
const claims = draftClaims();
const legacy = await sign({ mercure: { publish: ['p'], subscribe: ['s'] }, aud: HUB });
const expired = await sign({ ...claims, exp: 1 }, { header: AT_JWT });
const foreign = await sign({ ...claims, aud: 'https://other.example' }, { header: AT_JWT });
const idToken = await sign(claims, { header: { typ: 'JWT' } });
const badDetail = await sign({ ...claims, authorization_details: [{ type: DETAIL }] }, { header: AT_JWT });
const badLegacy = await sign({ mercure: { publish: 'p' }, aud: HUB });
const tampered = `${draft.slice(0, draft.lastIndexOf('.'))}.${SIGNATURE}`;

const bearer = (/** @type {string} */ token) => ({ authorization: `Bearer ${token}` });
const cookie = (/** @type {string} */ token, name = COOKIE) => ({ cookie: `a=b; ${name}=${token}; c=d` });
const query = (/** @type {string[]} */ ...tokens) =>
  tokens.map((token) => /** @type {[string, string]} */ (['authorization', token]));

/**
 * The table of research: `error` of the challenge; '' for one without an error, null for none.
 * @typedef {[what: string, request: Partial<Request>, topic: string | undefined, status: number, error: string | null]} Row
 */

const GET = { method: 'GET' };
const POST = { method: 'POST' };
const DRAFT = /** @type {const} */ ({ dialect: 'draft' });
const LEGACY = /** @type {const} */ ({ dialect: 'legacy' });

/** @type {Row[]} */
// biome-ignore format: a table reads best with one row per line
const TABLE = [
  ['subscribe, no token', { ...GET, ...DRAFT }, undefined, 401, ''],
  ['subscribe, no token, 0.x', { ...GET, ...LEGACY }, undefined, 401, ''],
  ['publish, no token', POST, 'p', 401, ''],
  ['subscribe, draft-08', { ...GET, ...DRAFT, headers: bearer(draft) }, undefined, 200, null],
  ['subscribe, 0.x', { ...GET, ...LEGACY, headers: bearer(legacy) }, undefined, 200, null],
  ['subscribe in draft-08 with a token of 0.x', { ...GET, ...DRAFT, headers: bearer(legacy) }, undefined, 200, null],
  ['subscribe in 0.x with a token of draft-08', { ...GET, ...LEGACY, headers: bearer(draft) }, undefined, 200, null],
  ['HEAD', { method: 'HEAD', ...DRAFT, headers: bearer(draft) }, undefined, 200, null],
  ['QUERY', { method: 'QUERY', ...DRAFT, headers: bearer(draft) }, undefined, 200, null],
  ['publish, draft-08', { ...POST, headers: bearer(draft) }, 'p', 200, null],
  ['publish, 0.x', { ...POST, headers: bearer(legacy) }, 'p', 200, null],
  ['publish, not granted, draft-08', { ...POST, headers: bearer(draft) }, 's', 403, 'insufficient_scope'],
  ['publish, not granted, 0.x', { ...POST, headers: bearer(legacy) }, 's', 401, 'insufficient_scope'],
  ['publish, token grants nothing', { ...POST, headers: bearer(await sign(claims, { header: AT_JWT })) }, 'p', 403, 'insufficient_scope'],
  ['publish, no authorization_details', { ...POST, headers: bearer(await sign({ ...claims, authorization_details: undefined }, { header: AT_JWT })) }, 'p', 403, 'insufficient_scope'],
  ['the scheme in any case', { ...GET, headers: { authorization: `bEaReR ${draft}` } }, undefined, 200, null],
  ['two spaces after the scheme', { ...GET, headers: { authorization: `Bearer  ${draft}` } }, undefined, 200, null],
  ['another scheme', { ...GET, headers: { authorization: 'Basic dXNlcjpwYXNz' } }, undefined, 400, 'invalid_request'],
  ['another scheme, publish', { ...POST, headers: { authorization: 'Basic dXNlcjpwYXNz' } }, 'p', 400, 'invalid_request'],
  ['two Authorization headers', { ...GET, headers: { authorization: `Bearer ${draft}, Bearer ${draft}` } }, undefined, 400, 'invalid_request'],
  ['an empty Authorization header', { ...GET, headers: { authorization: '' } }, undefined, 400, 'invalid_request'],
  ['a scheme without a token', { ...GET, headers: { authorization: 'Bearer ' } }, undefined, 400, 'invalid_request'],
  ['only the scheme', { ...GET, headers: { authorization: 'Bearer' } }, undefined, 400, 'invalid_request'],
  ['two tokens', { ...GET, headers: { authorization: `Bearer ${draft} ${draft}` } }, undefined, 400, 'invalid_request'],
  ['two tokens, joined by a proxy', { ...GET, headers: { authorization: `Bearer ${draft},${draft}` } }, undefined, 400, 'invalid_request'],
  ['a bad token', { ...GET, headers: bearer('x.y.z') }, undefined, 401, 'invalid_token'],
  ['a bad signature', { ...GET, headers: bearer(tampered) }, undefined, 401, 'invalid_token'],
  ['a bad signature, publish', { ...POST, headers: bearer(tampered) }, 'p', 401, 'invalid_token'],
  ['alg none', { ...GET, headers: bearer(unsigned({ alg: 'none', typ: 'at+jwt' }, claims, SIGNATURE)) }, undefined, 401, 'invalid_token'],
  ['expired', { ...GET, headers: bearer(expired) }, undefined, 401, 'invalid_token'],
  ['for another audience', { ...GET, headers: bearer(foreign) }, undefined, 401, 'invalid_token'],
  ['an ID token', { ...GET, headers: bearer(idToken) }, undefined, 401, 'invalid_token'],
  ['a bad detail', { ...GET, headers: bearer(badDetail) }, undefined, 401, 'invalid_token'],
  ['a bad claim of 0.x', { ...GET, ...LEGACY, headers: bearer(badLegacy) }, undefined, 401, 'invalid_token'],
  ['the cookie', { ...GET, ...DRAFT, headers: cookie(draft) }, undefined, 200, null],
  ['the cookie in quotes', { ...GET, ...DRAFT, headers: cookie(`"${draft}"`) }, undefined, 200, null],
  ['the cookie, 0.x', { ...GET, ...LEGACY, headers: cookie(legacy, 'mercureAuthorization') }, undefined, 200, null],
  ['the cookie of 0.x in draft-08', { ...GET, ...DRAFT, headers: cookie(legacy, 'mercureAuthorization') }, undefined, 401, ''],
  ['the cookie of draft-08 in 0.x', { ...GET, ...LEGACY, headers: cookie(draft) }, undefined, 200, null],
  ['a cookie whose name only ends like ours', { ...GET, headers: cookie(draft, `x${COOKIE}`) }, undefined, 401, ''],
  ['an empty cookie', { ...GET, headers: cookie('') }, undefined, 401, ''],
  ['a bad cookie', { ...GET, headers: cookie('x') }, undefined, 401, 'invalid_token'],
  ['the header wins over the cookie', { ...GET, headers: { ...bearer(draft), ...cookie('x') } }, undefined, 200, null],
  ['also if it is the bad one', { ...GET, headers: { ...bearer('x'), ...cookie(draft) } }, undefined, 401, 'invalid_token'],
  ['and if it is malformed', { ...GET, headers: { authorization: 'Basic x', ...cookie(draft) } }, undefined, 400, 'invalid_request'],
  ['the query, 0.x', { ...GET, ...LEGACY, query: query(legacy) }, undefined, 200, null],
  ['the query, publish', { ...POST, query: query(legacy) }, 'p', 200, null],
  ['the query in draft-08', { ...GET, ...DRAFT, query: query(draft) }, undefined, 401, ''],
  ['access_token in the query', { ...GET, ...LEGACY, query: [['access_token', legacy]] }, undefined, 401, ''],
  ['the query twice', { ...GET, ...LEGACY, query: query(legacy, legacy) }, undefined, 400, 'invalid_request'],
  ['the query, empty', { ...GET, ...LEGACY, query: query('') }, undefined, 400, 'invalid_request'],
  ['the header wins over the query', { ...GET, ...LEGACY, headers: bearer('x'), query: query(legacy) }, undefined, 401, 'invalid_token'],
  ['the query wins over the cookie', { ...GET, ...LEGACY, headers: cookie('x'), query: query(legacy) }, undefined, 200, null],
  ['publish with the cookie, from a page on the list', { ...POST, headers: { ...cookie(draft), origin: PAGE } }, 'p', 200, null],
  ['publish with the cookie, from another page', { ...POST, headers: { ...cookie(draft), origin: 'https://evil.example' } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, without Origin', { ...POST, headers: cookie(draft) }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, Origin null', { ...POST, headers: { ...cookie(draft), origin: 'null' } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, Referer on the list', { ...POST, headers: { ...cookie(draft), referer: `${PAGE}/page?x#y` } }, 'p', 200, null],
  ['publish with the cookie, another Referer', { ...POST, headers: { ...cookie(draft), referer: `https://evil.example/${PAGE}` } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, a Referer that is none', { ...POST, headers: { ...cookie(draft), referer: PAGE.slice(8) } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, Origin wins over Referer', { ...POST, headers: { ...cookie(draft), origin: 'https://evil.example', referer: `${PAGE}/` } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie, an empty Origin', { ...POST, headers: { ...cookie(draft), origin: '', referer: `${PAGE}/` } }, 'p', 400, 'invalid_request'],
  ['publish with the cookie of 0.x, from another page', { ...POST, headers: { ...cookie(legacy, 'mercureAuthorization'), origin: 'https://evil.example' } }, 'p', 400, 'invalid_request'],
  ['publish with the header, from any page', { ...POST, headers: { ...bearer(draft), origin: 'https://evil.example' } }, 'p', 200, null],
  ['subscribe with the cookie, from any page', { ...GET, headers: { ...cookie(draft), origin: 'https://evil.example' } }, undefined, 200, null],
  ['a method that we don\'t know counts as publishing', { method: 'PATCH', headers: cookie(draft) }, undefined, 400, 'invalid_request'],
];

const table = await open();

for (const [what, given, topic, status, error] of TABLE) {
  test(`${what}: ${status}${error ? ` ${error}` : ''}`, async () => {
    const outcome = await outcomeOf(table, given, topic);
    const challenge = error === null ? undefined : `Bearer ${error && `error="${error}", `}${METADATA}`;
    assert.deepEqual(outcome, status === 200 ? { status } : { status, challenge });
  });
}

test('with --mercure-legacy off, tokens and spellings of 0.x are refused', async () => {
  const access = await open({ isLegacyAllowed: false });
  assert.equal((await outcomeOf(access, { headers: bearer(draft) })).status, 200);
  assert.equal((await outcomeOf(access, { headers: bearer(legacy) })).status, 401);
  assert.equal((await outcomeOf(access, { ...LEGACY, headers: bearer(legacy) })).status, 401);
  for (const token of [draft, legacy]) {
    assert.deepEqual(
      await outcomeOf(access, { ...LEGACY, query: query(token) }),
      await outcomeOf(access, {}),
    );
    const old = { ...LEGACY, headers: cookie(token, 'mercureAuthorization') };
    assert.deepEqual(await outcomeOf(access, old), await outcomeOf(access, {}));
  }
});

test('with * every page may publish with the cookie, but not a request of no page', async () => {
  const access = await open({ publishOrigins: ['*'] });
  const post = (/** @type {object} */ headers) =>
    outcomeOf(access, { ...POST, headers: { ...cookie(draft), ...headers } }, 'p');
  assert.equal((await post({ origin: 'https://any.example' })).status, 200);
  assert.equal((await post({})).status, 400);
});

test('with --anonymous, everybody may subscribe, but not publish, and a bad token is still refused', async () => {
  const access = await open({ isAnonymousAllowed: true });
  assert.equal(await access.sessionOf(request({})), null);
  assert.equal((await outcomeOf(access, POST, 'p')).status, 401);
  assert.equal((await outcomeOf(access, { headers: bearer('x') })).status, 401);
  assert.equal((await outcomeOf(access, { headers: cookie('x') })).status, 401);
});

test('without it, only somebody on this machine needs no token', async () => {
  const access = await open();
  const here = { address: '127.0.0.1', headers: { host: 'localhost:8888' } };
  /** @type {[Partial<Request>, number][]} */
  const cases = [
    [here, 200],
    [{ ...here, headers: { host: '127.0.0.1:8888' } }, 200],
    [{ address: '::1', headers: { host: '[::1]:8888' } }, 200],
    [{ ...here, address: '192.0.2.1' }, 401],
    [{ ...here, address: '' }, 401],
    [{ ...here, address: undefined }, 401],
    [{ ...here, headers: { host: 'hub.example.com' } }, 401],
    [{ ...here, headers: { host: 'localhost.example.com' } }, 401],
    [{ ...here, headers: { host: 'localhost:8888', 'x-forwarded-for': '192.0.2.1' } }, 401],
    [{ ...here, headers: { host: 'localhost:8888', forwarded: 'for=192.0.2.1' } }, 401],
    [{ ...here, headers: { host: 'localhost:8888', 'x-real-ip': '192.0.2.1' } }, 401],
    [{ ...here, headers: { host: 'localhost:8888', via: '1.1 proxy' } }, 401],
    [{ ...here, method: 'POST' }, 401],
  ];
  for (const [given, status] of cases)
    assert.equal((await outcomeOf(access, given)).status, status, JSON.stringify(given));
});

test('without a fixed audience, draft-08 needs the URL of the hub at the Host of the request', async () => {
  const access = await open({ jwt: { audience: '' } });
  /** @type {[string, unknown, number][]} */
  const cases = [
    ['hub.example.com', HUB, 200],
    ['Hub.Example.com', HUB, 200],
    ['hub.example.com', ['x', HUB], 200],
    ['hub.example.com', HUB.replace('https', 'http'), 200],
    ['hub.example.com:8443', HUB, 401],
    ['hub.example.com:8443', HUB.replace('.com', '.com:8443'), 200],
    ['other.example.com', HUB, 401],
    ['hub.example.com', 'https://hub.example.com', 401],
    ['hub.example.com/.well-known/mercure#', HUB, 401],
    ['', HUB, 401],
    ['a b', 'https://a b/.well-known/mercure', 401],
  ];
  for (const [host, aud, status] of cases) {
    const headers = { ...bearer(await sign({ ...claims, aud }, { header: AT_JWT })), host };
    assert.equal((await outcomeOf(access, { headers })).status, status, `${host} ${aud}`);
  }
  const old = await sign({ mercure: {} });
  assert.equal((await outcomeOf(access, { headers: { ...bearer(old), host: 'any' } })).status, 200);
});

test('a token that is known is still compared with the Host of each request', async () => {
  const access = await open({ jwt: { audience: '' } });
  for (let i = 0; i < 3; i++) assert.equal((await outcomeOf(access, { headers: bearer(draft) })).status, 200);
  assert.equal((await outcomeOf(access, { headers: { ...bearer(draft), host: 'other' } })).status, 401);
  assert.equal((await outcomeOf(access, { headers: bearer(draft) })).status, 200);
});

test('the token of the conformance suite is accepted wherever the hub listens, with its audience fixed', async () => {
  const secret = '!ChangeThisMercureHubJWTSecretKey!';
  const audience = 'https://localhost/.well-known/mercure';
  const everything = [{ type: DETAIL, actions: ['publish', 'subscribe'], topics: [{ match: '*' }] }];
  const suite = {
    iss: 'https://localhost',
    aud: audience,
    exp: 4_102_444_800,
    authorization_details: everything,
  };
  const token = await sign(suite, { key: secret, header: AT_JWT });
  const access = await open({ jwt: { secret, audience, issuer: 'https://localhost' } });
  const headers = { ...bearer(token), host: '127.0.0.1:4711' };
  assert.equal((await outcomeOf(access, { ...POST, headers }, 'https://anything')).status, 200);
});

test('the token of the old conformance suite is accepted without options but the key', async () => {
  const secret = '!ChangeThisMercureHubJWTSecretKey!';
  const token = await sign({ mercure: { publish: ['*'], subscribe: ['*'] } }, { key: secret });
  const access = await open({ jwt: { secret, audience: '' } });
  assert.equal((await outcomeOf(access, { ...POST, headers: bearer(token) }, 'anything')).status, 200);
});

test('the cookie can have another name', async () => {
  const access = await open({ jwt: { cookie: 'token' } });
  assert.equal((await outcomeOf(access, { headers: cookie(draft, 'token') })).status, 200);
  assert.equal((await outcomeOf(access, { headers: cookie(draft) })).status, 401);
  const old = { ...LEGACY, headers: cookie(legacy, 'mercureAuthorization') };
  assert.equal((await outcomeOf(access, old)).status, 200);
});

test('of several cookies with the same name, the first counts', async () => {
  const access = await open();
  const both = (/** @type {string} */ one, /** @type {string} */ other) => ({
    headers: { cookie: `${COOKIE}=${one}; ${COOKIE}=${other}` },
  });
  assert.equal((await outcomeOf(access, both(draft, 'x'))).status, 200);
  assert.equal((await outcomeOf(access, both('x', draft))).status, 401);
});

test('the operator learns why a token was refused, the client does not', async () => {
  /** @type {string[]} */
  const reasons = [];
  const access = await open({ onRefused: (reason) => void reasons.push(reason) });
  /** @type {string[]} */
  const messages = [];
  for (const token of [expired, foreign, tampered, badDetail]) {
    await assert.rejects(
      async () => access.sessionOf(request({ headers: bearer(token) })),
      (error) => messages.push(/** @type {Error} */ (error).message) > 0,
    );
  }
  assert.equal(new Set(messages).size, 1);
  assert.equal(new Set(reasons).size, 4);
  for (const reason of reasons) assert.doesNotMatch(reason, /eyJ|other\.example/);
});

test('without a key, tokens are refused and nobody can publish', async () => {
  const access = await open({ jwt: { secret: '' } });
  assert.deepEqual([access.hasKeys, access.canPublish], [false, false]);
  assert.equal((await outcomeOf(access, { headers: bearer(draft) })).status, 401);
  assert.equal((await outcomeOf(access, { ...POST, headers: bearer(draft) }, 'p')).status, 405);
  assert.throws(() => access.metadata(request({})), { status: 404 });
});

test('without a key for publishing, nobody can', async () => {
  const access = await open({ jwt: { secret: '', subscriberKey: SECRET } });
  assert.equal((await outcomeOf(access, { headers: bearer(draft) })).status, 200);
  assert.equal((await outcomeOf(access, { ...POST, headers: bearer(draft) }, 'p')).status, 405);
});

test("503 while tokens can't be checked", async (t) => {
  const { privateKey } = await keyPair('ES256');
  const jwks = await jwksServer(t, []);
  jwks.close();
  const access = await open({ jwt: { secret: '', jwksUrl: jwks.url } });
  t.after(() => access.close());
  const headers = bearer(await sign(claims, { key: privateKey, alg: 'ES256', header: AT_JWT }));
  assert.equal(access.canPublish, true);
  await assert.rejects(async () => access.sessionOf(request({ headers })), {
    status: 503,
    headers: { 'Retry-After': '1' },
  });
});

test('a token that is known, or for HS256, is answered at once; errors are thrown at once too', async () => {
  const access = await open();
  access.sessionOf(request({ headers: bearer(draft) }));
  const session = access.sessionOf(request({ headers: bearer(draft) }));
  assert.ok(session !== null && !(session instanceof Promise));
  assert.equal(access.sessionOf(request({ headers: bearer(draft) })), session);
  assert.throws(() => access.sessionOf(request({ headers: bearer('x') })), AccessError);
});

test('the version grows when sessions have to be asked for again', async () => {
  const access = await open();
  const { version } = access;
  access.sessionOf(request({ headers: bearer(draft) }));
  assert.equal(access.version, version);
  access.forget({ subject: 'user' });
  assert.ok(access.version > version);
});

test('the metadata says how to get in', async () => {
  const access = await open({ jwt: { issuer: 'https://issuer.example' }, hasSubscriptions: true });
  const { status, headers, body } = access.metadata(request({ headers: { host: 'elsewhere' } }));
  assert.deepEqual([status, headers], [200, { 'Content-Type': 'application/json' }]);
  assert.deepEqual(JSON.parse(body), {
    resource: HUB,
    bearer_methods_supported: ['header'],
    authorization_details_types_supported: [DETAIL],
    mercure_cookie: COOKIE,
    mercure_subscriptions: true,
  });
  assert.equal(access.resource.metadataPath, '/.well-known/oauth-protected-resource/.well-known/mercure');
});

test('the metadata names the issuer only if its keys come from a URL', async (t) => {
  const { url } = await jwksServer(t, []);
  const access = await open({ jwt: { issuer: 'https://issuer.example', jwksUrl: url, cookie: 'c' } });
  t.after(() => access.close());
  const { authorization_servers: servers, ...rest } = JSON.parse(access.metadata(request({})).body);
  assert.deepEqual(
    [servers, rest.mercure_cookie, rest.mercure_subscriptions],
    [['https://issuer.example'], 'c', undefined],
  );
});

test('without a fixed audience, the Host of the request is repeated only if it is one', async () => {
  const access = await open({ jwt: { audience: '' } });
  const documentAt = (/** @type {string} */ host) =>
    JSON.parse(access.metadata(request({ headers: { host } })).body);
  assert.equal(documentAt('hub.example.com:8443').resource, `https://hub.example.com:8443${PATH}`);
  assert.equal(documentAt('localhost:8888').resource, `http://localhost:8888${PATH}`);
  for (const host of ['', 'a"b', 'a b', 'a\r\nb', 'user@host', 'host/path', '[::1', 'a:b']) {
    assert.throws(() => documentAt(host), { status: 404 }, host);
    const { challenge } = await outcomeOf(access, { headers: { host } });
    assert.equal(challenge, 'Bearer', host);
  }
});
