/*
 * examples/nodecached/server.js answers as the real memcached does: the same random commands go to both.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { randomCommands } from './helpers/cachecommands.js';
import { noMemcached, startMemcached } from './helpers/memcached.js';
import { missing, startCached, talk, talkInTurn } from './helpers/nodecached.js';
import { randomNumbers } from './helpers/random.js';

const memccapable = missing('memccapable');

/** @param {number} seed @returns {(text: string) => string[]} cuts at random places */
const randomly = (seed) => (text) => {
  const random = randomNumbers(seed);
  const parts = [];
  for (let at = 0; at < text.length; ) {
    const length = random(4) === 0 ? 1 + random(5) : 1 + random(20_000);
    parts.push(text.slice(at, at + length));
    at += length;
  }
  return parts;
};

/** Where two texts begin to differ, readable. @param {string} actual @param {string} expected */
function assertSame(actual, expected) {
  if (actual === expected) return;
  let at = 0;
  while (actual[at] === expected[at]) at++;
  const around = (/** @type {string} */ text) => JSON.stringify(text.slice(Math.max(0, at - 200), at + 120));
  assert.fail(`after ${at} bytes\nours   ${around(actual)}\ntheirs ${around(expected)}`);
}

/** Seconds to live: the two clocks tick at different times. @param {string} text */
const withoutTimes = (text) => text.replace(/ t\d+/g, ' t#');

/** Without the thread that sorts items in the background: while it holds one, incr answers differently. */
const PREDICTABLE = ['-t', '1', '-o', 'no_modern'];

const SEEDS = Number(process.env.NODECACHED_SEEDS ?? 12);
const FIRST_SEED = Number(process.env.NODECACHED_FIRST_SEED ?? 1);

test('random commands get the answers of memcached, however they are split', {
  skip: noMemcached,
}, async (t) => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    // New servers, so that both count their cas numbers from 1.
    const [ours, theirs] = await Promise.all([startCached(t), startMemcached(t, ...PREDICTABLE)]);
    const sent = randomCommands(seed, 300);
    const expected = withoutTimes(await talkInTurn(theirs, sent));
    try {
      assertSame(withoutTimes(await talk(ours.port, sent.join(''), randomly(seed))), expected);
    } catch (error) {
      throw new Error(`seed ${seed}: ${error instanceof Error ? error.message : error}`);
    }
    ours.child.kill();
  }
});

test('memccapable passes', { skip: memccapable || false }, async (t) => {
  const { port } = await startCached(t);
  const { stdout, stderr } = spawnSync('memccapable', ['-h', '127.0.0.1', '-p', String(port), '-a'], {
    encoding: 'utf8',
  });
  assert.match(`${stdout}${stderr}`, /All tests passed/);
});

test('memccapable passes with two threads', { skip: memccapable || false }, async (t) => {
  const { port } = await startCached(t, ['-t', '2']);
  const { stdout, stderr } = spawnSync('memccapable', ['-h', '127.0.0.1', '-p', String(port), '-a'], {
    encoding: 'utf8',
  });
  assert.match(`${stdout}${stderr}`, /All tests passed/);
});
