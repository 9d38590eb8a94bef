import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draftGrants, labelOf, legacyGrants, mayPublish, Session } from '../hub/access/grants.js';
import { TokenError } from '../hub/access/refusals.js';
import { DETAIL, HUB } from './helpers/tokens.js';

/** @param {import('../hub/access/grants.js').Grants} grants */
const sessionWith = (grants) =>
  new Session(grants, {
    dialect: 'draft',
    expiresAtMs: Number.POSITIVE_INFINITY,
    subject: 0,
    token: 0,
    audiences: null,
  });

/** @param {...object} details of ours @returns {Session} */
const draft = (...details) =>
  sessionWith(
    draftGrants(
      details.map((one) => ({ type: DETAIL, ...one })),
      HUB,
    ),
  );

/** @param {unknown} claim @returns {Session} */
const legacy = (claim) => sessionWith(legacyGrants({ mercure: claim }, HUB));

/** @param {readonly { key: string }[]} selectors */
const keysOf = (selectors) => selectors.map(({ key }) => key);

const X = { match: 'x' };

test('each action of a detail is granted for all of its topics, and no other', () => {
  const session = draft(
    { actions: ['publish'], topics: [{ match: 'p' }] },
    {
      actions: ['subscribe'],
      topics: [{ match: 's' }, { match: 'https://h/:id', match_type: 'urlpattern' }],
    },
    { actions: ['subscribe', 'publish'], topics: [{ match: 'both', match_type: 'exact' }] },
  );
  assert.deepEqual(keysOf(session.publish), ['=p', '=both']);
  assert.deepEqual(keysOf(session.subscribe), ['=s', '~https://h/:id', '=both']);
});

test('publishing needs a grant for every topic', () => {
  const session = draft({ actions: ['publish'], topics: [{ match: 'a' }, { match: 'b' }] });
  assert.equal(mayPublish(session, ['a']), true);
  assert.equal(mayPublish(session, ['a', 'b']), true);
  assert.equal(mayPublish(session, ['a', 'c']), false);
  assert.equal(mayPublish(draft({ actions: ['subscribe'], topics: [{ match: '*' }] }), ['a']), false);
  assert.equal(mayPublish(draft({ actions: ['publish'], topics: [{ match: '*' }] }), ['a', 'c']), true);
});

test('a token without details, or only with those of others, grants nothing', () => {
  for (const details of [undefined, [], [{ type: 'mercure', topics: 'odd' }, { type: 7 }, {}]]) {
    const { publish, subscribe } = draftGrants(details, HUB);
    assert.deepEqual([publish, subscribe], [[], []]);
  }
});

test('an action that we do not know grants nothing, and is no error', () => {
  const session = draft({ actions: ['delete'], topics: [X] }, { actions: ['x', 'subscribe'], topics: [X] });
  assert.deepEqual([keysOf(session.publish), keysOf(session.subscribe)], [[], ['=x']]);
});

const actions = ['subscribe'];
/** @type {Record<string, unknown>} */
const BAD_DETAILS = {
  'no actions': { topics: [X] },
  'empty actions': { actions: [], topics: [X] },
  'actions that are no list': { actions: 'subscribe', topics: [X] },
  'an action that is no text': { actions: ['subscribe', 1], topics: [X] },
  'no topics': { actions },
  'empty topics': { actions, topics: [] },
  'topics that are no list': { actions, topics: { match: 'x' } },
  'a topic that is a bare text': { actions, topics: ['x'] },
  'a topic that is null': { actions, topics: [null] },
  'a topic that is a list': { actions, topics: [['x']] },
  'no match': { actions, topics: [{}] },
  'an empty match': { actions, topics: [{ match: '' }] },
  'a match that is no text': { actions, topics: [{ match: 1 }] },
  'a match that is too long': { actions, topics: [{ match: 'x'.repeat(4097) }] },
  'a match with a line break': { actions, topics: [{ match: 'a\nb' }] },
  "a match with a character that can't be seen": { actions, topics: [{ match: 'a\u200bb' }] },
  'a URL pattern that is none': { actions, topics: [{ match: 'https://h/(', match_type: 'urlpattern' }] },
  'a matcher type that we do not know': { actions, topics: [{ match: 'x', match_type: 'regexp' }] },
  'a matcher type in other letters': { actions, topics: [{ match: 'x', match_type: 'Exact' }] },
  'the template of 0.x': { actions, topics: [{ match: 'x', match_type: 'template' }] },
  'a matcher type that is null': { actions, topics: [{ match: 'x', match_type: null }] },
  'a matcher type of every object': { actions, topics: [{ match: 'x', match_type: 'constructor' }] },
  'a payload that is no object': { actions, topics: [X], payload: 'text' },
  'a payload that is a list': { actions, topics: [X], payload: [] },
  'a bad payload where it has no meaning': { actions: ['publish'], topics: [X], payload: 1 },
};

