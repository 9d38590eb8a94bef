import assert from 'node:assert/strict';
import { test } from 'node:test';
import skips, { isExpected } from './helpers/skips.js';

/** @param {Record<string, unknown>[]} results @returns {Promise<string>} what the reporter writes about them */
async function reportOf(results) {
  async function* events() {
    for (const data of results) yield { type: 'test:pass', data };
  }
  let text = '';
  for await (const part of skips(events())) text += part;
  return text;
}

test('what a container may lack is expected, a tool that is not installed is not', () => {
  assert.equal(isExpected('no packets can be dropped here: iptables: Permission denied'), true);
  assert.equal(isExpected('tmux is not installed (Debian: tmux)'), false);
});

test('skipped tests are listed with their reason, the others are not', async () => {
  const text = await reportOf([
    { name: 'one', file: '/a/b.test.js', skip: 'systemd is not installed' },
    { name: 'two', file: '/a/b.test.js' },
  ]);
  assert.equal(text, '\n1 skipped:\n  b.test.js: one: systemd is not installed\n');
  assert.equal(await reportOf([{ name: 'two' }]), '');
});
