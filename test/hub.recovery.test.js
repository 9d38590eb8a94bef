/*
 * Replays: what a client gets that comes with a cursor, whatever the window still has.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryBroker } from '../broker/memory.js';
import { parseSelector } from '../hub/matching/selectors.js';
import { Cursors } from '../hub/streams/cursor.js';
import { Latest } from '../hub/streams/latest.js';
import { Openings } from '../hub/streams/openings.js';
import { Recovery } from '../hub/streams/recovery.js';
import { Window } from '../hub/streams/window.js';
import { noHubCounters } from '../lib/hubcounters.js';
import { randomNumbers } from './helpers/random.js';

const BASE = 'http://localhost/.well-known/mercure';
const exact = (/** @type {string} */ topic) => parseSelector('exact', topic, BASE);
const pattern = (/** @type {string} */ text) => parseSelector('urlpattern', text, BASE);

/** A hub without streams. @param {{ historyCount?: number, windowBytes?: number, mostBytes?: number, isCached?: (topic: string) => boolean }} [options] */
function hub({ historyCount = 1000, windowBytes = 1e6, mostBytes = 1e6, isCached = () => false } = {}) {
  const limits = { historyCount, historyAgeMs: 1e9, historyBytes: 1e9, maxQueueBytes: 1e9, isCached };
  const broker = new MemoryBroker(limits);
  const cursors = new Cursors(broker);
  const idOf = (/** @type {import('../broker/index.js').Publication} */ { id, sequence }) =>
    id ?? cursors.of(sequence);
  const window = new Window({ mostBytes: windowBytes, last: 0, idOf });
  const latest = new Latest(isCached);
  broker.follow((publications) => {
    for (const publication of publications) {
      window.push(publication);
      latest.push(publication);
    }
  });
  const recovery = new Recovery({ broker, window, latest, cursors, mostBytes });
  const openings = new Openings(recovery, noHubCounters());
  /** @param {string} topic @param {string} data @param {Partial<import('../broker/index.js').Draft>} [more] */
  const publish = (topic, data, more) => broker.append([{ topics: [topic], data, private: false, ...more }]);
  /**
   * @param {import('../hub/matching/selectors.js').Selector[]} selectors @param {string | undefined} cursor
   * @param {import('../hub/access/grants.js').Session | null} [session]
   */
  const open = async (selectors, cursor, session = null) => {
    const opening = await openings.prepare(cursor, {
      selectors,
      session,
      channels: [],
      uses: [],
      listing: '',
    });
    return { ...opening.begin(), reported: opening.reported };
  };
  return { broker, cursors, window, openings, publish, open };
}

