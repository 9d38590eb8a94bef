import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIELDS } from '../monitor/fields.js';
import { COLUMNS, pointOf } from '../monitor/web/columns.js';
import { History, HOUR_MS } from '../monitor/web/history.js';
import { frameMessage, NAMES } from '../monitor/web/message.js';
import { Store } from '../monitor/web/page/store.js';
import { frameAfter, sample } from './helpers/samples.js';

const PLACES = new Map(COLUMNS.map(({ name }, i) => [name, i]));
const START_MS = 1_800_000_000_000;

/** @param {Record<string, number | null>} values the others are 0 */
const point = (values) => COLUMNS.map(({ name }) => (name in values ? values[name] : 0));

/** @param {History} history @param {string} name */
const columnOf = (history, name) => history.points().columns[PLACES.get(name) ?? -1];

test('each column is made of fields that exist', () => {
  const names = new Set(FIELDS.map(({ name }) => name));
  /** @type {string[]} */
  const read = [];
  pointOf((name) => {
    read.push(name);
    return 1;
  });
  assert.deepEqual(
    read.filter((name) => !names.has(name)),
    [],
  );
});

test('a sum is unknown only if all of its parts are', () => {
  const kernel = PLACES.get('kernelBytes') ?? -1;
  const sumOf = (/** @type {Record<string, number>} */ values) =>
    pointOf((name) => values[name] ?? null)[kernel];
  assert.deepEqual(
    [sumOf({ slabBytes: 3, kernelSocketBytes: 4 }), sumOf({ slabBytes: 3 }), sumOf({})],
    [7, 3, null],
  );
});

test('at one frame per second or less, each frame is a point', () => {
  for (const refreshMs of [1000, 2500, 60_000]) {
    const history = new History(refreshMs);
    for (let i = 0; i < 5; i++) history.add(START_MS + i * refreshMs, point({ streams: i, tickMaxMs: null }));
    assert.deepEqual(columnOf(history, 'streams'), [0, 1, 2, 3, 4]);
    assert.deepEqual(columnOf(history, 'tickMaxMs'), [null, null, null, null, null]);
    assert.equal(history.most, Math.ceil(HOUR_MS / refreshMs));
  }
});

test('ten frames per second are thinned: means are averaged, and no maximum is lost', () => {
  const history = new History(100);
  for (let i = 0; i < 30; i++) {
    const values = {
      streams: i,
      openedPerSecond: i % 10,
      tickMaxMs: i === 17 ? 500 : 11,
      pingLatenessP99Ms: i === 3 ? null : 2,
    };
    history.add(START_MS + i * 100, point(values));
  }
  assert.deepEqual(
    history.points().times,
    [0, 1000, 2000].map((ms) => START_MS + ms),
  );
  assert.deepEqual(columnOf(history, 'streams'), [9, 19, 29], 'the last one');
  assert.deepEqual(columnOf(history, 'openedPerSecond'), [4.5, 4.5, 4.5]);
  assert.deepEqual(columnOf(history, 'tickMaxMs'), [11, 500, 11]);
  assert.deepEqual(columnOf(history, 'pingLatenessP99Ms'), [2, 2, 2]);
});

test('it is bounded by an hour and 3,600 points, whatever the refresh, and the oldest go first', () => {
  for (const refreshMs of [100, 300, 700, 1000, 60_000]) {
    const history = new History(refreshMs);
    const frames = Math.ceil((1.25 * HOUR_MS) / refreshMs);
    for (let i = 0; i < frames; i++) history.add(START_MS + i * refreshMs, point({ streams: i }));
    assert.ok(history.length <= 3600, `${history.length} points at ${refreshMs} ms`);
    const { times } = history.points();
    assert.ok((times.at(-1) ?? 0) - times[0] >= HOUR_MS - 2 * history.stepMs, `an hour at ${refreshMs} ms`);
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    );
    assert.equal(columnOf(history, 'streams').at(-1), frames - 1);
    const bytes =
      history.times.byteLength + history.columns.reduce((sum, { byteLength }) => sum + byteLength, 0);
    assert.ok(bytes <= 3600 * (8 + 4 * COLUMNS.length), `${bytes} bytes`);
  }
});

