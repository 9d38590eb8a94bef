/*
 * What is remembered about requests for streams.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Session } from '../hub/access/grants.js';
import { Subscribers } from '../hub/subscribers.js';

const SESSION = new Session(
  { publish: [], subscribe: [], details: [] },
  { dialect: 'draft', expiresAtMs: Number.POSITIVE_INFINITY, subject: 0, token: 0, audiences: null },
);
const request = (/** @type {string} */ method) => ({ method, target: '/hub?match=a', headers: {} });

/** Subscribers of a hub whose tokens take a while. */
function slowHub() {
  const hub = {
    rules: { baseUrl: 'http://localhost/hub', isLegacyAllowed: true, mostSelectors: 100 },
    access: { version: 0, isAnonymousAllowed: false },
    checked: 0,
    accessTo: async () => {
      hub.checked++;
      return SESSION;
    },
    corsOf: () => ({}),
    core: { placeOf: (/** @type {unknown} */ _, /** @type {unknown} */ session) => ({ session }) },
  };
  return { hub, subscribers: new Subscribers(/** @type {any} */ (hub)) };
}

test('a head is worked out once', async () => {
  const { hub, subscribers } = slowHub();
  const head = request('GET');
  const first = await subscribers.of(head);
  assert.equal(await subscribers.of(head), first);
  assert.equal(hub.checked, 1);
});

test('a token that was revoked while it was being verified is verified again', async () => {
  const { hub, subscribers } = slowHub();
  const head = request('GET');
  const first = subscribers.of(head);
  hub.access.version++;
  await first;
  await subscribers.of(head);
  assert.equal(hub.checked, 2);
});

test('a request of node:http, whose headers nobody shares, is not remembered', async () => {
  const { subscribers } = slowHub();
  await subscribers.find(request('GET'));
  await subscribers.find(request('QUERY'), []);
  assert.equal(subscribers.known.size, 0);
});
