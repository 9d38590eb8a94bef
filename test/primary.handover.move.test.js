/*
 * The orchestrator of a move, with workers that only note what they are asked. Real ones are in primary.handover.reload and .takeover.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { linksOf, wholeLinksOf } from '../primary/handover/links.js';
import { Move } from '../primary/handover/move.js';
import { Pause } from '../primary/handover/pause.js';
import { withCode } from './helpers/codes.js';

/** @typedef {{ [step: string]: () => unknown }} Answers */

/**
 * @param {{ sources?: Answers[], targets?: Answers, more?: object }} [how] what they answer, if it is not the usual
 */
function start({ sources = [{}], targets = {}, more = {} } = {}) {
  /** @type {string[]} */
  const steps = [];
  /** @returns {Promise<any>} */
  const act = async (
    /** @type {string} */ who,
    /** @type {string} */ step,
    /** @type {Answers} */ answers,
    /** @type {unknown} */ usual,
  ) => {
    steps.push(`${who} ${step}`);
    return Object.hasOwn(answers, step) ? answers[step]() : usual;
  };
  /** @type {Record<string, unknown>} */
  const usual = { offer: ['a'], move: { prepared: 10, left: 0 }, release: [] };
  const move = new Move({
    sources: sources.map((answers, i) => ({ ask: (step) => act(`old${i + 1}`, step, answers, usual[step]) })),
    targets: {
      shards: [1],
      connect: (links) => act('new', `connect ${links[0].length}`, targets, undefined),
      sync: () => act('new', 'sync', targets, undefined),
      learn: () => act('new', 'learn', targets, undefined),
      go: () => act('new', 'go', targets, 10),
      drop: () => act('new', 'drop', targets, undefined),
    },
    feed: { freeze: () => void steps.push('freeze'), thaw: () => void steps.push('thaw') },
    onNote: (line) => void steps.push(line),
    ...more,
  });
  return { move, steps };
}

const fail = (/** @type {string} */ why) => () => {
  throw new Error(why);
};
const ROUND = ['new sync', 'freeze', 'new sync', 'old1 move', 'old1 release', 'new go', 'thaw'];

test('a round freezes the feed, moves, releases, and goes on', async () => {
  const { move, steps } = start();
  assert.deepEqual(await move.run(), { streams: 10, rounds: 1, left: 0 });
  assert.deepEqual(steps, ['old1 offer', 'new connect 1', ...ROUND, 'old1 withdraw']);
});

test('rounds follow until nothing is left', async () => {
  const left = [5, 2, 0];
  const { move, steps } = start({ sources: [{ move: () => ({ prepared: 1, left: left.shift() }) }] });
  assert.deepEqual(await move.run(), { streams: 30, rounds: 3, left: 0 });
  assert.equal(steps.filter((step) => step === 'freeze').length, 3);
});

test('a round that took too long is followed by a shorter one', async () => {
  const left = [2, 1, 0];
  const tookMs = [250, 0, 0];
  /** @type {number[]} */
  const asked = [];
  const { move } = start({
    targets: {
      go: () => {
        const endMs = performance.now() + (tookMs.shift() ?? 0);
        while (performance.now() < endMs);
        return 10;
      },
    },
    more: { pauseMs: 200 },
  });
  const [source] = move.sources;
  const { ask } = source;
  source.ask = async (step, fields, deadlineMs) => {
    if (step !== 'move') return ask(step, fields, deadlineMs);
    asked.push(Number(fields.ms));
    return { prepared: 1, left: left.shift() };
  };
  await move.run();
  const [first, second, third] = asked;
  assert.equal(first, 100);
  assert.ok(second >= 50 && second <= 80, `${second} ms`);
  assert.ok(third > second, `${third} ms after ${second} ms`);
});

test('what the hubs of the new workers have to know comes before the release', async () => {
  const { move, steps } = start({ sources: [{ move: () => ({ prepared: 1, left: 0, notes: ['a'] }) }] });
  await move.run();
  assert.deepEqual(steps.slice(5, 8), ['old1 move', 'new learn', 'old1 release']);
});