test('a new history takes little memory', () => {
  const history = new History(1000);
  const bytes =
    history.times.byteLength + history.columns.reduce((sum, { byteLength }) => sum + byteLength, 0);
  assert.ok(bytes < 25_000, `${bytes} bytes`);
});

test('only what comes after a time is asked for', () => {
  const history = new History(1000);
  for (let i = 0; i < 5; i++) history.add(START_MS + i * 1000, point({ streams: i }));
  const { times, columns } = history.points(START_MS + 2000);
  assert.deepEqual([times.length, columns[0]], [2, [3, 4]]);
  assert.equal(history.points(START_MS + 4000).times.length, 0);
});

test('a copy continues in the middle of a point, and has the same in the end', () => {
  const [whole, copy] = [new History(100), new History(100)];
  const add = (/** @type {History} */ history, /** @type {number} */ i) =>
    history.add(START_MS + i * 100, point({ openedPerSecond: i, tickMaxMs: (i * 7) % 13 }));
  for (let i = 0; i < 15; i++) add(whole, i);
  copy.load(whole.points());
  for (let i = 15; i < 24; i++) for (const one of [whole, copy]) add(one, i);
  assert.deepEqual(copy.points(), whole.points());
});

test('a clock that is set back begins a new history', () => {
  const history = new History(1000);
  for (const ms of [0, 1000, 2000, 500, 1500]) history.add(START_MS + ms, point({ streams: ms }));
  assert.deepEqual(columnOf(history, 'streams'), [500, 1500]);
});

/** @param {Partial<import('../monitor/web/page/store.js').All>} [rest] @returns {import('../monitor/web/page/store.js').All} */
function answer(rest) {
  const about = {
    version: '1',
    transport: 'http',
    workers: 1,
    shards: 1,
    hostname: 'h',
    refreshMs: 1000,
    startedMs: 1,
  };
  const points = new History(1000).points();
  return { run: 'one', about, names: NAMES, points, notes: [], last: '', topics: '', ...rest };
}

/** @param {number} timeMs @returns {import('../monitor/web/page/store.js').Message} */
function messageAt(timeMs) {
  return /** @type {import('../monitor/web/page/store.js').Message} */ (
    frameMessage(frameAfter(sample()), { timeMs, state: 'running', problem: '', broker: null })
  );
}

test('the page has a point without values where something is missing', () => {
  const store = new Store();
  store.load(answer());
  for (const ms of [0, 1000, 2100, 9000, 10_000]) store.add(messageAt(START_MS + ms));
  const { times, columns } = store.recent(HOUR_MS);
  assert.deepEqual(
    times.map((s) => Math.round(s * 1000) - START_MS),
    [0, 1000, 2100, 3100, 9000, 10_000],
  );
  assert.deepEqual(
    columns[0].map((value) => value === null),
    [false, false, false, true, false, false],
  );
  assert.equal(store.recent(3000).times.length, 2, 'only the range');
});

test('the page knows when the server was started anew, and drops what is not of it', () => {
  const store = new Store();
  assert.equal(store.load(answer()), false);
  store.add(messageAt(START_MS));
  assert.equal(store.query.get('after'), String(START_MS));
  assert.equal(store.load(answer()), false);
  assert.equal(store.history.length, 1);
  assert.equal(store.load(answer({ run: 'two' })), true);
  assert.equal(store.history.length, 0);
});

test('a frame that was in the history already is no second point', () => {
  const store = new Store();
  store.load(answer());
  for (const ms of [0, 1000, 1000]) store.add(messageAt(START_MS + ms));
  assert.equal(store.history.length, 2);
});
