import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { rowsOf, tableLines } from '../fleet/show/table.js';

/** @typedef {import('../fleet/ask.js').Answer} Answer */

/** @param {number} i @param {(stats: import('../fleet/ask.js').Stats) => void} [change] @returns {Answer} of a real drone */
function answer(i, change = () => {}) {
  const stats = JSON.parse(readFileSync(new URL(`fixtures/fleet/drone-${i}.json`, import.meta.url), 'utf8'));
  change(stats);
  return {
    member: { name: `d${i}`, url: `http://127.0.0.1:${i}`, token: '', place: 'local' },
    stats,
    problem: '',
  };
}

/** @param {number} i @param {string} problem @returns {Answer} */
const silent = (i, problem) => ({ ...answer(i), stats: null, problem });

const ALL = [answer(1), answer(2), answer(3)];

test('each drone has a row, and the last row is the total', () => {
  const lines = tableLines(rowsOf(ALL, []));
  assert.equal(lines.length, 2 + 3 + 1);
  assert.match(lines[2], /^d1 +local +holding +151 +151 +0 +- +\d+\.\d\/\d+\.\d +\d+\.\d$/);
  assert.match(lines[4], /^d3 +local +backing-off +0 +50 .*failed: refused \d+$/);
  assert.match(lines[5], /^total +3 drones +301 +351 .*failed: refused \d+$/);
});

test('the rate comes from two readings of the same drone', () => {
  const later = answer(1, (stats) => {
    stats.drone.elapsedMs += 500;
    stats.counts.opened += 100;
  });
  const { rows, total } = rowsOf([later, answer(2)], [answer(1)]);
  assert.deepEqual([rows[0].openedPerSecond, rows[1].openedPerSecond], [200, null]);
  assert.equal(total.openedPerSecond, 200);
});

test('a drone restarted between two readings has no rate yet', () => {
  const later = answer(1, (stats) => {
    stats.drone.startedAt = '2030-01-01T00:00:00.000Z';
  });
  assert.equal(rowsOf([later], [answer(1)]).rows[0].openedPerSecond, null);
});

test('a late drone has a row, and the total counts only those that answered', () => {
  const lines = tableLines(rowsOf([answer(1), silent(2, 'late'), silent(3, 'the token is wrong')], []));
  assert.match(lines[3], /^d2 +local +late +- +- /);
  assert.match(lines[4], /^d3 +local +refused +- .*the token is wrong$/);
  assert.match(lines[5], /^total +1 of 3 drones +151 /);
});

test('no line is wider than the terminal, and errors stay visible', () => {
  for (const width of [118, 80, 60, 20, 1]) {
    for (const hasColours of [false, true]) {
      const lines = tableLines(rowsOf(ALL, []), { width, hasColours });
      for (const line of lines) {
        // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences of colours
        const shown = line.replace(/\x1b\[\d+m/g, '');
        assert.ok(shown.length <= width, `${shown.length} > ${width}: ${shown}`);
      }
    }
  }
  assert.match(tableLines(rowsOf(ALL, []), { width: 80 }).join('\n'), /\n {2}failed: refused \d+\n/);
});

test('rows that do not fit the height are counted', () => {
  const many = Array.from({ length: 40 }, () => answer(1));
  const lines = tableLines(rowsOf(many, []), { width: 118, height: 20 });
  assert.equal(lines.length, 20);
  assert.match(lines[18], /… and 24 drones more/);
  assert.match(lines[19], /^total +40 drones +6,040/);
});

test('colours are used only when asked for', () => {
  assert.ok(!tableLines(rowsOf(ALL, [])).join('').includes('\x1b'));
  assert.ok(tableLines(rowsOf(ALL, []), { hasColours: true }).join('').includes('\x1b[31mbacking-off'));
});

test('what a drone says reaches the terminal without control characters', () => {
  const hostile = answer(1, (stats) => {
    stats.drone.state = 'hold\x9b2Jing';
    stats.counts.failed = { 'refused\x1b[31m': 3 };
  });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it looks for control characters
  assert.doesNotMatch(tableLines(rowsOf([hostile], [])).join(''), /[\x00-\x1f\x7f-\x9f]/);
});
