/*
 * The tables that JS and the native core share are the same on both sides.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CAUSES } from '../fleet/drone/causes.js';
import { COUNTS as DIAL_COUNTS, HISTOGRAMS as DIAL_HISTOGRAMS } from '../fleet/drone/counters.js';
import { COUNTS, HISTOGRAMS } from '../lib/counters.js';
import { CLOSE_REASONS, REFUSAL_STATUSES } from '../lib/reasons.js';
import { native } from '../native/index.js';
import { ENCODINGS, FRAMINGS, LABELS, OPS, PROTOCOL } from '../native/protocol.js';
import { OPTIONS } from '../transport/options.js';
import { refusalBody } from '../transport/responses.js';

/** @param {Record<string, number>} numbers @returns {string[]} names by number */
function namesByNumber(numbers) {
  /** @type {string[]} */
  const names = [];
  for (const [name, number] of Object.entries(numbers)) names[number] = name;
  return names;
}

/** @param {readonly { name: string }[]} rows */
const namesOf = (rows) => rows.map(({ name }) => name);

/** @param {readonly { name: string, unit: string }[]} rows */
const labelsOf = (rows) => rows.map(({ name, unit }) => `${name} ${unit}`);

describe('JS and the native core have the same', { skip: !native && 'the native core is not built' }, () => {
  const protocol = /** @type {import('../native/types.js').Native} */ (native)?.protocol();

  test('protocol number', () => assert.equal(protocol.number, PROTOCOL));
  test('operations', () =>
    assert.deepEqual(Object.fromEntries(protocol.ops.map(({ name, code }) => [name, code])), OPS));
  test('encodings', () => assert.deepEqual(protocol.encodings, namesByNumber(ENCODINGS)));
  test('framings', () => assert.deepEqual(protocol.framings, namesByNumber(FRAMINGS)));
  test('reasons why streams end', () => assert.deepEqual(protocol.reasons, CLOSE_REASONS));
  test('labels', () => assert.deepEqual(protocol.labels, namesByNumber(LABELS)));
  test('statuses of refusals', () => assert.deepEqual(protocol.refusals, REFUSAL_STATUSES));
  test('bodies of refusals', () =>
    assert.deepEqual(
      protocol.refusalBodies,
      REFUSAL_STATUSES.map((status) => refusalBody(status)),
    ));
  test('causes why dialled streams fail', () => assert.deepEqual(protocol.causes, CAUSES));
  test('counters', () => assert.deepEqual(protocol.counts, namesOf(COUNTS)));
  test('counters of the dialer', () => assert.deepEqual(protocol.dialCounts, namesOf(DIAL_COUNTS)));
  test('histograms, with their units', () => assert.deepEqual(protocol.histograms, labelsOf(HISTOGRAMS)));
  test('histograms of the dialer', () =>
    assert.deepEqual(protocol.dialHistograms, labelsOf(DIAL_HISTOGRAMS)));
  test('options', () =>
    assert.deepEqual(protocol.options, namesOf(OPTIONS.filter(({ isNative }) => isNative))));
});