for (const [what, detail] of Object.entries(BAD_DETAILS)) {
  test(`one bad detail makes the whole token invalid: ${what}`, () => {
    const good = { actions: ['subscribe', 'publish'], topics: [X] };
    assert.throws(() => draft(good, /** @type {object} */ (detail), good), TokenError);
  });
}

test('authorization_details must be a list of objects', () => {
  for (const details of [null, {}, 'text', [null], ['text'], [[]]])
    assert.throws(() => draftGrants(details, HUB), TokenError);
});

test('a token has at most 100 details of ours, and 100 topics in all of them, before any is compiled', () => {
  const detail = { type: DETAIL, actions, topics: [X] };
  const other = { type: 'other', topics: Array(1000).fill(X) };
  assert.equal(draftGrants([...Array(100).fill(detail), other], HUB).subscribe.length, 1);
  const bad = { ...detail, topics: [{ match: 'https://[', match_type: 'urlpattern' }] };
  assert.throws(() => draftGrants(Array(101).fill(bad), HUB), /more than 100/);
  const wide = { ...detail, topics: Array(51).fill(bad.topics[0]) };
  assert.throws(() => draftGrants([wide, wide], HUB), /more than 100/);
});

test('the payload is that of the first detail with subscribe whose topics match the text of the selector', () => {
  const session = draft(
    { actions: ['publish'], topics: [{ match: 'a' }], payload: { n: 0 } },
    { actions, topics: [{ match: 'a' }, { match: 'b' }], payload: { n: 1 } },
    { actions, topics: [{ match: 'c' }] },
    { actions, topics: [{ match: '*' }], payload: { n: 2 } },
  );
  const payloads = ['a', 'b', 'c', 'd'].map((value) => session.payload({ value }));
  assert.deepEqual(payloads, [{ n: 1 }, { n: 1 }, undefined, { n: 2 }]);
  assert.deepEqual(draft({ actions, topics: [X] }).payload({ value: 'x' }), undefined);
});

test('the claim of 0.x has lists of topics and templates, and one payload for all subscriptions', () => {
  const session = legacy({ publish: ['p', '*'], subscribe: ['https://h/{id}', 'x', 'x'], payload: { n: 1 } });
  assert.deepEqual(keysOf(session.publish), ['=p', '*']);
  assert.deepEqual(keysOf(session.subscribe), ['%https://h/{id}', '=x']);
  assert.deepEqual(session.payload({ value: 'anything' }), { n: 1 });
  assert.equal(legacy({ payload: 'text' }).payload({ value: 'x' }), 'text');
});

test('the lists of 0.x may be missing or null, and the whole claim may be the empty list that PHP writes', () => {
  for (const claim of [{}, [], { publish: null, subscribe: null }, { publish: [], payload: null }]) {
    const { publish, subscribe, details } = legacy(claim);
    assert.deepEqual([publish, subscribe, details], [[], [], []]);
  }
});

test('the namespaced claim of 0.x wins over the short one', () => {
  const claims = { 'https://mercure.rocks/': { publish: ['a'] }, mercure: { publish: ['b'] } };
  assert.deepEqual(keysOf(legacyGrants(claims, HUB).publish), ['=a']);
});

test('a malformed claim of 0.x makes the token invalid', () => {
  const bad = [null, 'text', ['x'], { publish: 'x' }, { subscribe: {} }, { publish: [1] }, { publish: [''] }];
  const more = [{ subscribe: ['a\nb'] }, { subscribe: [{ match: 'x' }] }, { publish: Array(101).fill('x') }];
  for (const claim of [...bad, ...more])
    assert.throws(() => legacy(claim), TokenError, JSON.stringify(claim));
});

test('the key of a session depends on what it may read, and on nothing else', () => {
  const one = draft({ actions, topics: [{ match: 'a' }, { match: 'b' }] });
  const same = draft(
    { actions: ['publish'], topics: [{ match: 'z' }] },
    { actions, topics: [{ match: 'b' }], payload: { n: 1 } },
    { actions, topics: [{ match: 'a' }, { match: 'b' }] },
  );
  assert.equal(one.key, same.key);
  const others = [
    draft({ actions, topics: [{ match: 'a' }] }),
    draft({ actions, topics: [{ match: 'b' }] }),
    draft({ actions, topics: [{ match: 'a' }, { match: 'b', match_type: 'urlpattern' }] }),
    draft({ actions, topics: [{ match: 'a,b' }] }),
    draft({ actions: ['publish'], topics: [{ match: 'a' }] }),
  ];
  assert.equal(new Set([one, ...others].map(({ key }) => key)).size, 6);
  assert.equal(others[4].key, '');
});

test('labels are small positive numbers, the same for the same text', () => {
  assert.equal(labelOf('user-1'), labelOf('user-1'));
  assert.equal(labelOf(''), 0);
  const labels = Array.from({ length: 1000 }, (_, i) => labelOf(`user-${i}`));
  assert.equal(new Set(labels).size, 1000);
  assert.ok(labels.every((label) => Number.isInteger(label) && label > 0 && label < 2 ** 31));
});
