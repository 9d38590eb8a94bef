import assert from 'node:assert/strict';
import { test } from 'node:test';
import { tokenCautions } from '../lib/cautions.js';
import { readConfig } from '../lib/config.js';

const LONG = 'a secret of more than thirty-two bytes';

/** @param {...string} args */
const cautions = (...args) => tokenCautions(readConfig(args, {}).config);

test('options that are fine cause no lines', () => {
  assert.deepEqual(cautions(), []);
  assert.deepEqual(
    cautions('--jwt-secret', LONG, '--jwt-issuer', 'me', '--publish-origins', 'https://a'),
    [],
  );
  assert.deepEqual(cautions('--jwks-url', 'https://a/', '--jwt-audience', 'https://h/'), []);
  assert.deepEqual(
    cautions('--jwks-url', 'http://127.0.0.1:1/', '--jwt-audience', 'x', '--jwt-publisher-key', LONG),
    [],
  );
});

test('a short secret is named by its option and its length, and not shown', () => {
  for (const flag of ['--jwt-secret', '--jwt-publisher-key', '--jwt-subscriber-key']) {
    const [line, ...others] = cautions(flag, 'hunter2');
    assert.match(line, new RegExp(`^${flag} has only 7 bytes: HS256 needs 32`));
    assert.doesNotMatch(line, /hunter2/);
    assert.deepEqual(others, []);
  }
  assert.deepEqual(cautions('--jwt-secret', 'é'.repeat(16)), []);
});

test('every website as an origin that may publish is worth a line', () => {
  assert.match(
    cautions('--jwt-secret', LONG, '--publish-origins', '*')[0],
    /^--publish-origins \*: every website can publish/,
  );
});

test('a JWKS URL should come with an audience, and over https', () => {
  const [exposed, audience] = cautions('--jwks-url', 'http://issuer.example/jwks?key=hunter2');
  assert.match(exposed, /http: someone on the network/);
  assert.match(audience, /without --jwt-audience/);
  assert.doesNotMatch(exposed + audience, /hunter2/);
  for (const host of ['localhost:1', '[::1]', '127.0.0.1'])
    assert.deepEqual(cautions('--jwks-url', `http://${host}/`, '--jwt-audience', 'x'), []);
});

test('options without effect are named', () => {
  const both = ['--jwt-publisher-key', LONG, '--jwt-subscriber-key', LONG];
  assert.match(cautions(...both, '--jwt-secret', LONG)[0], /--jwt-secret has no effect/);
  assert.match(
    cautions(...both, '--jwks-url', 'https://a/', '--jwt-audience', 'x')[0],
    /--jwks-url has no effect/,
  );
  for (const flag of ['--jwt-issuer', '--jwt-audience', '--publish-origins'])
    assert.match(cautions(flag, 'https://a')[0], /no effect without a key/);
});