/** @param {string} text of a stream @returns {string[]} */
const datasIn = (text) => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => data);
/** @param {string} text @returns {string} what a client sends as Last-Event-ID after it */
const lastIdIn = (text) => [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';

test('a client without a cursor gets one first, and nothing else', async () => {
  const { publish, open, cursors } = hub();
  await publish('a', '1');
  const { text, reported, isWhole } = await open([exact('a')], undefined);
  assert.match(text, /^retry: \d+\nid: #[\w-]{22}\n\n$/);
  assert.deepEqual([lastIdIn(text), reported, isWhole], [cursors.of(1), undefined, true]);
});

test('a client gets what it missed on its topics, between two cursors', async () => {
  const { publish, open, cursors } = hub();
  for (let i = 1; i <= 6; i++) await publish(i % 2 ? 'a' : 'b', String(i));
  const { text, reported } = await open([exact('a')], cursors.of(2));
  assert.deepEqual(datasIn(text), ['3', '5']);
  assert.equal(reported, cursors.of(2));
  const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => cursors.read(id));
  assert.deepEqual(ids, [2, 3, 5, 6]);
});

test('what is published while a response waits to be held comes once, whatever was asked for', async () => {
  const { publish, openings, cursors } = hub();
  const ways = [[exact('a')], [exact('a'), exact('b')], [parseSelector('exact', '*', BASE)], [pattern('a')]];
  await publish('a', '1');
  const opened = await Promise.all(
    ways.map((selectors) =>
      openings.prepare(cursors.of(0), { selectors, session: null, channels: [], uses: [], listing: '' }),
    ),
  );
  for (const data of ['2', '3']) await publish('a', data);
  for (const opening of opened) assert.deepEqual(datasIn(opening.begin().text), ['1', '2', '3']);
});

test('a publication about several of its topics comes once', async () => {
  const { publish, open, cursors } = hub();
  await publish('a', '1', { topics: ['a', 'b', 'https://x.example/1'] });
  const { text } = await open([exact('a'), exact('b'), pattern('https://x.example/:id')], cursors.of(0));
  assert.deepEqual(datasIn(text), ['1']);
});

test('what a hundred patterns find is kept once for each, and replayed once', async () => {
  const { publish, open, cursors, window } = hub();
  for (let i = 1; i <= 300; i++) await publish(`https://x.example/${i}`, String(i));
  const patterns = Array.from({ length: 100 }, (_, i) => pattern(`https://x.example/:id${i}`));
  const { text } = await open(patterns, cursors.of(100));
  const expected = Array.from({ length: 200 }, (_, i) => String(i + 101));
  assert.deepEqual(datasIn(text), expected);
  const found = window.foundFor(patterns[0]);
  const { sequences } = found;
  await publish('https://x.example/301', '301');
  window.extend(found, patterns[0], 100);
  assert.ok(found.sequences === sequences, 'a copy for each step is the square of their number');
  assert.equal(sequences.at(-1), 301);
});

test('ids of publishers are cursors too, and the first publication with an id counts', async () => {
  const { publish, open } = hub();
  await publish('a', '1', { id: 'urn:one' });
  await publish('a', '2', { id: 'urn:two' });
  await publish('a', '3', { id: 'urn:one' });
  const { text, reported } = await open([exact('a')], 'urn:one');
  assert.deepEqual([datasIn(text), reported], [['2'], 'urn:one']);
});

test('ids that left the window are found in the history', async () => {
  const { publish, open, window } = hub({ windowBytes: 2000 });
  for (let i = 1; i <= 100; i++) await publish('a', String(i), { id: `urn:${i}` });
  assert.ok(window.first > 90);
  const { text, reported } = await open([exact('a')], 'urn:10');
  assert.deepEqual(
    datasIn(text),
    Array.from({ length: 90 }, (_, i) => String(i + 11)),
  );
  assert.equal(reported, 'urn:10');
});

test('what the Hold has no room for yet is not in a replay: it follows live', async () => {
  const { publish, open, window, cursors } = hub({ windowBytes: 2000 });
  for (let i = 1; i <= 20; i++) await publish('a', String(i));
  window.push = () => {}; // as if it waited in feed.js
  await publish('a', '21');
  const { text, isWhole } = await open([exact('a')], cursors.of(10));
  assert.deepEqual(
    datasIn(text),
    Array.from({ length: 10 }, (_, i) => String(i + 11)),
  );
  assert.deepEqual([lastIdIn(text), isWhole], [cursors.of(20), true]);
});

test('a replay that is being collected misses nothing when older publications come into the window', async () => {
  const { publish, open, openings, window, broker, cursors } = hub({ historyCount: 2000 });
  for (let i = 1; i <= 1200; i++) await publish('a', String(i));
  const older = await broker.read(0, 1100);
  for (let i = 0; i < 1100; i++) window.shift(); // as if this process had begun with 1101
  const selectors = [pattern('a')];
  await open(selectors, cursors.of(1100)); // now the publications of the pattern are known
  const place = { selectors, session: null, channels: [], uses: [], listing: '' };
  const opening = openings.prepare(cursors.of(2), place);
  window.prepend(older);
  assert.deepEqual(
    datasIn((await opening).begin().text),
    Array.from({ length: 1198 }, (_, i) => String(i + 3)),
  );
});

test('unknown cursors, empty ones and those of another epoch report earliest, and replay nothing', async () => {
  const { publish, open } = hub();
  const other = new Cursors({ epoch: 1, key: Buffer.alloc(16) });
  await publish('a', '1');
  for (const cursor of ['', 'nobody', '#x', other.of(1)]) {
    const { text, reported } = await open([exact('a')], cursor);
    assert.deepEqual([datasIn(text), reported], [[], 'earliest'], cursor);
  }
});

test('a cursor that has expired gets everything that is stored, and reports earliest', async () => {
  const { publish, open, cursors } = hub({ historyCount: 5 });
  for (let i = 1; i <= 20; i++) await publish('a', String(i));
  for (const cursor of [cursors.of(3), 'earliest']) {
    const { text, reported } = await open([exact('a')], cursor);
    assert.deepEqual([datasIn(text), reported], [['16', '17', '18', '19', '20'], 'earliest']);
  }
  assert.equal((await open([exact('a')], cursors.of(15))).reported, cursors.of(15), 'exactly what is stored');
});

test('earliest of an empty history is an empty replay', async () => {
  const { text, reported } = await hub().open([exact('a')], 'earliest');
  assert.deepEqual([datasIn(text), reported], [[], 'earliest']);
});

test('a cursor that is ahead waits until this process has heard of it', async () => {
  const { publish, open, cursors } = hub();
  await publish('a', '1');
  const opened = open([exact('a')], cursors.of(2));
  setTimeout(() => void publish('a', '2'), 20);
  const { text, reported } = await opened;
  assert.deepEqual([datasIn(text), reported], [[], cursors.of(2)]);
});

test('a long replay comes in parts: each begins where the one before ended', async () => {
  const { publish, open, cursors } = hub({ mostBytes: 1000, windowBytes: 20_000 });
  for (let i = 1; i <= 300; i++) await publish('a', `${i}`.padEnd(50, '.'));
  const datas = [];
  let cursor = cursors.of(0);
  let parts = 0;
  for (let isWhole = false; !isWhole; parts++) {
    const part = await open([exact('a')], cursor);
    datas.push(...datasIn(part.text));
    assert.ok(part.text.length < 1300);
    cursor = lastIdIn(part.text);
    isWhole = part.isWhole;
    if (!isWhole) assert.match(part.text, /^retry: 100\n/);
  }
  assert.deepEqual(
    datas.map(Number.parseFloat),
    Array.from({ length: 300 }, (_, i) => i + 1),
  );
  assert.ok(parts > 20);
});

test('private publications are replayed only to those whose grants match one of the topics', async () => {
  const { publish, open, cursors } = hub();
  await publish('a', 'public');
  await publish('a', 'secret', { private: true });
  await publish('a', 'alternate', { private: true, topics: ['a', 'users/7'] });
  const granted = (/** @type {string[]} */ ...topics) =>
    /** @type {any} */ ({ subscribe: topics.map(exact), key: topics.join() });
  const got = async (/** @type {any} */ session) =>
    datasIn((await open([exact('a')], cursors.of(0), session)).text);
  assert.deepEqual(await got(null), ['public']);
  assert.deepEqual(await got(granted('b')), ['public']);
  assert.deepEqual(await got(granted('users/7')), ['public', 'alternate']);
  assert.deepEqual(await got(granted('a')), ['public', 'secret', 'alternate']);
});

test('new subscribers get the last publication of each cached topic, in order, and not those of others', async () => {
  const { publish, open, cursors } = hub({ isCached: (topic) => topic.startsWith('https://x.example/') });
  for (const i of [1, 2, 3]) await publish('https://x.example/a', `a${i}`);
  await publish('https://x.example/b', 'b1');
  await publish('other', 'o');
  await publish('https://x.example/a', 'a4');
  const got = async (/** @type {any} */ selector, /** @type {string | undefined} */ cursor) =>
    (await open([selector], cursor)).text;
  assert.deepEqual(datasIn(await got(pattern('https://x.example/*'), undefined)), ['b1', 'a4']);
  assert.deepEqual(datasIn(await got(exact('https://x.example/b'), undefined)), ['b1']);
  assert.deepEqual(datasIn(await got(exact('other'), undefined)), []);
  const text = await got(exact('https://x.example/b'), undefined);
  assert.equal(lastIdIn(text), cursors.of(6), 'it ends with the cursor of now');
  assert.deepEqual(
    datasIn(await got(exact('https://x.example/b'), cursors.of(4))),
    [],
    'a cursor gets what follows it',
  );
});

test('the last publications of many cached topics come in parts too', async () => {
  const { publish, open } = hub({
    historyCount: 10,
    mostBytes: 500,
    isCached: (topic) => topic.startsWith('c/'),
  });
  for (let i = 0; i < 100; i++) await publish(`c/${i}`, `${i}`);
  for (let i = 0; i < 50; i++) await publish('other', 'x');
  /** @type {string[]} */
  const got = [];
  /** @type {string | undefined} */
  let cursor;
  let parts = 0;
  for (let isWhole = false; !isWhole; parts++) {
    assert.ok(parts < 50, 'it comes to an end');
    const part = await open([parseSelector('exact', '*', BASE)], cursor);
    assert.ok(part.text.length < 1000, `${part.text.length} characters`);
    got.push(...datasIn(part.text).filter((data) => data !== 'x'));
    [cursor, isWhole] = [lastIdIn(part.text), part.isWhole];
  }
  assert.ok(parts > 5, `${parts} parts`);
  assert.deepEqual(
    got,
    Array.from({ length: 100 }, (_, i) => `${i}`),
  );
});

test('a cursor older than the history gets what was published to cached topics since, wherever it was cut off', async () => {
  const { publish, open, cursors } = hub({ historyCount: 5, isCached: (topic) => topic.startsWith('c/') });
  for (let i = 1; i <= 20; i++) await publish(`c/${i}`, `${i}`);
  for (let i = 1; i <= 10; i++) await publish('other', 'x');
  for (const after of [0, 7, 19]) {
    const { text, reported, isWhole } = await open([parseSelector('exact', '*', BASE)], cursors.of(after));
    const cached = datasIn(text).filter((data) => data !== 'x');
    assert.deepEqual(
      cached,
      Array.from({ length: 20 - after }, (_, i) => `${after + i + 1}`),
    );
    assert.deepEqual([reported, isWhole, lastIdIn(text)], ['earliest', true, cursors.of(30)]);
    // If the connection breaks after any event, its cursor leads to the rest.
    const first = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => cursors.read(id))[0];
    assert.equal(first, after);
  }
});

