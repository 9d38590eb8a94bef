/*
 * What errors of Node mean for connections and ports.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HoldfastError } from '../lib/errors.js';
import { listenFailure } from '../transport/failures.js';

/** @param {string} code @param {string} host @returns {string} */
const lineOf = (code, host) =>
  String(listenFailure(Object.assign(new Error('listen E'), { code }), host, 80));

test('an error of listen names the address and port, and what is wrong', () => {
  for (const [code, host, line] of [
    ['EADDRINUSE', '', 'port 80: another program is listening there (EADDRINUSE)'],
    ['EADDRINUSE', '::1', '[::1]:80: another program is listening there (EADDRINUSE)'],
    ['EACCES', '127.0.0.1', '127.0.0.1:80: permission denied (ports below 1024 need root) (EACCES)'],
    ['EADDRNOTAVAIL', '192.0.2.1', '192.0.2.1:80: it is not an address of this machine (EADDRNOTAVAIL)'],
    ['ENOTFOUND', 'nowhere', 'nowhere:80: no address is known for this name (ENOTFOUND)'],
    ['EMFILE', '', 'port 80: listen E (EMFILE)'],
  ])
    assert.equal(lineOf(code, host), `Error: can't listen on ${line}`);
});

test('an error of ours, or without a code, stays as it is', () => {
  for (const error of [new HoldfastError('CLOSED', 'closed'), new TypeError('a bug')])
    assert.equal(listenFailure(error, '', 80), error);
});
