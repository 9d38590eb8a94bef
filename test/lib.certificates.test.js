/*
 * Certificates and keys, as PEM.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { invalidity, readPair } from '../lib/certificates.js';
import { makeCertificate, NEEDS_OPENSSL, openssl } from './helpers/certificates.js';

const DAY_MS = 86_400_000;
const NAMES = { chainName: 'cert', keyName: 'key' };

describe('a certificate', NEEDS_OPENSSL, () => {
  test('has names and times', (t) => {
    const { cert, key } = makeCertificate(t, { names: ['a.example', '*.b.example'], days: 10 }).read();
    const { problem, facts } = readPair({ chain: cert, key, ...NAMES });
    assert.equal(problem, '');
    assert.equal(facts?.names, 'localhost, a.example, *.b.example, 127.0.0.1, 0:0:0:0:0:0:0:1');
    assert.equal(((facts?.expiresMs ?? 0) - (facts?.startsMs ?? 0)) / DAY_MS, 10);
  });

  test('may be followed by others', (t) => {
    const [own, other] = [makeCertificate(t).read(), makeCertificate(t, { names: ['other.example'] }).read()];
    const problemOf = (/** @type {string} */ chain) => readPair({ chain, key: own.key, ...NAMES }).problem;
    assert.equal(problemOf(own.cert + other.cert), '');
    assert.match(
      problemOf(other.cert + own.cert),
      /the first certificate of the file must be that of the key/,
    );
  });

  test('may have a key in an older form, unless that is encrypted', (t) => {
    const pair = makeCertificate(t);
    const { cert: chain } = pair.read();
    const problemOf = (/** @type {string[]} */ ...how) =>
      readPair({ chain, key: openssl('ec', '-in', pair.key, ...how), ...NAMES }).problem;
    assert.equal(problemOf(), '');
    assert.match(problemOf('-aes128', '-passout', 'pass:secret'), /^key is encrypted, /);
  });

  test('is valid from its start to its end', () => {
    const facts = { names: '', startsMs: 1000, expiresMs: 2000 };
    assert.match(invalidity(facts, 999), /^is valid only from 1970-01-01T00:00:01\.000Z/);
    assert.equal(invalidity(facts, 1000), '');
    assert.equal(invalidity(facts, 1999), '');
    assert.equal(invalidity(facts, 2000), 'expired at 1970-01-01T00:00:02.000Z');
  });
});