test('what can not move is left after the deadline', async () => {
  const { move } = start({ sources: [{ move: () => ({ prepared: 0, left: 3 }) }], more: { deadlineMs: 0 } });
  assert.deepEqual(await move.run(), { streams: 10, rounds: 1, left: 3 });
});

test('rounds go on while something moves, however many it takes', async () => {
  const left = [4, 3, 2, 1, 0];
  const sources = [{ move: () => ({ prepared: 1, left: left.shift() }) }];
  // The pauses between rounds alone take longer.
  const { move } = start({ sources, more: { deadlineMs: 100 } });
  assert.deepEqual(await move.run(), { streams: 50, rounds: 5, left: 0 });
});

for (const step of ['offer', 'move'])
  test(`if an old worker fails at ${step}, both take everything back`, async () => {
    const { move, steps } = start({ sources: [{}, { [step]: fail('no') }] });
    await assert.rejects(move.run(), /no/);
    assert.deepEqual(steps.slice(-3), ['old1 takeBack', 'old2 takeBack', 'new drop']);
    assert.ok(!steps.includes('old1 release'));
    assert.equal(steps.includes('freeze'), steps.includes('thaw'));
  });

test('if a new worker is too slow at sync, nothing moves, and the feed goes on before anything else', async () => {
  let times = 0;
  const sync = () => {
    if (++times === 2) throw new Error('slow');
  };
  const { move, steps } = start({ targets: { sync } });
  await assert.rejects(move.run(), /slow/);
  assert.deepEqual(steps.slice(2), ['new sync', 'freeze', 'new sync', 'thaw', 'old1 takeBack', 'new drop']);
});

test('after the release of one old worker, that another one fails changes nothing', async () => {
  const { move, steps } = start({ sources: [{}, { release: fail('it ended') }] });
  assert.deepEqual(await move.run(), { streams: 10, rounds: 1, left: 0 });
  assert.ok(steps.includes('it ended; its streams go on'));
  assert.ok(!steps.includes('old1 takeBack'));
});

test('a move that is stopped in a round takes it back', async () => {
  const { move, steps } = start({
    sources: [
      {
        move: () => {
          move.stop();
          return { prepared: 1, left: 0 };
        },
      },
    ],
  });
  await assert.rejects(move.run(), withCode('HANDOVER', /the server is ending/));
  assert.ok(!steps.includes('old1 release') && steps.includes('old1 takeBack'));
});

test('every new shard gets its part, across workers', () => {
  assert.deepEqual(linksOf([['a'], ['b']], [1, 1, 1]), [
    [{ shard: 0, name: 'a', weight: 2 }],
    [
      { shard: 0, name: 'a', weight: 1 },
      { shard: 0, name: 'b', weight: 1 },
    ],
    [{ shard: 0, name: 'b', weight: 2 }],
  ]);
  assert.deepEqual(linksOf([['a', 'b', 'c']], [2]), [
    [
      { shard: 0, name: 'a', weight: 2 },
      { shard: 0, name: 'b', weight: 1 },
      { shard: 1, name: 'b', weight: 1 },
      { shard: 1, name: 'c', weight: 2 },
    ],
  ]);
});

test('if it has to be known where streams go, an old worker has one taker', () => {
  const names = [
    ['a', 'b'],
    ['c', 'd'],
    ['e', 'f'],
  ];
  const { links, takers } = wholeLinksOf(names, [1, 2]);
  assert.deepEqual(takers, [0, 0, 1]);
  assert.deepEqual(
    links.map((list) => list.map(({ name }) => name)),
    [
      ['a', 'b', 'c', 'd'],
      ['e', 'f'],
    ],
  );
  assert.deepEqual(
    links[1].map(({ shard }) => shard),
    [0, 1],
  );
});

test('what waits for the end of a pause goes on in order', async () => {
  const pause = new Pause();
  pause.begin();
  /** @type {number[]} */
  const passed = [];
  const waiting = [1, 2, 3].map((number) => pause.passed().then(() => passed.push(number)));
  await Promise.resolve();
  assert.deepEqual(passed, []);
  pause.end();
  await Promise.all(waiting);
  assert.deepEqual(passed, [1, 2, 3]);
  await pause.passed();
});
