/*
 * The tables that JS and the native core share are the same on both sides.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { COUNTS, HISTOGRAMS } from '../lib/counters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES } from '../lib/reasons.js';
import { native } from '../native/index.js';
import { ENCODINGS, FRAMINGS, OPS, PROTOCOL } from '../native/protocol.js';
import { OPTIONS } from '../transport/options.js';
import { NEEDS_NATIVE } from './helpers/hold.js';

/** @param {Record<string, number>} numbers @returns {string[]} names by number */
function namesByNumber(numbers) {
  /** @type {string[]} */
  const names = [];
  for (const [name, number] of Object.entries(numbers)) names[number] = name;
  return names;
}

describe('JS and the native core have the same', NEEDS_NATIVE, () => {
  const protocol = /** @type {import('../native/types.js').Native} */ (native)?.protocol();

  test('protocol number', () => assert.equal(protocol.number, PROTOCOL));
  test('operations', () =>
    assert.deepEqual(Object.fromEntries(protocol.ops.map(({ name, code }) => [name, code])), OPS));
  test('encodings', () => assert.deepEqual(protocol.encodings, namesByNumber(ENCODINGS)));
  test('framings', () => assert.deepEqual(protocol.framings, namesByNumber(FRAMINGS)));
  test('reasons to close', () => assert.deepEqual(protocol.reasons, CLOSE_REASONS));
  test('statuses of refusals', () => assert.deepEqual(protocol.refusals, REFUSAL_STATUSES));
  test('counters', () =>
    assert.deepEqual(
      protocol.counts,
      COUNTS.map(({ name }) => name),
    ));
  test('histograms, with their units', () =>
    assert.deepEqual(
      protocol.histograms,
      HISTOGRAMS.map(({ name, unit }) => `${name} ${unit}`),
    ));
  test('options', () =>
    assert.deepEqual(
      protocol.options,
      OPTIONS.filter(({ isNative }) => isNative).map(({ name }) => name),
    ));
});