test('every client gets exactly what it missed, for thousands of random cursors and selectors', async () => {
  const draw = randomNumbers(13);
  const topics = Array.from({ length: 8 }, (_, i) => `https://x.example/rooms/${i}`);
  const selectors = [
    ...topics.map(exact),
    pattern('https://x.example/rooms/:id'),
    pattern('https://x.example/*'),
    pattern('https://y.example/*'),
    parseSelector('exact', '*', BASE),
  ];
  const { publish, open, cursors, broker, window } = hub({
    historyCount: 1500,
    windowBytes: 100_000,
    mostBytes: 1e9,
  });
  /** @type {{ sequence: number, topics: string[] }[]} */
  const log = [];
  for (let step = 0; step < 3000; step++) {
    const about = [topics[draw(8)], ...(draw(4) === 0 ? [topics[draw(8)]] : [])];
    await publish('', String(step + 1), { topics: [...new Set(about)] });
    log.push({ sequence: step + 1, topics: about });
    if (draw(3) > 0) continue;
    const after = Math.max(0, step - draw([10, 400, 3000][draw(3)]));
    const wanted = Array.from({ length: 1 + draw(3) }, () => selectors[draw(selectors.length)]);
    const { text, reported } = await open([...new Set(wanted)], cursors.of(after));
    const from = Math.max(after, broker.first - 1);
    const due = log.filter(
      ({ sequence, topics: of }) =>
        sequence > from && wanted.some((one) => of.some((topic) => one.matches(topic))),
    );
    assert.deepEqual(
      datasIn(text),
      due.map(({ sequence }) => String(sequence)),
      `after ${after} of ${step + 1}`,
    );
    assert.equal(reported, after < broker.first - 1 ? 'earliest' : cursors.of(after));
  }
  assert.ok(window.first > broker.first + 100, 'some of them needed the broker');
});
