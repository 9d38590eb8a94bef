/*
 * Addresses of clients: ranges, and what counts as one client. native/core/src/address.rs has the same tests.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inRanges, isRange, LOOPBACK, plainAddress, siteOf } from '../lib/addresses.js';

test('an address and a range are accepted, and nothing else', () => {
  for (const range of [...LOOPBACK, '10.0.0.0/8', '1.2.3.4', 'fd00::/8', '::/0', '::ffff:10.0.0.0/104'])
    assert.ok(isRange(range), range);
  const others = ['', 'a', '1.2.3', '1.2.3.4/33', '::1/129', '1.2.3.4/', '1.2.3.4/-1', '1.2.3.4/8/8', '/8'];
  for (const text of [...others, '[::1]', 'fe80::1%lo']) assert.ok(!isRange(text), text);
});

test('a range contains the addresses with its first bits', () => {
  const isProxy = inRanges(['127.0.0.0/8', '::1', '10.1.2.3', 'fd00::/8']);
  for (const address of ['127.1.2.3', '::1', '10.1.2.3', 'fdff::1']) assert.ok(isProxy(address), address);
  for (const address of ['128.0.0.1', '::2', '10.1.2.4', 'fe00::', '']) assert.ok(!isProxy(address), address);
});

test('an IPv4 address that is mapped to IPv6 is written as IPv4', () => {
  assert.equal(plainAddress('::ffff:1.2.3.4'), '1.2.3.4');
  for (const address of ['1.2.3.4', '::1', '::ffff:0:1', '']) assert.equal(plainAddress(address), address);
  assert.equal(plainAddress(undefined), '');
});

test('one client is an IPv4 address or a /64 of IPv6, however it is written', () => {
  assert.equal(siteOf('1.2.3.4'), '1.2.3.4');
  assert.equal(siteOf('2001:db8:1:2::1'), siteOf('2001:db8:1:2:ffff:0:0:1'));
  assert.equal(siteOf('2001:db8::1'), siteOf('2001:db8:0:0:1::'));
  assert.equal(siteOf('::1'), '0:0:0:0');
  assert.notEqual(siteOf('2001:db8:1:2::1'), siteOf('2001:db8:1:3::1'));
  assert.notEqual(siteOf('2001:db8:1::1'), siteOf('2001:db8:1:1::1'));
});
